"""The folder that a build leaves behind, and the command that makes it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from prbench.build import MirrorCard, build_mirror
from prbench.cli.build import build_app
from prbench.data import load_pairs
from prbench.errors import ConfigError, DataError


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    items, log = tmp_path / "texts.json", tmp_path / "log.csv"
    items.write_text(json.dumps([f"joke {i}" for i in range(20)]))
    rows = [f"u{user},{item},{(user % 2 * 2 - 1) * item}" for user in range(30) for item in range(20)]
    log.write_text("\n".join(["user,item,rating", *rows]))
    return log, items


def test_the_folder_holds_everything_and_loads_back(files: tuple[Path, Path], tmp_path: Path):
    out = tmp_path / "deep" / "suite"
    build = build_mirror(*files, out)
    assert sorted(path.name for path in out.iterdir()) == ["card.json", "context.jsonl", "items.jsonl", "pairs.parquet"]
    assert sorted(path.name for path in out.parent.iterdir()) == ["suite"]
    loaded = load_pairs(out / "pairs.parquet")
    assert list(loaded) == list(build.suite)
    assert loaded.is_mirrored
    assert set(loaded.record.splits) == {"train", "validation", "test", "seen-users"}
    card = MirrorCard.model_validate_json((out / "card.json").read_text())
    assert card == build.card
    assert card.fingerprint == loaded.record.fingerprint
    assert card.exactness.exact
    assert set(card.exactness.accuracy.values()) == {0.5}
    assert str(tmp_path) not in (out / "card.json").read_text()
    context = [json.loads(line) for line in (out / "context.jsonl").read_text().splitlines()]
    assert context == list(build.context)
    assert {"user", "split", "question", "a", "b", "choice"} == set(context[0])
    known = {json.loads(line)["id"] for line in (out / "items.jsonl").read_text().splitlines()}
    assert {row[side] for row in context for side in "ab"} <= known


def test_the_same_command_writes_the_same_bytes(files: tuple[Path, Path], tmp_path: Path):
    for name in ("one", "two"):
        build_mirror(*files, tmp_path / name)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_an_earlier_build_is_replaced_and_nothing_else(files: tuple[Path, Path], tmp_path: Path):
    out = tmp_path / "suite"
    build_mirror(*files, out)
    (out / "note.txt").write_text("of the old build")
    build_mirror(*files, out)
    assert not (out / "note.txt").exists()
    foreign = tmp_path / "thesis"
    foreign.mkdir()
    (foreign / "chapter.txt").write_text("years of work")
    with pytest.raises(ConfigError, match="something else"):
        build_mirror(*files, foreign)
    assert (foreign / "chapter.txt").read_text() == "years of work"
    with pytest.raises(ConfigError, match="is a file"):
        build_mirror(*files, files[0])


def test_a_refused_log_leaves_nothing_behind(files: tuple[Path, Path], tmp_path: Path):
    log, items = files
    log.write_text("user,item,rating\nu1,0,1\nu1,1,5\n")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(DataError):
        build_mirror(log, items, tmp_path / "suite")
    assert sorted(tmp_path.iterdir()) == before


def test_the_command_builds_and_reports(files: tuple[Path, Path], tmp_path: Path):
    log, items = files
    out = tmp_path / "suite"
    arguments = ["mirror", str(log), "--items", str(items), "-o", str(out)]
    done = CliRunner().invoke(build_app, [*arguments, "--seed", "3", "--max-pairs", "40", "--min-gap", "2"])
    assert done.exit_code == 0, done.output
    assert "seen-users" in done.output
    assert "600 ratings of 30 users" in done.output
    assert "preferences beyond --max-pairs" in done.output
    suite = load_pairs(out / "pairs.parquet")
    assert len(suite) == 40
    printed = CliRunner().invoke(build_app, [*arguments, "--json", "--question", "Funnier?", "--splits", "0/0/1"])
    card = json.loads(printed.output)
    assert card["options"]["question"] == "Funnier?"
    assert {name for name, split in card["splits"].items() if split["pairs"]} == {"test"}


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--splits", "60-20-20", "60/20/20"),
        ("--context-share", "1.5", "context-share"),
        ("--min-gap", "-1", "min-gap"),
        ("--column", "item", "FIELD=COLUMN"),
    ],
)
def test_wrong_options_are_refused(option: str, value: str, words: str, files: tuple[Path, Path], tmp_path: Path):
    log, items = files
    arguments = ["mirror", str(log), "--items", str(items), "-o", str(tmp_path / "suite"), option, value]
    done = CliRunner().invoke(build_app, arguments)
    assert isinstance(done.exception, ConfigError)
    assert words in str(done.exception)
    assert not (tmp_path / "suite").exists()
