"""`kill -9` at any moment loses at most the unsynced batch, and the resumed run equals an uninterrupted one."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from prbench.data import write_pairs
from small_suite import mirrored

MODEL = """
import time

def score(question, answer, posts):
    time.sleep(0.002)
    text = " ".join(post.text for post in posts)
    return sum(text.count(word.strip(".")) for word in answer.split())
"""


def command(folder: Path, out: Path) -> list[str]:
    arguments = ["--suite", str(folder / "pairs.jsonl"), "--model", "py:slow:score", "--resamples", "100"]
    return [sys.executable, "-m", "prbench", "run", *arguments, "-o", str(out), "--format", "json", "-q"]


def result_of(out: Path) -> dict:
    found = json.loads((out / "result.json").read_text())
    found["result"].pop("timing")
    return found


@pytest.fixture
def folder(tmp_path):
    write_pairs(mirrored(couples=6, questions=8), tmp_path / "pairs.jsonl")
    (tmp_path / "slow.py").write_text(MODEL)
    return tmp_path


def run(folder, out, **settings):
    return subprocess.run(command(folder, out), cwd=folder, capture_output=True, text=True, check=False, **settings)


def test_killed_at_random_points_the_resumed_run_is_identical(folder):
    assert run(folder, folder / "whole").returncode == 0
    moments = random.Random(7)
    kept = [0]
    for _ in range(4):
        process = subprocess.Popen(command(folder, folder / "killed"), cwd=folder, stdout=subprocess.DEVNULL)
        records = folder / "killed" / "records.jsonl"
        deadline = time.monotonic() + 30
        target = kept[-1] + moments.randint(1, 30_000)
        while time.monotonic() < deadline and process.poll() is None:
            if records.is_file() and records.stat().st_size > target:
                break
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        kept.append(records.stat().st_size if records.is_file() else 0)
        assert kept[-1] >= kept[-2] - 4096  # what was synced is still there; only a torn last line may go
    finished = run(folder, folder / "killed")
    assert finished.returncode == 0, finished.stderr
    assert result_of(folder / "killed") == result_of(folder / "whole")


def test_ctrl_c_leaves_a_resumable_run(folder):
    process = subprocess.Popen(
        command(folder, folder / "stopped"), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    records = folder / "stopped" / "records.jsonl"
    while process.poll() is None and not (records.is_file() and records.stat().st_size > 0):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "the same command continues" in said
    assert run(folder, folder / "stopped").returncode == 0
    assert run(folder, folder / "whole").returncode == 0
    assert result_of(folder / "stopped") == result_of(folder / "whole")


def test_two_processes_on_one_folder(folder):
    (folder / "slow.py").write_text(MODEL.replace("0.002", "0.03"))  # still going on when the second has started
    first = subprocess.Popen(command(folder, folder / "shared"), cwd=folder, stdout=subprocess.DEVNULL)
    while first.poll() is None and not (folder / "shared" / "records.jsonl").is_file():
        time.sleep(0.01)
    second = run(folder, folder / "shared")
    assert second.returncode == 2
    assert "another process is writing" in second.stderr
    assert "Traceback" not in second.stderr
    assert first.wait(timeout=60) == 0
