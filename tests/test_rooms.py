"""The rooms of the package: what they may import from each other, and how their things are named."""

import ast
import importlib
import os
import re
from pathlib import Path

import pytest

from prbench.config import Config

SOURCES = Path(__file__).parent.parent / "src"
MODULES = sorted((SOURCES / "prbench").rglob("*.py"))
DOORS = Path(__file__).parent / "doors.txt"
"""What each room offers to the others, one line a room; `UPDATE_GOLDEN=1` writes it anew."""


def room_of(dotted: str) -> str:
    """`prbench.models` of `prbench.models.local.hf`."""
    return ".".join(dotted.split(".")[:2])


def imported(path: Path) -> set[str]:
    """Modules that a file imports, and names that it imports from them, all dotted."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
    return {name for name in found if name.startswith("prbench.")}


def private(dotted: str) -> bool:
    parts = dotted.split(".")[2:]  # prbench._version is everybody's
    return any(part.startswith("_") and not part.startswith("__") for part in parts)


def test_nothing_private_is_imported_from_another_room():
    reached: dict[str, set[str]] = {}
    for path in MODULES:
        dotted = ".".join(path.relative_to(SOURCES).with_suffix("").parts)
        reached[dotted] = {name for name in imported(path) if private(name) and room_of(name) != room_of(dotted)}
    assert not {name: found for name, found in reached.items() if found}


def test_no_public_class_has_the_name_of_another():
    homes: dict[str, list[str]] = {}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(str(path.relative_to(SOURCES)))
    assert not {name: places for name, places in homes.items() if len(places) > 1}


def classes(ending: str) -> dict[str, str]:
    """Public classes whose name has this ending, with their module."""
    return {
        node.name: ".".join(path.relative_to(SOURCES).with_suffix("").parts)
        for path in MODULES
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and node.name.endswith(ending)
    }


def test_all_settings_have_one_base():
    kinds = [getattr(importlib.import_module(module), name) for name, module in classes("Config").items()]
    assert len(kinds) > 15
    assert not [kind.__name__ for kind in kinds if not (issubclass(kind, Config) or is_protocol(kind))]


def is_protocol(kind: type) -> bool:
    return getattr(kind, "_is_protocol", False)


@pytest.mark.parametrize(
    ("thing", "pattern", "home"),
    [
        ("a slug", r"re\.sub\(\s*f?r?\"\[\^A-Za-z0-9", "files/folders.py"),
        ("a check of loopback", r"from ipaddress", "web.py"),
        ("a progress bar", r"rich\.(progress|live)", "calls/progress.py"),
    ],
)
def test_there_is_one(thing, pattern, home):
    found = {
        str(path.relative_to(SOURCES / "prbench")) for path in MODULES if re.search(pattern, path.read_text("utf-8"))
    }
    assert found == {home}, thing


def doors() -> dict[str, list[str]]:
    """The names in `__all__` of each package, by its dotted name."""
    found = {}
    for path in MODULES:
        if path.name == "__init__.py":
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                    found[".".join(path.parent.relative_to(SOURCES).parts)] = ast.literal_eval(node.value)
    return found


def test_what_the_rooms_offer_is_pinned():
    text = "".join(f"{room}: {' '.join(names)}\n" for room, names in sorted(doors().items()))
    if os.environ.get("UPDATE_GOLDEN"):
        DOORS.write_text(text, encoding="utf-8")
    assert text == DOORS.read_text(encoding="utf-8"), "UPDATE_GOLDEN=1 pytest tests/test_rooms.py, and read the change"


@pytest.mark.parametrize("room", doors())
def test_what_a_room_offers_is_there(room):
    offered = importlib.import_module(room)
    assert [name for name in doors()[room] if not hasattr(offered, name)] == []


def body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its parameters and its docstring: the options of a command are not counted."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return node.end_lineno - body[0].lineno + 1 if body else 0


def test_no_function_is_longer_than_a_page():
    long = {
        f"{path.relative_to(SOURCES)}:{node.name}": body_lines(node)
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and body_lines(node) > 60
    }
    assert not long


def test_no_module_is_longer_than_four_hundred_lines():
    lengths = {str(path.relative_to(SOURCES)): path.read_text(encoding="utf-8").count("\n") for path in MODULES}
    assert not {name: length for name, length in lengths.items() if length > 400}


@pytest.mark.parametrize("folder", ["benchmarks", "examples", "studies", "suite"])
def test_what_scripts_import_is_there(folder):
    missing = []
    for path in sorted((SOURCES.parent / folder).rglob("*.py")):
        for name in sorted(imported(path)):
            try:
                importlib.import_module(name)
            except ModuleNotFoundError:
                home, _, thing = name.rpartition(".")
                if not hasattr(importlib.import_module(home), thing):
                    missing.append(f"{path.name}: {name}")
    assert missing == []
