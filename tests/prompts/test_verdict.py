"""The table of nasty replies: what is read as a verdict, and what is refused."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prbench.prompts import UnreadableReply, parse_verdict

READ = [
    ("Result: A", "first"),
    ("Result: B", "second"),
    ("Result: tie", "tie"),
    ("Result: Answer B", "second"),
    ("Result: answer  a", "first"),
    ("Result: Response B", "second"),
    ("Result: Option A", "first"),
    ("result: b", "second"),
    ("RESULT: TIE", "tie"),
    ("**Result:** B", "second"),
    ("**Result: B**", "second"),
    ("result: **B**", "second"),
    ("__Result__: `A`", "first"),
    ("### Result: A", "first"),
    ("- Result: A", "first"),
    ("Final result: A", "first"),
    ("Result：B", "second"),
    ("Result : B", "second"),
    ("Result = B", "second"),
    ("Result – B", "second"),
    ("Result — A", "first"),
    ("Result - A", "first"),
    ("Result: B.", "second"),
    ("Result: B!", "second"),
    ("Result: [[A]]", "first"),
    ("Result: <B>", "second"),
    ("Result: (A).", "first"),
    ('Result: "tie"', "tie"),
    ('"Result: A"', "first"),
    ("Some thoughts about A and B.\n\nResult: B\n\n", "second"),
    ("Some thoughts.\r\nResult: B\r\n", "second"),
    ("```\nResult: A\n```", "first"),
    ("Result: A\nLet me check once more. Yes.\nResult: A", "first"),
    ("<think>First I like A. Result: A</think>\nResult: B", "second"),
    ("<think>a</think><think>b</think>Result: A", "first"),
    ("B? No.</think>\n\nResult: A", "first"),
    ("<thinking>Result: A</thinking>B", "second"),
    ("A", "first"),
    (" b \n", "second"),
    ("tie", "tie"),
    ("B.", "second"),
    ("**B**", "second"),
    ("[[A]]", "first"),
    ("<B>", "second"),
    ("Answer B", "second"),
    ("As a result: about equal at first, but the tone decides.\nResult: A", "first"),
    ("Result-oriented readers like A.\nResult: B", "second"),
    ("Results: mixed.\nResult: A", "first"),
    ('{"result": "A"}', "first"),
    ('{"reasoning": "B is long {really}.", "result": "tie"}', "tie"),
    ('{"Result": "Answer B"}', "second"),
    ('Some thoughts.\n{"result": "B"}', "second"),
    ('```json\n{"reasoning": "short", "result": "B"}\n```', "second"),
    ('<think>{"result": "A"}</think>{"result": "B"}', "second"),
    ("\\boxed{A}", "first"),
    ("So the final answer is $\\boxed{B}$.", "second"),
    ("\\boxed{\\text{tie}}", "tie"),
    ("I weigh both.\n\nThus \\(\\boxed{A}\\)", "first"),
    ("Result: A\n\nHope this helps!", "first"),
    ("Result: B\nLet me know if you need more detail.", "second"),
    ("Result: tie\n\nThank you!", "tie"),
]

REFUSED = [
    ("", "empty"),
    (" \n\t\r\n", "empty"),
    ("**\n```", "empty"),
    ("Both", "not A, B or tie"),
    ("Result: Both", "not A, B or tie"),
    ("Result: Neither", "not A, B or tie"),
    ("Result: C", "not A, B or tie"),
    ("Result: [[C]]", "not A, B or tie"),
    ("Result: A or B", "not A, B or tie"),
    ("Result: A/B", "not A, B or tie"),
    ("Result: AB", "not A, B or tie"),
    ("Result: A B", "not A, B or tie"),
    ("Result: A?", "not A, B or tie"),
    ("Result: not A", "not A, B or tie"),
    ("Result: A, B", "not A, B or tie"),
    ("Result: A (because it is shorter)", "not A, B or tie"),
    ("Result: A is better than B", "not A, B or tie"),
    ("Result: about", "not A, B or tie"),
    ("Result: 1", "not A, B or tie"),
    ("Result:", "not A, B or tie"),
    ("Result: <A", "not A, B or tie"),
    ("Result: А", "not A, B or tie"),  # Cyrillic
    ("Result: Ｂ", "not A, B or tie"),  # full width
    ("Result: Β", "not A, B or tie"),  # Greek
    ("В", "not A, B or tie"),  # Cyrillic
    ("Result: A or Result: B", "not A, B or tie"),
    ("Result: A, Result: B or Result: tie\nResult: B", "not A, B or tie"),
    ("Result: A\nOn reflection the other one.\nResult: B", "contradict"),
    ("Result: A\nResult: tie", "contradict"),
    ("Result: A\nThat said, B is close.", "not a result line"),
    ("Result: A\n\nResult-oriented readers may differ.", "not a result line"),
    ("as a result: about", "not A, B or tie"),
    ("As a result: B is what this user would prefer", "not a result line"),
    ("As a result, A is better.\nResult\nA", "not a result line"),
    ("Thoughts.\nA", "not a result line"),
    ("Thoughts.\nB is better", "not a result line"),
    ("Result:\nA", "not a result line"),
    ("Result B", "not A, B or tie"),
    ("Result is B", "not A, B or tie"),
    ("> Result: A", "not A, B or tie"),  # a quotation is not the judge's own word
    ("The best result: A", "not A, B or tie"),
    ("Answer A is better than B", "not a result line"),
    ("I prefer A", "not A, B or tie"),
    ("A B", "not A, B or tie"),
    ("a tie of sorts", "not A, B or tie"),
    ("I'm sorry, I can't judge personal preferences.", "not a result line"),
    ("Answer A is warm and personal, while answer B is more", "not a result line"),
    ("<think>A is better. Result: A", "does not end"),
    ("Result: A<think>", "does not end"),
    ("<think>a</think>", "empty"),
    ('{"verdict": "A"}', "not A, B or tie"),
    ('{"result": ["A"]}', "not A, B or tie"),
    ('{"result": true}', "not A, B or tie"),
    ('{"result": "C"}', "not A, B or tie"),
    ('{"result": "A", "result": "both"}', "not A, B or tie"),
    ('{"result": "A"', "not A, B or tie"),
    ('{"result": "A"} On reflection B.', "not a result line"),
    ("\\boxed{C}", "not A, B or tie"),
    ("\\boxed{A} or \\boxed{B}", "contradict"),
    ("\\boxed{A}\nNo, the other one.", "not a result line"),
    ("\\boxed{A", "not A, B or tie"),
    ("Result: A\nWait, that is wrong.", "not a result line"),
    ("Result: A\nI would not bet on it.", "not a result line"),
    ("Result: A\nThe other one is close.", "not a result line"),
    ("Result: A\nYou could also argue for b.", "not a result line"),
    ("Result: A\nIt isn't certain.", "not a result line"),
    ("Result: A\n" + "Hope this helps! " * 20, "not a result line"),
]


@pytest.mark.parametrize(("reply", "verdict"), READ)
def test_reads_what_is_plain(reply, verdict):
    assert parse_verdict(reply) == verdict


@pytest.mark.parametrize(("reply", "reason"), REFUSED)
def test_refuses_what_is_not(reply, reason):
    verdict = parse_verdict(reply)
    assert isinstance(verdict, UnreadableReply), verdict
    assert reason in verdict.reason


PIECES = [
    "Result: A",
    "Result: B",
    "Result:",
    "A",
    "B",
    "tie",
    "both",
    "\n",
    " ",
    "<think>",
    "</think>",
    ":",
    "**",
    "[[",
    "]]",
]


@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join)))
def test_always_a_verdict_or_a_reason(reply):
    verdict = parse_verdict(reply)
    assert verdict in ("first", "second", "tie") or (isinstance(verdict, UnreadableReply) and verdict.reason)


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_swapping_the_letters_swaps_the_verdict(reply):
    """The parser favours neither letter."""
    swapped = reply.replace("A", "\0").replace("B", "A").replace("\0", "B")
    expected = {"first": "second", "second": "first", "tie": "tie"}
    verdict, other = parse_verdict(reply), parse_verdict(swapped)
    if isinstance(verdict, UnreadableReply):
        assert isinstance(other, UnreadableReply)
    else:
        assert other == expected[verdict]


@pytest.mark.parametrize(
    "garbage", ["A", " ", "Result", "Result: ", "<think>", "[", "(A)", "\n", "Result: A\n", "*", "final "]
)
def test_effort_is_linear_in_the_length_of_garbage(garbage):
    """Counts interpreter lines instead of seconds: ten times the text may take ten times the lines, not a hundred."""

    def lines_executed(text):
        count = 0

        def trace(frame, event, argument):
            nonlocal count
            count += 1
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            parse_verdict(text)
        finally:
            sys.settrace(before)
        return count

    small, large = (garbage * (size // len(garbage)) for size in (1_000, 10_000))
    assert lines_executed(large) <= 11 * lines_executed(small)
    parse_verdict(garbage * (100_000 // len(garbage)) + "!")


def test_reasons_stay_short():
    assert len(parse_verdict("Result: " + "x" * 100_000).reason) < 120
