"""What was measured: an edited time, speed or price is found, and folders without the file still verify."""

import json
import shutil
from pathlib import Path

import pytest

from fake_server import FakeServer, Fault, first_attempts
from prbench import evaluate
from prbench.config import ModelOptions, Price
from prbench.errors import RunError
from prbench.models import load_model
from prbench.results import load_run, verify
from prbench.results.measured import MEASURED
from small_suite import mirrored

EFFORT = {"tokens_naive": 900, "tokens_computed": 300, "passes_s": 1.5, "computed_tokens_per_s": 200.0}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was paid for, with requests that were sent again and whose first try may have been billed."""
    out = tmp_path_factory.mktemp("measured") / "run"
    options = ModelOptions(price=Price(per_million_in=1000.0, per_million_out=1000.0), concurrency=2)
    with FakeServer(plan=first_attempts(1, Fault("status", status=500))) as server:
        judge = load_model(f"chat:judge@{server.url}", options)
        evaluate(judge, mirrored(1, 2), contexts=["none"], out=out, cache=False)
    return out


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "run")
    return tmp_path / "run"


def edit(run: Path, **fields: object) -> None:
    """Change the timing in `result.json`."""
    data = json.loads((run / "result.json").read_text())
    data["result"]["timing"] |= fields
    (run / "result.json").write_text(json.dumps(data))


def timing_of(run: Path) -> dict:
    return json.loads((run / "result.json").read_text())["result"]["timing"]


def places(run: Path) -> list[str]:
    return [found.place.removeprefix("/result/timing/") for found in verify(run).mismatches]


def test_every_field_of_the_timing_is_held_against_what_was_measured(made, run):
    sound = timing_of(made)
    assert verify(run).mismatches == ()
    for name, value in sound.items():
        changed = {**value, "n": value["n"] + 1} if isinstance(value, dict) else "x" if name == "note" else 77
        if name == "finished":
            changed = "2020-01-01T00:00:00+00:00"
        edit(run, **{name: changed})
        assert any(place.startswith(name) for place in places(run)), name
        with pytest.raises(RunError, match="do not follow"):
            load_run(run)
        edit(run, **{name: value})
    assert verify(run).mismatches == ()


def test_a_timing_that_was_taken_out_is_missed(run):
    data = json.loads((run / "result.json").read_text())
    del data["result"]["timing"]
    (run / "result.json").write_text(json.dumps(data))
    assert [found.place for found in verify(run).mismatches] == ["/result/timing"]


@pytest.mark.parametrize(
    "fields",
    [
        {"latency_ms_p50": None},
        {"spent_usd": 0.01},
        {"retries": None},
        {"unsettled_calls": 1},
        {"unsettled_usd": 0.0},
        {"calls_asked": 10**6},
        {"tokens_per_s": 10**7},
        {**EFFORT, "computed_tokens_per_s": 1000.0},
        {"peak_share": 0.9},
    ],
    ids=lambda fields: list(fields)[-1],
)
def test_a_folder_without_the_file_is_held_against_records_and_spend_file(run, fields):
    (run / MEASURED).unlink()
    assert verify(run).mismatches == ()
    edit(run, **EFFORT)
    assert verify(run).mismatches == ()  # measured: nothing speaks against it
    edit(run, **fields)
    assert {place.split("/")[0] for place in places(run)} == {list(fields)[-1]}
