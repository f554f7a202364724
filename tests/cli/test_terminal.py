"""What a terminal shows, 80 and 160 columns wide: no line over the width, no digit cut. UPDATE_GOLDEN=1 renews."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from prbench.data import write_pairs
from small_suite import mirrored

GOLDEN = Path(__file__).parent / "golden"
SHOWN = """
import sys
from prbench.cli import app

for line in (
    "run --config one/config.toml -o one -q",
    "run --config one/config.toml -o one -q --full",
    "compare one two",
    "leaderboard . -o site",
    "explain",
    "explain verdict",
    "doctor",
):
    print(f"$ prbench {line}", flush=True)
    try:
        app(line.split())
    except SystemExit:
        pass
"""
MODEL = """
def score(question, answer, posts):
    text = " ".join(post.text for post in posts)
    return sum(text.count(word.strip(".")) for word in answer.split())

def blind(question, answer):
    return len(answer) % 7
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("terminal")
    write_pairs(mirrored(6, 12), place / "pairs.jsonl")
    (place / "mine.py").write_text(MODEL)
    for name, model in (("one", "score"), ("two", "blind")):
        arguments = ["run", "-m", f"py:mine:{model}", "-s", "pairs.jsonl", "-o", name, "--resamples", "100", "-q"]
        arguments += ["-c", "none,profile,other,opposite,oracle" if name == "one" else "none"]
        subprocess.run([sys.executable, "-m", "prbench", *arguments], cwd=place, check=True, capture_output=True)
    return place


def on_terminal(folder: Path, columns: int) -> str:
    """Run the commands on a terminal of this width and return what it was sent."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    environment |= {"TERM": "dumb", "PRBENCH_CACHE": str(folder / "cache")}
    program = subprocess.Popen(
        [sys.executable, "-c", SHOWN], cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    sent = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        sent += piece
    os.close(ours)
    assert program.wait() == 0, sent.decode()
    return sent.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [80, 160])
def test_no_line_is_too_long_and_no_digit_is_cut(folder, columns):
    text = on_terminal(folder, columns)
    assert text.count("$ prbench") == 7
    assert "Traceback" not in text
    shown = [line for line in text.splitlines() if str(folder) not in line]  # a path is not ours to cut
    assert [line for line in shown if len(line) > columns] == []
    assert not re.search(r"\d…", text), "a number was cut"
    assert re.search(r"\d\d\.\d \[\d+\.\d, \d+\.\d\]", text)
    steady = text[: text.index("$ prbench leaderboard")]
    steady = re.sub(r"\d[\d.,]* (ms|s|min|MB|tokens/s)\b|p\d\d [\d.]+|[\d.]+ / [\d.]+ ms", "N", steady)
    golden = GOLDEN / f"terminal-{columns}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(steady, encoding="utf-8")
    assert steady == golden.read_text(encoding="utf-8")
