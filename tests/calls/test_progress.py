"""The progress line: plain lines now and then, a bar on a terminal."""

import io
import time

import pytest

from prbench.calls import ProgressLine


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def now(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    return clock


def test_lines_come_now_and_then_with_the_time_left(now):
    said = []
    line = ProgressLine("judging", said.append, 100)
    for _ in range(40):
        now[0] += 1
        line.one_more()
    left = {20: "1 min 20 s", 30: "1 min 10 s", 40: "1 min 0 s"}
    assert said == ["judging: 10/100", *(f"judging: {done}/100 · {time} left" for done, time in left.items())]


def test_every_step_is_said_where_that_is_wished(now):
    said = []
    line = ProgressLine("", said.append, every_s=0, terminal=io.StringIO())
    for step in (1, 2):
        line.show(step, 2, lambda step=step: f"reward {step}")
    assert said == ["1/2 · reward 1", "2/2 · reward 2"]


def test_a_status_is_asked_for_only_where_it_is_shown(now):
    line = ProgressLine("", print)
    line.show(1, 2, lambda: pytest.fail("nothing is shown yet"))


def test_on_a_terminal_there_is_a_bar_and_no_line():
    said, terminal = [], Terminal()
    with ProgressLine("training", said.append, every_s=0, terminal=terminal) as line:
        line.at(1, 4, "one dropped")
    assert said == []
    assert "1/4" in terminal.getvalue()
    assert "training: one dropped" in terminal.getvalue()
