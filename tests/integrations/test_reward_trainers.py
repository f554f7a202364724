"""Trainers' own code against a real reward server: TRL takes a step, OpenRLHF and verl ask as they would in a run.

Run by `make test-clients`, which installs them into environments of their own and names their Pythons in CLIENTS_PYTHON
(TRL, OpenRLHF) and VERL_PYTHON.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

import prbench
from prbench.data import Suite
from prbench.serve import ServeConfig, serving
from prbench.types import Outcome
from serve_models import Recorder, known_score
from small_suite import mirrored

HERE = Path(__file__).parent
SOURCE = Path(prbench.__file__).parents[1]
PYTHONS = {"trl": "CLIENTS_PYTHON", "openrlhf": "CLIENTS_PYTHON", "verl": "VERL_PYTHON"}
SUITE = Suite.of(mirrored(couples=1, questions=4), name="small")


def run(framework, script, *arguments):
    """The lines of JSON that a script prints under the framework's own Python."""
    if PYTHONS[framework] not in os.environ:
        pytest.skip("make test-clients")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (HERE.parent / "support", SOURCE))),
        "HF_HUB_OFFLINE": "1",
        "WANDB_MODE": "disabled",
    }
    found = subprocess.run(
        [os.environ[PYTHONS[framework]], str(HERE / script), *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert found.returncode == 0, found.stderr[-3000:]
    return [json.loads(line) for line in found.stdout.splitlines() if line.startswith('{"')]


@pytest.fixture
def model():
    return Recorder()


@pytest.fixture
def url(tmp_path, model):
    config = ServeConfig.of(model="recorder", port=0, state=tmp_path / "judged.jsonl")
    with serving(config, model=model, suite=SUITE) as url:
        yield url


def expected(answers, question="Which tea should I get?"):
    return [known_score(question, answer, SUITE[0].profile) for answer in answers]


@pytest.mark.parametrize("framework", list(PYTHONS))
def test_the_recorded_signatures_are_those_of_the_installed_release(framework):
    recorded = json.loads((HERE.parent / "serve" / "signatures.json").read_text())
    found = run(framework, "read_signatures.py", framework)
    assert found == [row for row in recorded if row["framework"] == framework]


def test_trl_takes_a_step_that_the_server_pays_for(url, model, tmp_path):
    (found,) = run("trl", "trl_step.py", url, tmp_path)
    assert len(found["seen"]) == 8
    asked = {(view.question, view.answer) for batch in model.batches for view in batch}
    payable = {known_score(question, answer, SUITE[0].profile) for question, answer in asked}
    assert {score for _, score in found["seen"]} == payable
    assert found["reward"] == pytest.approx(sum(score for _, score in found["seen"]) / 8, abs=1e-5)
    assert found["dropped"] == 0
    assert found["moved"]


class OneLost(Recorder):
    """Has no score for the first answer that it meets to each question."""

    def __init__(self):
        super().__init__()
        self.lost = {}

    def outcome(self, view):
        if self.lost.setdefault(view.question, view.answer) == view.answer:
            return Outcome.invalid("lost")
        return super().outcome(view)


@pytest.mark.parametrize("model", [OneLost()])
def test_grpo_leaves_dropped_samples_out_of_their_group(url, model, tmp_path):
    (found,) = run("trl", "trl_step.py", url, tmp_path)
    scores = [score for _, score in found["seen"]]
    for start in (0, 4):
        group = list(zip(scores[start : start + 4], found["advantages"][start : start + 4], strict=True))
        assert 0 < sum(score is None for score, _ in group) < 4
        assert all(advantage == 0 for score, advantage in group if score is None)
        assert sum(advantage for _, advantage in group) == pytest.approx(0, abs=1e-4)
    paid = [score for score in scores if score is not None]
    assert found["reward"] == pytest.approx(sum(paid) / len(paid), abs=1e-5)
    assert found["dropped"] == 8 - len(paid)
    assert found["moved"]


def test_openrlhf_asks_by_url_and_by_file(url, monkeypatch):
    monkeypatch.setenv("PRBENCH_REWARD_URL", url)
    (found,) = run("openrlhf", "openrlhf_ask.py", url)
    assert found["http"] == expected(found["answers"])
    assert found["file"] == pytest.approx(expected(found["answers"]))
    paid, nothing = dict.fromkeys(("reward", "scores"), expected(found["answers"])[0]), {"reward": None, "scores": None}
    assert found["known"] == {"http": pytest.approx(paid), "file": pytest.approx(paid)}
    assert found["unknown"] == {"http": nothing, "file": nothing}  # OpenRLHF goes on, but pays no number
    assert found["logged_before"] == 0
    assert len(found["errors"]) == 1
    assert "nobody" in found["errors"][0]


def test_verl_asks_sample_by_sample_and_by_batch(url):
    (found,) = run("verl", "verl_ask.py", url)
    assert found["naive"] == expected(found["answers"])
    assert found["batch"] == pytest.approx(expected(found["answers"]))
