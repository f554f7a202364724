"""OpenRLHF's own code asks for rewards: by URL and through our file. Run by an environment that has it: URL."""

import asyncio
import importlib.util
import json
import logging
import sys
from pathlib import Path
from types import SimpleNamespace

import torch

from prbench.serve import label
from prbench.serve.clients import openrlhf_reward

PROMPT = "<|user|>Which tea should I get?</s><|assistant|>"
ANSWERS = ["Get the red tea.", "Get the blue tea."]


def agent():
    """The module that asks; what it takes from the rest of the package is a logger, and the rest wants a GPU."""
    spec = importlib.util.find_spec("openrlhf")
    path = Path(next(iter(spec.submodule_search_locations))) / "utils" / "agent.py"
    sys.modules["openrlhf.utils.logging_utils"] = SimpleNamespace(init_logger=logging.getLogger)
    sys.modules["openrlhf.utils"] = SimpleNamespace()
    loaded = importlib.util.spec_from_file_location("agent", path)
    module = importlib.util.module_from_spec(loaded)
    loaded.loader.exec_module(module)
    return module


class Bytes:
    """A tokenizer of bytes."""

    def __call__(self, text, **options):
        return {"input_ids": torch.tensor([list(text.encode())])}

    def decode(self, ids, **options):
        return bytes(ids).decode()


class Engine:
    """A policy that always answers the same."""

    async def generate(self, ids, params, **options):
        answer = list((ANSWERS[0] + "</s>").encode())
        return SimpleNamespace(outputs=[SimpleNamespace(token_ids=answer, finish_reason="stop", logprobs=None)])


async def rollout(executor, where: str, user: str) -> dict[str, float | None]:
    """What a whole rollout comes to, with whatever OpenRLHF makes of errors."""
    said = label("Which tea should I get?", user=user)
    params = SimpleNamespace(max_tokens=64, logprobs=None)
    found = await executor(where).execute(PROMPT, said, params, 4096, Bytes(), Engine())
    return {name: None if found[name] is None else float(found[name][0]) for name in ("reward", "scores")}


async def main(url: str) -> None:
    executor = agent().SingleTurnAgentExecutor
    errors = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: errors.append(record.getMessage())
    logging.getLogger("prbench").addHandler(handler)
    ways = {"http": f"{url}/get_reward", "file": openrlhf_reward.__file__}
    known = {way: await rollout(executor, where, "u0a") for way, where in ways.items()}
    logged_before = len(errors)
    unknown = {way: await rollout(executor, where, "nobody") for way, where in ways.items()}
    labels = [label("Which tea should I get?", user="u0a")] * 2
    batch = ([PROMPT + answer + "</s>" for answer in ANSWERS], [PROMPT] * 2, labels)
    over_http = await executor(f"{url}/get_reward")._fetch_rewards_via_http(*batch)
    by_file = await executor(openrlhf_reward.__file__)._fetch_rewards_via_func(*batch)
    rewards = [[float(reward) for reply in replies for reward in reply["rewards"]] for replies in (over_http, by_file)]
    rollouts = {"known": known, "unknown": unknown, "errors": errors, "logged_before": logged_before}
    print(json.dumps({"http": rewards[0], "file": rewards[1], "answers": ANSWERS, **rollouts}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
