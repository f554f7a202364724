"""Runs sent to experiment trackers, with the real packages and their local back-ends, read back from there."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from prbench import report
from prbench.data import write_pairs
from prbench.errors import ConfigError, MissingExtraError
from prbench.report import check_tracker, trackers
from prbench.results import load_run
from small_suite import mirrored

HERE = Path(__file__).parent
RUN = ["-m", "longer", "-s", "pairs.jsonl", "-c", "none,profile", "--resamples", "100", "-o", "run"]


class Place:
    """A folder with a suite, where a Python that has the trackers is run."""

    def __init__(self, folder):
        self.folder = folder
        self.python = os.environ.get("TRACK_PYTHON", sys.executable)
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("WANDB", "MLFLOW"))},
            "PRBENCH_CACHE": str(folder / "cache"),
            "PYTHONPATH": str(Path(report.__file__).parents[2]),
            "WANDB_MODE": "offline",
            "MLFLOW_TRACKING_URI": f"sqlite:///{folder / 'mlflow.db'}",
        }

    def __call__(self, *arguments, code=0, **environment):
        said = subprocess.run(
            [self.python, *map(str, arguments)],
            cwd=self.folder,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert said.returncode == code, said.stderr[-3000:]
        return said


@pytest.fixture
def place(tmp_path):
    write_pairs(mirrored(), tmp_path / "pairs.jsonl")
    return Place(tmp_path)


@pytest.mark.parametrize("to", ["wandb", "mlflow"])
def test_a_tracker_holds_the_numbers_of_the_run(place, to):
    if subprocess.run([place.python, "-c", f"import {to}"], capture_output=True, check=False).returncode:
        pytest.skip(f"{to} is not installed: make test-track")
    for _ in range(2):  # sent twice, it is one run there
        said = place("-m", "prbench", "run", *RUN, "--track", to).stderr
        assert f"{to}: " in said
        assert "WARNING" not in said
    runs = json.loads(place(HERE / "tracked.py", to).stdout)
    assert len(runs) == 1
    result = load_run(place.folder / "run").result
    for found in runs.values():
        told = {name: value for name, value in found["numbers"].items() if not name.startswith("_")}
        assert told == {name: pytest.approx(value) for name, value in trackers.numbers(result).items()}
        assert found["numbers"]["none/accuracy"] == 0.5
        assert str(found["settings"]["resamples"]) == "100"
        assert found["settings"]["contexts"] == "none,profile"
        assert found["facts"]["prbench.grade"] == "was not tested for use of the user"
        assert found["files"] == ["config.toml", "result.json"]
    kept = b"".join(file.read_bytes() for file in place.folder.rglob("*.wandb")) + b"".join(
        file.read_bytes() for file in place.folder.rglob("mlflow.db")
    )
    assert kept
    assert b"glad of the" not in kept  # words of a post
    assert b"Get the" not in kept  # words of an answer


def test_a_tracker_that_refuses_leaves_the_run(place):
    if subprocess.run([place.python, "-c", "import mlflow"], capture_output=True, check=False).returncode:
        pytest.skip("mlflow is not installed: make test-track")
    said = place("-m", "prbench", "run", *RUN, "--track", "mlflow", code=2, MLFLOW_TRACKING_URI="nowhere://x").stderr
    assert "error: mlflow did not take the run" in said
    assert "Traceback" not in said
    assert (place.folder / "run" / "result.json").is_file()


def test_a_tracker_that_is_missing_is_said_before_anything_is_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wandb").mkdir()  # as wandb leaves it, which is no package
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(trackers.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"--track wandb needs the optional dependencies of 'wandb'"):
        check_tracker("wandb")
    with pytest.raises(ConfigError, match="did you mean 'mlflow'"):
        check_tracker("mlflw")
