r"""Place of the result in a model's reply; shared by the parsers of verdicts, ratings and rankings.

A result is read from one place only: the last labelled line (`Result: …`), a JSON object at the end that has the label
as a key, a last line that boxes it (`\boxed{A}`), or a reply that is nothing but the result. After a labelled line only
a courtesy may follow, such as "Hope this helps!". Prose is never searched for letters or numbers, so nothing is
guessed. Every step is linear in the length of the reply.
"""

import json
import re
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class UnreadableReply:
    """A reply without a result that can be read, and why. Never a score, never a guess.

    Example:
        >>> UnreadableReply("empty reply").reason
        'empty reply'
    """

    reason: str


class ReplyResult(NamedTuple):
    """Text in the place of the result: one value per labelled line, the last line's last."""

    values: tuple[str, ...]


_EMPHASIS = str.maketrans("", "", "*`_")
_BULLET = re.compile(r"(?:#{1,6}|[-•])\s+")
_WRAPS = frozenset({'""', "''", "“”", "‘’", "[]", "()", "{}", "<>"})
_MOST_WRAPS = 4
_SHORT = 24
"""A single line longer than this is prose, not a bare result: its reason should speak of the missing line."""
_LONGEST_OBJECT = 20_000
_LONGEST_COURTESY = 160
_BOX = re.compile(r"\\boxed\{(?:\\text\{)?\s*([^{}]{1,24}?)\s*\}")
_COURTESY = re.compile(
    r"(?:i\s+)?(?:hope|let me know|thanks?|thank you|feel free|(?:i'm |i am )?(?:happy|glad) to|good luck"
    r"|please let me know|please feel free"
    r"|best regards|kind regards|cheers|you're welcome|you are welcome|have a (?:nice|good|great))\b",
    re.IGNORECASE,
)
_JUDGING = re.compile(
    r"\b(?:[AB]|tie|both|neither|other|answers?|results?|ratings?|but|however|instead|unless|[0-9]+)\b|n't"
)
_THINKING = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)


def find_result(text: str, label: str, *, bare: bool = True) -> ReplyResult | UnreadableReply:
    r"""Find the values of the lines that begin with `label`, if the last line is one of them.

    Args:
        text: The reply.
        label: The word before the colon.
        bare: Whether a reply that is nothing but the value will do.

    Example:
        >>> find_result("Both are fine.\n**Result:** B.", "result")
        ReplyResult(values=('B',))
        >>> find_result("B is better for this user.", "result")
        UnreadableReply(reason="the last line is not a result line: 'B is better for this user'")
    """
    lines = reply_lines(text)
    if isinstance(lines, UnreadableReply):
        return lines
    if bare and (found := _in_json(text, label) or _boxed(text)):
        return found
    labelled = re.compile(rf"(?:final\s+)?{label}(?:\s*[:：=]|\s+[-–—](?=\s))", re.IGNORECASE)
    matches = [(line, match) for line in lines if (match := labelled.match(line))]
    if bare and not matches and len(lines) == 1 and len(lines[0]) <= _SHORT:
        return ReplyResult((_unwrap(lines[0]),))
    after = [] if not matches else lines[lines_index(lines, matches[-1][0]) + 1 :]
    if not matches or (after and not (bare and _is_courtesy(after))):
        return UnreadableReply(f"the last line is not a {label} line: {excerpt(lines[-1])}")
    return ReplyResult(tuple(_unwrap(line[match.end() :]) for line, match in matches))


def lines_index(lines: list[str], line: str) -> int:
    """The place of this very line, counted from the end where equal lines stand more than once."""
    return next(place for place in range(len(lines) - 1, -1, -1) if lines[place] is line)


def _in_json(text: str, label: str) -> ReplyResult | None:
    """The value under the label in the JSON object that a reply ends with, if it does."""
    said = after_thinking(text)
    if isinstance(said, UnreadableReply):
        return None
    said = said.strip().removesuffix("```").rstrip()
    start = said.rfind("{")
    if start < 0 or not said.endswith("}") or len(said) - start > _LONGEST_OBJECT:
        start = 0 if said.startswith("{") and len(said) <= _LONGEST_OBJECT else -1
    if start < 0 or not said.endswith("}"):
        return None
    for begin in dict.fromkeys((0 if said.startswith("{") else start, start)):
        try:
            found = json.loads(said[begin:])
        except (ValueError, RecursionError):
            continue
        value = next((one for key, one in found.items() if key.lower() == label), None)
        if isinstance(value, list) and len(value) > 1 and all(isinstance(one, str | int) for one in value):
            value = " > ".join(map(str, value))  # a ranking, best first; nothing else is read from a list
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            return ReplyResult((_unwrap(str(value)),))
    return None


def _boxed(text: str) -> ReplyResult | None:
    """Return the content of a reply's boxes, if its last line has one."""
    said = after_thinking(text)
    if isinstance(said, UnreadableReply):
        return None
    lines = [line for line in said.splitlines() if line.strip()]
    if not lines or not _BOX.search(lines[-1]):
        return None
    return ReplyResult(tuple(_unwrap(found[1]) for line in lines for found in _BOX.finditer(line)))


def _is_courtesy(lines: list[str]) -> bool:
    """Whether what follows a result cannot take it back: a line or two of thanks without a word of judgment."""
    said = " ".join(lines)
    return len(said) <= _LONGEST_COURTESY and not _JUDGING.search(said) and all(map(_COURTESY.match, lines))


def reply_lines(text: str) -> list[str] | UnreadableReply:
    r"""The lines of a reply that say something, without emphasis, bullets and what was thought aloud.

    Example:
        >>> reply_lines("<think>Hm.</think>\n**Fine.**\n\n- B")
        ['Fine', 'B']
    """
    words = after_thinking(text)
    if isinstance(words, UnreadableReply):
        return words
    lines = [line for line in (_clean(line) for line in words.splitlines()) if line]
    return lines or UnreadableReply("empty reply")


def excerpt(text: str, limit: int = 60) -> str:
    """Quote the beginning of a text for a message.

    Example:
        >>> excerpt("a" * 9, limit=4)
        "'aaaa…'"
    """
    return repr(text if len(text) <= limit else text[:limit] + "…")


def after_thinking(text: str) -> str | UnreadableReply:
    """Drop what a reasoning model thought aloud; what it says after that counts."""
    marks = list(_THINKING.finditer(text))
    if not marks:
        return text
    if not marks[-1][1]:
        return UnreadableReply("the reasoning does not end")
    return text[marks[-1].end() :]


def _clean(line: str) -> str:
    line = line.translate(_EMPHASIS).strip()
    return _unwrap(_BULLET.sub("", line, count=1) if _BULLET.match(line) else line)


def _unwrap(value: str) -> str:
    """Take off a final full stop and balanced brackets or quotation marks: `[[A]].` is `A`, but `<10` stays."""
    for _ in range(_MOST_WRAPS):
        value = _without_stop(value.strip())
        if value[:1] + value[-1:] not in _WRAPS:
            break
        value = value[1:-1]
    return value


def _without_stop(value: str) -> str:
    return value[:-1].rstrip() if value.endswith((".", "!", "。")) else value
