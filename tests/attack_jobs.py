"""Jobs that are killed: commands and studies that run in a process of their own, forked from one that has imported all.

A fork starts in milliseconds where a new interpreter takes seconds, so that a hundred kills fit into minutes. Jobs are
opened by name in the forked process; models for `py:` addresses live here too.
"""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from study_world import HashJudge, Scribe, world

PRELOADED = [
    "attack_jobs",
    "numpy",
    "prbench",
    "prbench.build.written",
    "prbench.cli",
    "prbench.cli.commands",
    "prbench.models.remote.chat",
    "prbench.models.personal.rater",
    "prbench.plan",
    "prbench.report",
    "prbench.results",
    "prbench.run",
    "prbench.studies.best_of_n",
    "prbench.train",
    "scipy.stats",
    "torch",
    "transformers",
]
"""What the process that is forked has imported; nothing in it has run, so nothing holds a lock."""


def nothing() -> None:
    """Start and end."""


def settle(folder: str, environment: Mapping[str, str]) -> None:
    """Work in a folder and say everything into its `said.txt`."""
    os.chdir(folder)
    os.environ.update(environment)
    said = os.open("said.txt", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.dup2(said, 1)
    os.dup2(said, 2)


def command(folder: str, environment: Mapping[str, str], arguments: Sequence[str]) -> None:
    """Run `prbench` with arguments."""
    settle(folder, environment)
    sys.path.insert(0, folder)
    sys.argv = ["prbench", *arguments]
    from prbench.cli import main

    main()


class SlowScribe(Scribe):
    """A policy that takes its time."""

    def generate(self, prompts, **settings):
        for found in super().generate(prompts, **settings):
            time.sleep(0.01)
            yield found


class SlowJudge(HashJudge):
    """A judge that takes its time."""

    def grade(self, gradings):
        for found in super().grade(gradings):
            time.sleep(0.004)
            yield found


def study(folder: str, environment: Mapping[str, str], out: str) -> None:
    """A best-of-N study: candidates, scores, an examined judge, grades, curves."""
    settle(folder, environment)
    from prbench.studies.best_of_n import best_of_n, make_settings, parse_model

    models = [parse_model(text) for text in ("longer", "py:small_suite:follows_posts")]
    settings = make_settings({"policy": "scribe", "n": 4, "judge_pairs": 24, "resamples": 100, "models": models})
    suite = world(couples=3, questions=4)
    best_of_n(settings, Path(out), suite=suite, policy=SlowScribe(), judge=SlowJudge(), say=lambda line: None)


def training(folder: str, environment: Mapping[str, str], out: str, encoder: str) -> None:
    """A training that takes its time over every epoch."""
    settle(folder, environment)
    from prbench.train import TrainConfig, train

    options = TrainConfig(method="user-bt", encoder=f"embed:{encoder}", epochs=10, patience=10, batch=4, shots=2)
    train(options, Path(out), suite="suite.jsonl", listener=lambda epoch: time.sleep(0.05))
