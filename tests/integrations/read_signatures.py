"""How trainers call a reward, read from their installed source without importing it: a line of JSON for each.

Run by the trainer's own Python: `python read_signatures.py trl`. What was found is recorded in
tests/serve/signatures.json, which the ordinary tests hold our functions against.
"""

import ast
import importlib.util
import json
import sys
from importlib.metadata import version
from pathlib import Path


def tree_of(package: str, *parts: str) -> ast.AST:
    """The syntax tree of a module of an installed package."""
    spec = importlib.util.find_spec(package)
    folder = Path(next(iter(spec.submodule_search_locations)))
    return ast.parse(folder.joinpath(*parts).read_text(encoding="utf-8"))


def named(node: ast.expr) -> str:
    """The last name of `a.b.c`."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def keywords(tree: ast.AST, function: str, marker: str) -> list[str]:
    """The keywords with which a function is called, in the first call that has one of them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and named(node.func) == function:
            found = [keyword.arg for keyword in node.keywords if keyword.arg]
            if marker in found:
                return sorted(found)
    raise LookupError(f"no call {function}({marker}=…)")


def keys_set(tree: ast.AST, mapping: str) -> list[str]:
    """The keys that are put into a mapping, one by one."""
    targets = (node.targets[0] for node in ast.walk(tree) if isinstance(node, ast.Assign))
    return sorted(
        target.slice.value
        for target in targets
        if isinstance(target, ast.Subscript)
        and named(target.value) == mapping
        and isinstance(target.slice, ast.Constant)
    )


def keys_read(tree: ast.AST, mapping: str) -> list[str]:
    """The keys that are got from a mapping."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and named(node.func) == "get")
    return sorted({call.args[0].value for call in calls if named(call.func.value) == mapping})


def keys_sent(tree: ast.AST, mapping: str) -> list[str]:
    """The keys of a dictionary that is written out."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and named(node.targets[0]) == mapping and isinstance(node.value, ast.Dict):
            return sorted(key.value for key in node.value.keys)
    raise LookupError(f"no {mapping} = {{…}}")


def arguments_in_thread(tree: ast.AST, function: str) -> int:
    """How many arguments a function gets that is run by `asyncio.to_thread`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and named(node.func) == "to_thread" and named(node.args[0]) == function:
            return len(node.args) - 1
    raise LookupError(f"no to_thread({function}, …)")


def trl() -> list[dict]:
    tree = tree_of("trl", "trainer", "grpo_trainer.py")
    return [
        {
            "call": "trl.trainer.grpo_trainer: reward function",
            "keywords": keywords(tree, "reward_func", "completions"),
            "besides": keys_set(tree, "reward_kwargs"),
        }
    ]


def openrlhf() -> list[dict]:
    tree = tree_of("openrlhf", "utils", "agent.py")
    return [
        {
            "call": "openrlhf.utils.agent: reward_func of a file",
            "positional": arguments_in_thread(tree, "reward_func"),
            "reads": keys_read(tree, "rewards_info"),
        },
        {"call": "openrlhf.utils.agent: remote URL", "sends": keys_sent(tree, "payload")},
    ]


def verl() -> list[dict]:
    naive = tree_of("verl", "experimental", "reward_loop", "reward_manager", "naive.py")
    batch = tree_of("verl", "workers", "reward_manager", "batch.py")
    return [
        {
            "call": "verl.experimental.reward_loop.reward_manager.naive: compute_score",
            "keywords": keywords(naive, "compute_score", "solution_str"),
        },
        {
            "call": "verl.workers.reward_manager.batch: compute_score",
            "keywords": keywords(batch, "compute_score", "solution_strs"),
        },
    ]


if __name__ == "__main__":
    framework = sys.argv[1]
    for found in {"trl": trl, "openrlhf": openrlhf, "verl": verl}[framework]():
        print(json.dumps({"framework": framework, "version": version(framework), **found}))
