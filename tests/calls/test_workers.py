"""Several worker processes: the same records as in one process, whoever dies on the way."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prbench import evaluate
from prbench.calls import Workers, cores, processes
from prbench.calls.ask import InProcess
from prbench.calls.processes import _GONE, _WorkerProcess
from prbench.calls.shards import FEWEST_CALLS, Shard, cut
from prbench.calls.worker import ModelOrigin, WorkerModel
from prbench.config import ModelOptions, RunConfig
from prbench.data import Suite, write_pairs
from prbench.errors import BudgetError, ConfigError, ModelError
from prbench.models import load_model
from prbench.results import RunFolder
from prbench.run import Session, execute
from prbench.run.engine import Engine
from prbench.types import AnswerView
from small_suite import follows_posts, mirrored

MODELS = """
import os, time
from pathlib import Path

from prbench.models import ModelCard
from prbench.types import Channel, Message, Outcome, Prompt


def score(question, answer, posts):
    text = " ".join(post.text for post in posts)
    return sum(text.count(word.strip(".")) for word in answer.split()) + len(answer) / 7


def slow(question, answer, posts):
    Path(f"pid-{os.getpid()}").touch()
    time.sleep(0.004)
    return score(question, answer, posts)


def picky(question, answer, posts):
    if "tea" in question:
        raise ValueError("no tea")
    return score(question, answer, posts)


def judge(question, first, second, posts):
    return score(question, first, posts) - score(question, second, posts) + 0.1


def threads(question, answer):
    return int(os.environ["OMP_NUM_THREADS"])


def poisoned(question, answer, posts):
    if "tea" in question and "u0a" in posts[0].text and not Path("mended").exists():
        os.kill(os.getpid(), 9)
    return score(question, answer, posts)


def deadly(question, answer):
    os.kill(os.getpid(), 9)


class Paid:
    card = ModelCard(address="paid", revision="1", reusable=False)

    def render(self, view):
        return Prompt((Message("user", view.question), Message("assistant", view.answer)))

    def rate(self, views):
        for index, view in enumerate(views):
            time.sleep(0.01)
            yield index, Outcome.scored(len(view.answer), cost_usd=1.0)


class Unlucky(Paid):
    def rate(self, views):
        for index, outcome in super().rate(views):
            with open("asked", "a") as handle:
                handle.write(f"{views[index].answer}\\n")
            if index == len(views) - 1 and not Path("died").exists():
                Path("died").touch()
                os.kill(os.getpid(), 9)
            yield index, outcome


class Wordy(Paid):
    def rate(self, views):
        Path(f"pid-{os.getpid()}").touch()
        for index, outcome in super().rate(views):
            yield index, outcome.model_copy(update={"raw": "word " * 400_000})


class Buggy(Paid):
    def rate(self, views):
        yield 0, {}["no such key"]


