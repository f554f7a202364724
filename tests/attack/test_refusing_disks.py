"""Disks that fill up and folders that may not be written: said in words, nothing half written, nothing lost."""

import json
import os
import re
import resource
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import annotate_study
import prbench.models.personal.rater  # noqa: F401  (now: who may not read may not import either)
from campaigns import times
from prbench import evaluate
from prbench.annotate.store import Store
from prbench.calls import CallCache
from prbench.cli import app
from prbench.data import Suite, load_pairs, write_pairs
from prbench.errors import PrbenchError
from prbench.files import Appender, read_models, replacing_folder, write_json
from prbench.models import load_model
from prbench.models.personal.features import FeatureStore
from prbench.plan import Plan, StoredPlans
from prbench.report.leaderboard.boards import read_board_folder
from prbench.report.page import report_page
from prbench.results import load_run, verify
from prbench.serve.feedback import FeedbackFile
from prbench.studies.sections import study_page
from prbench.studies.study import read_study
from prbench.types import Judgment, Outcome, Record
from small_suite import Spy, mirrored

PAIRS = mirrored(couples=4, questions=6)
SMALL = mirrored(couples=1, questions=1)
SIZES = (0, 300, 1000, 3000, 6000, 9000, 12_000, *range(100, 12_000, 400))
"""How many bytes of a file the disk still takes."""


@contextmanager
def full_after(size: int) -> Iterator[None]:
    """No file may grow beyond a size: what a full disk is to whoever writes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def run(out: Path) -> int:
    """Evaluate a model into a folder; returns how often it was asked."""
    model = Spy()
    evaluate(model, PAIRS, contexts=["none", "profile"], resamples=100, out=out / "run", cache=False)
    return model.asked


def result(out: Path) -> dict[str, object]:
    """What a run found, without how long it took."""
    found = json.loads((out / "run" / "result.json").read_text())
    del found["result"]["timing"]
    return found


@pytest.mark.parametrize("size", SIZES[: times(len(SIZES), short=7)])
def test_a_run_on_a_disk_that_fills_up_says_so_and_is_continued(tmp_path: Path, size: int, attack: Any) -> None:
    with attack("a disk that fills up") as campaign:
        campaign.tried += 1
        with full_after(size):
            error = campaign.refused(lambda: run(tmp_path))
        assert error is not None
        assert re.search(r"cannot write '.*': the disk is full", error.message)
        assert "free some space" in error.hint
        kept = {call.key for record in read_models(tmp_path / "run" / "records.jsonl", Record) for call in record.calls}
        if run(tmp_path) != run(tmp_path / "whole") - len(kept):
            campaign.lost.append(f"{size} bytes: what fitted on the disk was asked again")
        if result(tmp_path) != result(tmp_path / "whole") or verify(tmp_path / "run").mismatches:
            campaign.changed.append(f"{size} bytes: another result")
        assert not list((tmp_path / "run").glob("*.part"))


def test_a_finished_run_survives_a_command_that_finds_no_room(tmp_path: Path) -> None:
    run(tmp_path)
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir() if path.name != "result.json"}
    found = result(tmp_path)
    with full_after(100), pytest.raises(PrbenchError, match="the disk is full"):
        run(tmp_path)
    assert {name: (tmp_path / "run" / name).read_bytes() for name in before} == before
    assert result(tmp_path) == found
    assert {path.name for path in (tmp_path / "run").iterdir()} == {*before, "result.json"}


def test_the_command_prints_an_error_and_no_traceback(tmp_path: Path) -> None:
    suite = write_pairs(PAIRS, tmp_path / "suite.jsonl")
    with full_after(500):
        found = CliRunner().invoke(
            app, ["run", "--suite", str(suite), "--model", "longer", "-o", str(tmp_path / "run")]
        )
    assert isinstance(found.exception, PrbenchError)


def _suite(folder: Path) -> None:
    write_pairs(PAIRS, folder / "new" / "suite.jsonl")


def _parquet(folder: Path) -> None:
    write_pairs(PAIRS, folder / "new" / "suite.parquet")


def _plans(folder: Path) -> None:
    with Appender(folder / "new" / "plans.jsonl") as lines:
        for number in range(40):
            lines.append(Plan(key=f"key{number}", status="ok", plan=("Short answers.", "Red ones.")))


def _feedback(folder: Path) -> None:
    with FeedbackFile(folder / "new" / "judged.jsonl") as file:
        for number in range(40):
            file.add("ann", Judgment(question=f"Tea {number}?", chosen="Green.", rejected="Black."))


def _annotations(folder: Path) -> None:
    annotate_study.study(folder / "new", PAIRS)


def _cache(folder: Path) -> None:
    cache = CallCache(folder / "new" / "calls.sqlite")
    try:
        for number in range(600):
            cache.keep(f"key{number}", Outcome.scored(number))
        cache.flush()
    finally:
        cache._database.close()


def _site(folder: Path) -> None:
    with replacing_folder(folder / "new") as made:
        write_json(made / "rows.json", list(range(1000)))


class Lengths:
    """An encoder that needs no weights."""

    name = "lengths"

    def encode(self, texts: list[str]) -> object:
        import numpy as np

        return np.array([[len(text)] * 64 for text in texts], dtype=np.float32)


def _vectors(folder: Path) -> None:
    FeatureStore(Lengths(), folder / "new" / "vectors").encode([f"tea {number}" for number in range(50)])


WRITERS: list[Callable[[Path], object]] = [
    _suite,
    _parquet,
    _plans,
    _feedback,
    _annotations,
    _cache,
    _site,
    _vectors,
    run,
]


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__.strip("_"))
def test_a_full_disk_is_said_by_everything_that_writes(
    tmp_path: Path, write: Callable[[Path], object], attack: Any
) -> None:
    with attack("a disk that fills up") as campaign:
        campaign.tried += 1
        with full_after(1500):
            error = campaign.refused(lambda: write(tmp_path))
        assert error is not None
        assert re.search(r"full|disk I/O error", error.message)
        assert str(tmp_path) in error.message
        assert not list(tmp_path.rglob("*.part"))
        write(tmp_path)  # there is room again


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__.strip("_"))
def test_a_folder_that_may_not_be_written_is_named(write: Callable[[Path], object], attack: Any) -> None:
    # A place of its own: the user below may not enter pytest's.
    with attack("a read-only folder") as campaign, tempfile.TemporaryDirectory() as name:
        campaign.tried += 1
        folder = Path(name)
        folder.chmod(0o555)
        with _somebody():
            error = campaign.refused(lambda: write(folder))
        assert error is not None
        assert re.search(r"permission denied|unable to open", error.message)
        assert name in error.message
        assert error.hint
        assert list(folder.iterdir()) == []


@contextmanager
def _somebody() -> Iterator[None]:
    """Not the superuser, who may write everywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "new").write_text("mine")
    (tmp_path / "run").write_text("mine")
    for write in WRITERS:
        with pytest.raises(PrbenchError, match=r"new|run") as error:
            write(tmp_path)
        assert error.value.hint
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"new": "mine", "run": "mine"}


