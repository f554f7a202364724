"""SIGKILL at any moment, again and again: what was kept is kept, and the end is that of an undisturbed command."""

import contextlib
import json
import os
import random
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import attack_jobs
import scripted_writer
import tiny_models
from campaigns import Campaign, peak_mb, times
from fake_server import FakeServer, Fault
from prbench.data import write_pairs
from small_suite import mirrored
from split_suite import write_suite

SEED = 14
KILLS = times(20, short=2)
"""Of each job; there are six."""
IN_A_ROW = 4
"""Kills of one folder before it may finish."""
POSTS = Path(__file__).parents[2] / "examples" / "posts.csv"
MODEL = """
import os, time
from pathlib import Path

def score(question, answer, posts):
    Path(f"pid-{os.getpid()}").touch()
    time.sleep(0.002)
    text = " ".join(post.text for post in posts)
    return sum(text.count(word.strip(".")) for word in answer.split()) + len(answer) / 7
"""


class Job(NamedTuple):
    """Something that is started, killed, started again and compared."""

    start: Callable[[Path], list[tuple[Any, ...]]]
    """What to run, one after another, for an output of this name: functions of `attack_jobs` and arguments."""
    journals: tuple[str, ...]
    """Files whose whole lines must never go."""
    outcome: Callable[[Path], object]
    """What must be equal at the end."""


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.save_encoder(tmp_path_factory.mktemp("encoder"))


def _planner(body: Mapping[str, Any]) -> str:
    text = body["messages"][-1]["content"]
    topic, taste = re.search(r"Which (\w+) should", text), re.search(r"glad of the (\w+)", text)
    return f"- ASPECT {taste and taste[1]} {topic and topic[1]}\n- keep it short"


@pytest.fixture
def slow_server() -> Iterator[FakeServer]:
    """Plans and writes, each reply after a while."""

    def answer(body: dict[str, Any]) -> str:
        text = scripted_writer.body_text(body)
        return _planner(body) if "Which " in text and "glad of" in text else scripted_writer.write(body)

    with FakeServer(answer=answer, plan=lambda seen: Fault("slow", seconds=0.03)) as server:
        yield server


def _result(out: Path) -> object:
    found = json.loads((out / "result.json").read_text())
    found["result"].pop("timing")
    records = [json.loads(line) for line in (out / "records.jsonl").read_text().splitlines()]
    kept = sorted((line["pair"], line["context"], line["order"], line["status"], str(line)) for line in records)
    return found, [line[:4] for line in kept]


def _run(*more: str) -> Callable[[Path], Job]:
    def make(folder: Path) -> Job:
        write_pairs(mirrored(couples=5, questions=6), folder / "pairs.jsonl")
        (folder / "slow_model.py").write_text(MODEL)
        said = ["--suite", "pairs.jsonl", "--model", "py:slow_model:score", "--resamples", "100", "--no-cache", *more]
        return Job(
            lambda out: [(attack_jobs.command, ["run", *said, "-o", str(out), "-q"])], ("records.jsonl",), _result
        )

    return make


def _train(folder: Path, encoder: Path) -> Job:
    write_suite(folder / "suite.jsonl")
    return Job(
        lambda out: [(attack_jobs.training, str(out), str(encoder))],
        (),
        lambda out: (out / "weights.safetensors").read_bytes(),
    )


def _plan(folder: Path, encoder: Path, server: FakeServer) -> Job:
    write_pairs(mirrored(couples=3), folder / "pairs.jsonl")
    said = ["plan", "--suite", "pairs.jsonl", "--model", f"chat:p@{server.url}", "--no-cache", "--concurrency", "2"]
    said += ["--matcher", f"embed:{encoder}", "--threshold", "0.9", "--resamples", "100"]

    def outcome(out: Path) -> object:
        lines = [json.loads(line) for line in (out / "plans.jsonl").read_text().splitlines()]
        return sorted((line["key"], line["status"], tuple(line["plan"])) for line in lines)

    return Job(lambda out: [(attack_jobs.command, [*said, "-o", str(out / "plans.jsonl")])], ("plans.jsonl",), outcome)