class Forgetful(Paid):
    def rate(self, views):
        for index, view in enumerate(views):
            if "tea" not in view.question:
                yield index, Outcome.scored(len(view.answer))
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module of models, of a name of its own, in the working folder."""
    name = f"worker_models_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return f"py:{name}:"


def session(address, contexts="none,profile,other", pairs=None):
    suite = Suite.of(pairs or mirrored(), name="small")
    config = RunConfig.of(suite="small", model=address, contexts=contexts, resamples=100)
    return Session(config, suite=suite)


def run(address, out, workers, listening=None, max_cost_usd=None, **settings):
    return execute(
        session(address, **settings),
        RunFolder(Path(out)),
        listening=listening,
        max_cost_usd=max_cost_usd,
        workers=Workers(count=workers),
    )


def result_of(found):
    return {key: value for key, value in found.to_json()["result"].items() if key != "timing"}


def by_slot(found):
    return {record.slot: record for record in found.records}


def lines_of(folder):
    return [json.loads(line) for line in (Path(folder) / "records.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("name", ["score", "picky", "judge", "Forgetful"])
def test_the_records_are_those_of_one_process(module, name):
    contexts = "none" if name == "Forgetful" else "none,profile,other"
    one = run(module + name, "one", 1, contexts=contexts)
    for workers in (2, 3):
        several = run(module + name, f"run{workers}", workers, contexts=contexts)
        assert by_slot(several) == by_slot(one)
        assert result_of(several) == result_of(one)
        assert len(lines_of(f"run{workers}")) == len(one.records)


def test_a_local_model_gets_the_same_scores_and_its_tokens_are_summed(tiny_reward_model, tmp_path):
    one, two = (run(f"hf:{tiny_reward_model}", tmp_path / str(workers), workers) for workers in (1, 2))
    for slot, record in by_slot(one).items():
        other = by_slot(two)[slot]
        assert other.chosen_score == pytest.approx(record.chosen_score, abs=1e-4)
        assert other.rejected_score == pytest.approx(record.rejected_score, abs=1e-4)
    ones, twos = (found.timing for found in (one, two))
    assert twos.tokens_naive == ones.tokens_naive > 0
    assert ones.tokens_computed <= twos.tokens_computed < twos.tokens_naive
    assert twos.calls_asked == ones.calls_asked


def test_an_answer_that_comes_twice_counts_once(module):
    class Twice(InProcess):
        def ask(self, calls):
            for answer in super().ask(calls):
                yield answer
                yield answer

    paid, kept = session(module + "Paid", contexts="none"), []
    work = paid.work()
    engine = Engine(paid.model.card, Twice(paid.model), None, kept.extend)
    engine.execute(work)
    assert (engine.asked, engine.budget.spent_usd, len(kept)) == (len(work.calls), len(work.calls), len(work.tasks))


def test_more_workers_continue_the_same_run(module):
    one = run(module + "score", "run", 1)
    again = run(module + "score", "run", 2)
    assert again.timing.calls_asked == 0
    assert by_slot(again) == by_slot(one)


def test_cores_are_shared_out(module):
    found = run(module + "threads", "run", 2, contexts="none")
    assert {record.chosen_score for record in found.records} == {float(max(1, cores() // 2))}


def test_a_worker_killed_in_the_middle_costs_nothing(module):
    whole = run(module + "slow", "whole", 1)
    killed = []

    def listening(work, there):
        def kill(record, spent_usd):
            if len(lines) == 20:
                (place, *_) = [path for path in Path().glob("pid-*") if int(path.name[4:]) != os.getpid()]
                killed.append(int(place.name[4:]))
                os.kill(killed[0], signal.SIGKILL)
            lines.append(record)

        lines = []
        return kill

    found = run(module + "slow", "killed", 2, listening)
    assert killed
    assert by_slot(found) == by_slot(whole)
    assert len(lines_of("killed")) == len(whole.records)
    assert found.timing.note == "1 worker process(es) died; their open calls were asked again"


def listening_once(count, act):
    """Do something to the process of a worker when so many records are there."""
    lines = []

    def listening(work, there):
        def heard(record, spent_usd):
            lines.append(record)
            if len(lines) == count:
                (place, *_) = [path for path in Path().glob("pid-*") if int(path.name[4:]) != os.getpid()]
                act(int(place.name[4:]))

        return heard

    return listening


def test_a_frozen_worker_is_noticed_replaced_and_counted(module, monkeypatch):
    monkeypatch.setattr(processes, "FROZEN_SECONDS", 0.5)
    whole = run(module + "slow", "whole", 1)
    frozen = []

    def freeze(pid):
        frozen.append(pid)
        os.kill(pid, signal.SIGSTOP)

    found = run(module + "slow", "frozen", 2, listening_once(20, freeze))
    assert by_slot(found) == by_slot(whole)
    assert len(lines_of("frozen")) == len(whole.records)
    said = "1 worker process(es) died (1 stood still and were ended); their open calls were asked again"
    assert found.timing.note == said
    assert wait_for_end(frozen)


def test_a_worker_that_stands_still_for_a_moment_is_left_alone(module, monkeypatch):
    monkeypatch.setattr(processes, "FROZEN_SECONDS", 5.0)

    def pause(pid):
        os.kill(pid, signal.SIGSTOP)
        threading.Timer(1.5, os.kill, (pid, signal.SIGCONT)).start()

    found = run(module + "slow", "paused", 2, listening_once(20, pause))
    assert found.timing.note is None
    assert len(lines_of("paused")) == len(found.records)


def test_a_worker_frozen_in_the_middle_of_a_long_message_is_noticed(module, monkeypatch):
    monkeypatch.setattr(processes, "FROZEN_SECONDS", 0.5)

    def freeze(pid):
        time.sleep(1.0)  # nobody listens: by now it waits in the middle of an answer that no pipe can hold
        os.kill(pid, signal.SIGSTOP)

    found = run(module + "Wordy", "run", 2, listening_once(1, freeze), contexts="none")
    assert "1 stood still" in found.timing.note
    assert {record.status for record in found.records} == {"ok"}


def test_a_call_that_kills_its_worker_fails_alone_and_is_asked_again_later(module):
    broken = run(module + "poisoned", "run", 2, contexts="profile")
    failed = {slot for slot, record in by_slot(broken).items() if record.status == "failed"}
    assert failed == {("u0a:tea", "profile", "rated", 0)}
    assert {by_slot(broken)[slot].reason for slot in failed} == {
        "the worker process that was asked was killed by SIGKILL"
    }
    Path("mended").touch()
    mended = run(module + "poisoned", "run", 2, contexts="profile")
    assert by_slot(mended) == by_slot(run(module + "poisoned", "whole", 1, contexts="profile"))
    assert mended.timing.calls_asked == 2


@pytest.mark.parametrize("questions", [6, 1])
def test_a_worker_killed_at_the_last_call_of_its_shard_costs_nothing(module, questions):
    pairs = mirrored(couples=1, questions=questions)[:questions]
    found = run(module + "Unlucky", "run", 2, contexts="none", pairs=pairs)
    asked = Path("asked").read_text().splitlines()
    assert len(asked) == len(set(asked)) + 1  # what was answered is not asked again
    assert {record.status for record in found.records} == {"ok"}


def test_a_worker_killed_in_the_middle_of_a_long_message_is_a_dead_worker_and_no_crash(module):
    worker = _WorkerProcess(ModelOrigin.here(load_model(module + "Wordy"), module + "Wordy", ModelOptions(), threads=1))
    assert worker.connection.recv().kind == "ready"
    worker.take(Shard(0, (("key", AnswerView("Tea?", "Green.")),)))
    assert worker.connection.poll(60)  # its answer has begun to come, and is longer than what a pipe holds
    os.kill(worker._process.pid, signal.SIGKILL)
    worker._process.wait()
    with pytest.raises(_GONE):
        worker.connection.recv()
    assert worker.wait() == "was killed by SIGKILL"


def test_a_model_that_always_kills_its_worker_is_an_error(module):
    with pytest.raises(ModelError, match="workers die before they answer; the last one was killed by SIGKILL"):
        run(module + "deadly", "run", 2, contexts="none")
    assert not Path("run").exists()


def test_a_worker_that_cannot_start_is_an_error(module, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(ModelError, match="the last one ended with code 1"):
        run(module + "score", "run", 2)


def test_a_bug_keeps_its_traceback(module):
    with pytest.raises(KeyError, match="no such key") as found:
        run(module + "Buggy", "run", 2, contexts="none")
    assert 'yield 0, {}["no such key"]' in found.value.__notes__[0]


def test_another_model_under_the_same_address_is_refused(module):
    place = ModelOrigin.here(load_model(module + "score"), module + "score", ModelOptions(), threads=1)
    assert WorkerModel(place).model.card.address == module + "score"
    with pytest.raises(ModelError, match="opened another model than the run's"):
        _ = WorkerModel(place._replace(identity="another")).model


def test_a_limit_on_cost_stops_the_workers(module):
    with pytest.raises(BudgetError, match="stopped after"):
        run(module + "Paid", "run", 2, contexts="none", max_cost_usd=5.0)
    kept = lines_of("run")
    assert 0 < len({call["key"] for line in kept for call in line["calls"]}) < 12
    found = run(module + "Paid", "run", 2, contexts="none", max_cost_usd=100.0)
    assert by_slot(found) == by_slot(run(module + "Paid", "whole", 1, contexts="none"))


def test_modules_in_the_working_folder_do_not_stand_in_for_others(module, monkeypatch):
    Path("random.py").write_text("raise SystemExit('not this one')")
    monkeypatch.setattr(
        sys, "path", [entry for entry in sys.path if entry not in ("", str(Path.cwd()))] + [str(Path.cwd())]
    )
    assert len(run(module + "score", "run", 2).records) == 108


def test_what_cannot_be_shared_out_is_refused(module, tmp_path):
    with pytest.raises(ConfigError, match="Python object cannot be sent"):
        evaluate(follows_posts, mirrored(), workers=2)
    with pytest.raises(ConfigError, match="answers elsewhere"):
        evaluate("chat:judge@http://127.0.0.1:9/v1", mirrored(), workers=2)
    with pytest.raises(ConfigError, match="workers is 0"):
        evaluate("longer", mirrored(), workers=0)
    with pytest.raises(ConfigError, match="unknown engine 'rey'"):
        evaluate("longer", mirrored(), engine="rey")
    (tmp_path / "scores.jsonl").write_text('{"id": "u0a:tea", "chosen_score": 1, "rejected_score": 0}\n')
    with pytest.raises(ConfigError, match="nothing is asked"):
        evaluate(f"stored:{tmp_path}/scores.jsonl", mirrored(), contexts="none", workers=2)


def command(module, out):
    arguments = ["--suite", "pairs.jsonl", "--model", f"{module}slow", "--resamples", "100", "--workers", "2"]
    return [sys.executable, "-m", "prbench", "run", *arguments, "-o", str(out), "--format", "json", "-q"]


def started(module, out):
    """A run in a process of its own, in the middle of its work, and its workers."""
    process = subprocess.Popen(
        command(module, out), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        workers = [int(path.name[4:]) for path in Path().glob("pid-*")]
        if len(workers) == 2 and (out / "records.jsonl").stat().st_size > 20_000:
            return process, workers
        time.sleep(0.01)
    raise AssertionError(process.communicate())


def is_alive(pid):
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for_end(pids):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and any(map(is_alive, pids)):
        time.sleep(0.05)
    return not any(map(is_alive, pids))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_their_parent_and_the_run_can_be_continued(module, tmp_path, number):
    write_pairs(mirrored(couples=12, questions=12), "pairs.jsonl")
    process, workers = started(module, tmp_path / "run")
    os.killpg(process.pid, signal.SIGINT) if number == signal.SIGINT else process.kill()
    _, said = process.communicate(timeout=30)
    assert wait_for_end(workers)
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert "the same command continues" in said
        assert "Traceback" not in said
    there = len(lines_of("run"))
    found = subprocess.run(command(module, tmp_path / "run"), capture_output=True, text=True, check=True)
    timing = json.loads(found.stdout)["result"]["timing"]
    assert timing["calls_asked"] < json.loads(found.stdout)["result"]["usage"]["distinct_calls"]
    slots = [(line["pair"], line["context"]) for line in lines_of("run")]
    assert there < len(slots) == len(set(slots)) == 3 * 12 * 24


@given(
    counts=st.lists(st.integers(1, 200), min_size=1, max_size=12),
    workers=st.integers(1, 9),
    most=st.integers(FEWEST_CALLS, 512),
    shown=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_every_call_is_in_one_shard_and_users_are_cut_as_little_as_possible(counts, workers, most, shown):
    calls = {
        f"{owner}-{n}": AnswerView("?" if shown else f"{owner}?", f"{n}", user=f"{owner}" if shown else None)
        for owner, count in enumerate(counts)
        for n in range(count)
    }
    shards = cut(calls, workers, most)
    keys = [key for shard in shards for key, _ in shard.calls]
    assert sorted(keys) == sorted(calls)
    assert [shard.number for shard in shards] == list(range(len(shards)))
    limit = max(len(shard.calls) for shard in shards)
    assert limit <= most
    assert len(shards) >= min(2, workers, len(counts))  # no worker answers all while another waits
    for owner, count in enumerate(counts):
        holders = [shard for shard in shards if any(key.startswith(f"{owner}-") for key, _ in shard.calls)]
        assert len(holders) <= -(-count // FEWEST_CALLS)
