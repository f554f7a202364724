"""Documents name what is really there."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_every_pitfall_is_pinned_by_a_test_that_exists():
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs" / "pitfalls.md").read_text(encoding="utf-8")))
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    assert len(named) >= 14
    assert not {name for name in named if f"def {name}(" not in sources}


def test_nothing_cites_a_document_that_is_not_here():
    cited = re.compile(r"FACTS\.md|DESIGN\.md|DESIGN §|\bdefects? D\d|\(D\d+\)")
    files = [path for room in ("src", "docs", "studies", "benchmarks", "examples") for path in (ROOT / room).rglob("*")]
    files = [path for path in files if path.suffix in (".py", ".md", ".jinja", ".toml")]
    assert not [str(path) for path in files if cited.search(path.read_text(encoding="utf-8"))]


def test_the_architecture_names_every_room():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = {path.stem for path in (ROOT / "src" / "prbench").iterdir() if not path.name.startswith(("_", "py."))}
    assert not {room for room in rooms if f"`{room}`" not in page}