def _build(folder: Path, server: FakeServer) -> Job:
    said = ["--model", f"chat:author@{server.url}", "--concurrency", "2", "-q"]

    def start(out: Path) -> list[tuple[Any, ...]]:
        aspects = str(out / "aspects.jsonl")
        return [
            (attack_jobs.command, ["build", "aspects", str(POSTS), "-o", aspects, *said]),
            (attack_jobs.command, ["build", "pairs", aspects, "-o", str(out / "pairs"), "--mirror", *said]),
        ]

    def outcome(out: Path) -> object:
        names = ("aspects.jsonl", "pairs/pairs.parquet", "pairs/rejects.jsonl")
        return {name: (out / name).read_bytes() if (out / name).exists() else None for name in names}

    return Job(start, ("aspects.calls.jsonl", "pairs/calls.jsonl", "pairs/answers.jsonl"), outcome)


def _study(folder: Path) -> Job:
    files = ("candidates.jsonl", "grades.jsonl")

    def outcome(out: Path) -> object:
        found = [json.loads((out / name).read_text()) for name in ("study.json", "curves.json")]
        return found, [sorted((out / name).read_text().splitlines()) for name in files]

    return Job(lambda out: [(attack_jobs.study, str(out))], files, outcome)


def _lines(out: Path, job: Job) -> dict[str, set[bytes]]:
    """Whole lines of a job's journals."""
    found = {}
    for name in job.journals:
        data = (out / name).read_bytes() if (out / name).is_file() else b""
        found[name] = {line for line in data.splitlines(keepends=True) if line.endswith(b"\n")}
    return found


def _begun(out: Path) -> bool:
    return out.exists() and any(path.is_file() for path in out.rglob("*"))


class Killer:
    """Starts a job's processes, kills them at moments drawn by a seed, and looks at what is left."""

    def __init__(self, forks: Any, folder: Path, job: Job, campaign: Campaign, chance: random.Random) -> None:
        self.forks, self.folder, self.job, self.campaign, self.chance = forks, folder, job, campaign, chance
        self.first_s = self.whole_s = 0.0
        """Until its first file is there, and until it ends, when nothing disturbs it."""

    def start(self, step: tuple[Any, ...]) -> Any:
        function, *arguments = step
        environment = {"PRBENCH_CACHE": str(self.folder / "cache")}
        process = self.forks.Process(target=function, args=(str(self.folder), environment, *arguments))
        process.start()
        return process

    def finish(self, out: Path) -> object:
        """Let it run to its end; what it came to."""
        (self.folder / "said.txt").unlink(missing_ok=True)
        began = time.monotonic()
        for step in self.job.start(out):
            process = self.start(step)
            while not self.whole_s and process.exitcode is None and not _begun(out):
                self.first_s = time.monotonic() - began
                process.join(0.005)
            process.join(120)
            said = (self.folder / "said.txt").read_text() if (self.folder / "said.txt").exists() else ""
            if process.exitcode != 0 or "Traceback" in said:
                self.campaign.tracebacks.append(f"{out.name}: code {process.exitcode}: {said[-1500:]}")
                if process.exitcode is None:
                    process.kill()
                return None
        self.whole_s = self.whole_s or time.monotonic() - began
        return self.job.outcome(out)

    def torment(self, out: Path, most: int) -> int:
        """Kill it up to `most` times; returns how often it was still alive to be killed."""
        killed, before = 0, _lines(out, self.job)
        while killed < most:
            rest_s = self.chance.uniform(0.8 * self.first_s, self.whole_s)
            alive, started = False, time.monotonic()
            for step in self.job.start(out):
                process, began = self.start(step), time.monotonic()
                process.join(rest_s)
                alive = process.exitcode is None
                if alive:
                    self.campaign.remember(peak_mb(process.pid))
                    process.kill()
                    process.join()
                    alive = process.exitcode != 0
                    break
                rest_s = max(0.0, rest_s - (time.monotonic() - began))
            if not alive:  # it was faster than before: the machine may be less busy now
                self.whole_s = min(self.whole_s, time.monotonic() - started)
                self.first_s = min(self.first_s, self.whole_s / 2)
                return killed
            killed += 1
            now = _lines(out, self.job)
            for name, lines in before.items():
                if gone := lines - now[name]:
                    self.campaign.lost.append(f"{out.name}: {len(gone)} lines of {name} after kill {killed}")
            before = now
        return killed


