"""Every command of docs/build.md is run as it stands there, against the scripted author."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import scripted_writer
from fake_server import FakeServer
from prbench.cli import app
from prbench.data import load_pairs

ROOT = Path(__file__).parents[2]
PLACE = "http://127.0.0.1:8000/v1"


def commands() -> list[list[str]]:
    page = (ROOT / "docs" / "build.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    return [shlex.split(line[2:]) for block in blocks for line in block.splitlines() if line.startswith("$ ")]


@pytest.fixture
def desk(tmp_path, monkeypatch):
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("runs"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRBENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path


def run(command: list[str], place: str):
    assert command[0] == "prbench"
    return CliRunner().invoke(app, [part.replace(PLACE, place) for part in command[1:]], catch_exceptions=False)


def test_every_command_of_the_page_works_in_its_order(desk):
    found = commands()
    assert len(found) == 6
    with FakeServer(answer=scripted_writer.write) as server:
        for command in found:
            result = run(command, server.url)
            assert result.exit_code == 0, (command, result.output)
            if "--dry-run" in command:
                assert "8 requests to send" in result.output
                assert not server.requests
    assert len(load_pairs(desk / "my-suite")) == 8
    assert load_pairs(desk / "my-mirrored-suite").is_mirrored


def test_the_page_names_the_gates_with_their_thresholds():
    from prbench.build.gates import KINDS

    page = (ROOT / "docs" / "build.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `([a-z-]+)(?:=([\d.]+))?` \|", page, re.MULTILINE)
    known = {name: kind.default for name, kind in KINDS.items()}
    assert {name: float(value) if value else None for name, value in named if name in known} == known


def test_the_summary_and_the_card_as_json(desk):
    with FakeServer(answer=scripted_writer.write) as server:
        model = ["--model", f"chat:m@{server.url}", "-q"]
        told = run(["prbench", "build", "aspects", "examples/posts.csv", "-o", "a.jsonl", *model], server.url).output
        assert re.search(r"with aspects +8\n", told)
        assert "read 20 posts of 4 users" in told
        told = run(["prbench", "build", "pairs", "a.jsonl", "-o", "p", *model], server.url).output
        assert re.search(r"mirrored pairs +0 \(0%\)", told)
        assert "gates that did not look: quality, rubric-margin, agreement" in told
        told = run(["prbench", "build", "pairs", "a.jsonl", "-o", "p", "--json", *model], server.url).output
        assert '"pairs": 8' in told