READERS: dict[str, Callable[[Path], object]] = {
    "verify": lambda folder: verify(folder / "run"),
    "report": lambda folder: report_page([folder / "run"]),
    "compare": lambda folder: load_run(folder / "run"),
    "run": run,
    "suite": lambda folder: load_pairs(folder / "suite.jsonl"),
    "folder of suites": lambda folder: load_pairs(folder),
    "stored": lambda folder: load_model(f"stored:{folder / 'scores.jsonl'}"),
    "plans": lambda folder: StoredPlans(folder / "plans.jsonl"),
    "feedback": lambda folder: FeedbackFile(folder / "judged.jsonl").__enter__(),
    "annotations": lambda folder: Store.existing(folder / "annotations.sqlite"),
    "study": lambda folder: study_page([folder / "study"]),
    "study to correlate": lambda folder: read_study(folder / "study"),
    "personal": lambda folder: load_model(f"personal:{folder / 'model'}"),
    "language model": lambda folder: load_model(f"lm:{folder / 'tiny.gguf'}"),
    "leaderboard": lambda folder: read_board_folder(folder / "runs"),
}


@pytest.mark.parametrize("name", READERS)
def test_a_folder_that_may_not_be_read_is_named(name: str, attack: Any) -> None:
    with attack("a folder that may not be read") as campaign, tempfile.TemporaryDirectory() as place:
        campaign.tried += 1
        folder = Path(place, "secret")
        run(folder)
        folder.chmod(0o000)
        with _somebody():
            error = campaign.refused(lambda: READERS[name](folder))
        folder.chmod(0o700)
        assert error is not None
        assert str(folder) in error.message


def test_what_was_appended_before_the_disk_was_full_is_read(tmp_path: Path) -> None:
    with full_after(1500), pytest.raises(PrbenchError, match="the disk is full"):
        _plans(tmp_path)
    kept = list(read_models(tmp_path / "new" / "plans.jsonl", Plan))
    assert 10 < len(kept) < 40
    assert (tmp_path / "new" / "plans.jsonl").read_bytes().endswith(b"\n")


def test_a_suite_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = write_pairs(SMALL, tmp_path / "suite.jsonl")
    with full_after(1500), pytest.raises(PrbenchError, match="the disk is full"):
        write_pairs(PAIRS, path)
    assert load_pairs(path).record.fingerprint == Suite.of(SMALL).record.fingerprint