def _torment(killer: Killer, kills: int) -> None:
    """Kill a job so often in all, some times in a row each, and compare every end with an undisturbed one."""
    campaign, folder = killer.campaign, killer.folder
    wanted = killer.finish(folder / "whole")
    assert wanted is not None, campaign.wrong
    for number in range(20 * kills):
        if campaign.tried >= kills:
            break
        out = folder / f"killed{number}"
        campaign.tried += killer.torment(out, min(IN_A_ROW, kills - campaign.tried))
        before = _lines(out, killer.job)
        found = killer.finish(out)
        if found is not None and found != wanted:
            campaign.changed.append(f"{out.name}: another end than without kills")
        after = _lines(out, killer.job) if found is not None else before
        campaign.lost += [
            f"{out.name}: lines of {name} at the end" for name, lines in before.items() if lines - after[name]
        ]
    assert campaign.tried >= kills


JOBS = ("run", "workers", "train", "plan", "build", "studies")


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_killed_at_any_moment_nothing_is_lost(
    name: str, forks: Any, tmp_path: Path, encoder: Path, slow_server: FakeServer, attack: Any
) -> None:
    makers: dict[str, Callable[[], Job]] = {
        "run": lambda: _run()(tmp_path),
        "workers": lambda: _run("--workers", "2")(tmp_path),
        "train": lambda: _train(tmp_path, encoder),
        "plan": lambda: _plan(tmp_path, encoder, slow_server),
        "build": lambda: _build(tmp_path, slow_server),
        "studies": lambda: _study(tmp_path),
    }
    with attack(f"hard kills: {name}") as campaign:
        _torment(Killer(forks, tmp_path, makers[name](), campaign, random.Random(f"{SEED} {name}")), KILLS)


SIGNALS = {"hard kills: single workers": signal.SIGKILL, "frozen workers": signal.SIGSTOP}


@pytest.mark.slow
@pytest.mark.parametrize("name", SIGNALS)
def test_killed_and_frozen_workers_cost_nothing(name: str, forks: Any, tmp_path: Path, attack: Any) -> None:
    """Here the workers are killed or stopped one after another while their parent goes on."""
    job = _run("--workers", "2")(tmp_path)
    with attack(name) as campaign:
        chance = random.Random(f"{SEED} {name}")
        killer = Killer(forks, tmp_path, job, campaign, chance)
        wanted = killer.finish(tmp_path / "whole")
        for number in range(times(10, short=1)):
            out = tmp_path / f"killed{number}"
            seen = set(tmp_path.glob("pid-*"))
            (step,) = job.start(out)
            process = killer.start(step)
            while process.exitcode is None and not (new := set(tmp_path.glob("pid-*")) - seen):
                process.join(0.01)
            process.join(chance.uniform(0, 0.3))
            worker = int(min(new).name[4:])
            campaign.tried += 1
            campaign.remember(peak_mb(worker))
            _send(worker, SIGNALS[name])
            process.join(120)
            if process.exitcode != 0 or "Traceback" in (tmp_path / "said.txt").read_text():
                campaign.tracebacks.append((tmp_path / "said.txt").read_text()[-1500:])
            elif job.outcome(out) != wanted:
                campaign.changed.append(f"{out.name}: another end than undisturbed")
            elif _is_there(worker):
                campaign.lost.append(f"{out.name}: worker {worker} was left standing")
                _send(worker, signal.SIGKILL)


def _send(pid: int, kind: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, kind)


def _is_there(pid: int) -> bool:
    """Whether a process runs or stands still; what has ended and was not waited for has not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
