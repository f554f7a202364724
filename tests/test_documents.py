"""Documents name what is really there, and their programs run."""

import contextlib
import io
import json
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import prbench

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


def blocks(pages=("README.md", "docs/**/*.md")):
    """Every block of Python in the pages, once; one that cannot run everywhere has `<!-- not run: WHY -->` above it.

    The pages of docs/how-to change prbench itself and have tests of their own.
    """
    seen = set()
    fence = re.compile(r"^(<!-- not run: [^\n]+ -->\n)?```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
    for page in sorted(path for pattern in pages for path in ROOT.glob(pattern) if "how-to" not in path.parts):
        for number, found in enumerate(fence.finditer(page.read_text(encoding="utf-8")), 1):
            if found[1] is None and found[2] not in seen:
                seen.add(found[2])
                yield pytest.param(found[2], id=f"{page.relative_to(ROOT).as_posix()}-{number}")


@pytest.mark.parametrize("source", list(blocks()))
def test_the_python_of_the_pages_runs(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(compile(source, "page", "exec"), {"__name__": "page"})
    told = [line.partition("# ")[2] for line in source.splitlines() if "print(" in line and "# value=" in line]
    for line in told:  # a result that a page gives beside a print is what is printed, rounded
        figures = [float(figure) for figure in re.findall(r"=([\d.]+)", shown.getvalue().splitlines()[0])]
        assert [round(figure, 3) for figure in figures] == [float(figure) for figure in re.findall(r"=([\d.]+)", line)]


EXAMPLES = {
    "callable_model": r"none +50.0% .*\n(.*\n)*gain .* from the user's own posts",
    "compare_runs": r"difference [+-]\d.*, p = 0\.\d+\n.*only the first is right on \d+ pairs",
    "jury": r"none +50.0% \[50.0%, 50.0%\]\nprofile +\d",
    "own_csv": r"none +50% of 4 pairs, .*\nprofile +100% of 4 pairs",
    "reward_callback": r"personal reward 0\.\d\d of 1",
    "serve_and_ask": r"ann \[2.0, 0.0\]\nben \[0.0, 2.0\]",
}
"""What each program of the gallery prints."""


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_runs_and_is_short(name, tmp_path, monkeypatch, capsys):
    path = ROOT / "examples" / f"{name}.py"
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 40
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(path.parent))
    runpy.run_path(str(path), run_name="__main__")
    assert re.search(EXAMPLES[name], capsys.readouterr().out)


def test_the_gallery_shows_every_example():
    page = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    assert set(re.findall(r"<!-- code: examples/(\w+)\.py -->", page)) == set(EXAMPLES)


def test_the_notebook_was_executed_and_names_no_machine():
    text = (ROOT / "examples" / "first_look.ipynb").read_text(encoding="utf-8")
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    assert len(text) < 20_000
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert not [output for cell in cells for output in cell["outputs"] if output["output_type"] == "error"]
    assert not re.search(r"/(home|root|tmp|usr|work|Users)/|site-packages", text)


def test_the_api_page_shows_every_public_name():
    shown = re.findall(r"^::: prbench\.(\w+)$", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(shown) == sorted(set(prbench.__all__) - {"__version__"})


def test_links_between_pages_lead_somewhere():
    """`make docs` checks anchors and images as well; this needs nothing but the files."""
    link = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")
    pages = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in link.findall(re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S))
        if not (page.parent / target).exists()
    ]
    assert not broken


def commands(pages=("README.md", "docs/**/*.md")):
    """Every `prbench …` line of a block in the pages, with its page, as words."""
    for path in sorted(found for page in pages for found in ROOT.glob(page)):
        for block in re.findall(
            r"^```(?:sh|bash|console|shell)?\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE
        ):
            for line in block.replace("\\\n", " ").splitlines():
                if found := re.match(r"\s*(?:\$ )?(?:[A-Z_]+=\S+ )*prbench (.+)", line):
                    yield path.name, shlex.split(found[1].split("  #")[0].split(" | ")[0], comments=True)


def test_the_options_of_all_commands_in_the_pages_exist():
    from typer.main import get_command

    from prbench.cli import app

    unknown = []
    for page, words in commands():
        command = get_command(app)
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        several = [command, *getattr(command, "commands", {}).values()]  # a group may have a command that goes unnamed
        options = [option for one in several for option in one.params]
        known = {name for option in options for name in (*option.opts, *option.secondary_opts)} | {"--help"}
        given = [word.partition("=")[0] for word in words if re.match(r"--[a-z]", word)]
        unknown += [(page, command.name, name) for name in given if name not in known]
    assert not unknown


def test_the_recipe_for_eight_gpus_is_a_plan_that_can_be_printed():
    (recipe,) = (words for page, words in commands(["docs/performance.md"]) if "ray" in words and "--dry-run" in words)
    recipe[recipe.index("--model") + 1] = "longer"
    found = subprocess.run(
        [sys.executable, "-m", "prbench", *recipe, "--limit", "20"], capture_output=True, text=True, check=True
    )
    assert "calls to make" in found.stdout
