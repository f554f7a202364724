"""Jobs that are killed: commands and studies that run in a process of their own, forked from one that has imported all.

A fork starts in milliseconds where a new interpreter takes seconds, so that a hundred kills fit into minutes. Jobs are
opened by name in the forked process; models for `py:` addresses live here too.
"""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from small_suite import mirrored
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
    from prbench.studies.best_of_n import BestOfNConfig, best_of_n, parse_model

    models = [parse_model(text) for text in ("longer", "py:small_suite:follows_posts")]
    settings = BestOfNConfig.of(**{"policy": "scribe", "n": 4, "judge_pairs": 24, "resamples": 100, "models": models})
    suite = world(couples=3, questions=4)
    best_of_n(settings, Path(out), suite=suite, policy=SlowScribe(), judge=SlowJudge(), say=lambda line: None)


def training(folder: str, environment: Mapping[str, str], out: str, encoder: str) -> None:
    """A training that takes its time over every epoch."""
    settle(folder, environment)
    from prbench.train import TrainConfig, train

    options = TrainConfig(method="user-bt", encoder=f"embed:{encoder}", epochs=10, patience=10, batch=4, shots=2)
    train(options, Path(out), suite="suite.jsonl", listener=lambda epoch: time.sleep(0.05))


AT_ONCE = 4
"""Paid requests that a job has under way."""


def paid(folder: str, environment: Mapping[str, str], name: str, url: str, out: str, limit_usd: float | None) -> None:
    """Pay for a run, for plans or for texts of a build, up to a limit.

    It exits with 3 where that is reached, and with 4 where a request failed too often and the same command goes on.
    """
    settle(folder, environment)
    from prbench.config import ModelOptions, Price
    from prbench.errors import BudgetError, ModelError
    from prbench.models.remote.wire import Backoff

    price = Price(per_million_in=1000.0, per_million_out=1000.0)
    options = ModelOptions(price=price, concurrency=AT_ONCE, timeout_s=20, retries=2, max_tokens=256)
    backoff = Backoff(initial_s=0.01, max_s=0.05, jitter_s=0.01)
    jobs = {"run": _paid_run, "plan": _paid_plans, "build": _paid_texts}
    try:
        jobs[name](url.removeprefix("chat:"), options, backoff, Path(out), limit_usd)
    except BudgetError:
        sys.exit(3)
    except ModelError as error:
        if "goes on from there" not in error.hint:
            raise
        sys.exit(4)


def _paid_run(url: str, options: Any, backoff: Any, out: Path, limit_usd: float | None) -> None:
    from prbench.config import RunConfig
    from prbench.data import Suite
    from prbench.models.remote import chat
    from prbench.results import RunFolder
    from prbench.run import Session, execute

    judge = chat.load(f"judge@{url}", options, backoff=backoff)
    config = RunConfig.of(suite="small", model="judge", contexts="profile", resamples=100)
    session = Session(config, model=judge, suite=Suite.of(mirrored(couples=4, questions=5), name="small"))
    execute(session, RunFolder(out), max_cost_usd=limit_usd)


def _paid_plans(url: str, options: Any, backoff: Any, out: Path, limit_usd: float | None) -> None:
    from prbench.models.remote import chat
    from prbench.plan import Planner, needs_of
    from prbench.run import PlanFile

    out.mkdir(exist_ok=True)
    planner = Planner(chat.load_generator(f"planner@{url}", options, backoff=backoff))
    file = PlanFile(out / "plans.jsonl", planner, needs_of(mirrored(couples=4, questions=6)))
    with file.budget(limit_usd) as budget:
        file.write(None, budget)


def _paid_texts(url: str, options: Any, backoff: Any, out: Path, limit_usd: float | None) -> None:
    from prbench.build.written import Decoding
    from prbench.build.written.replies import Replies, WritingRequest
    from prbench.calls import Budget
    from prbench.calls.budget import FILE
    from prbench.models.remote import chat
    from prbench.types import Message, Prompt

    out.mkdir(exist_ok=True)
    writer = chat.load_generator(f"writer@{url}", options, backoff=backoff)
    requests = {str(n): WritingRequest(Prompt((Message("user", f"Say {n}."),)), lambda text: text) for n in range(60)}
    with (
        Replies(writer, out / "calls.jsonl", Decoding(max_tokens=64)) as author,
        Budget(out / FILE, limit_usd, spent_usd=author.cost_usd) as author.budget,
    ):
        author.ask("texts", requests)
