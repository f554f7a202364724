"""Asks for grades by a rubric, and reads them: `grade.jinja` (all aspects, in words) and `grade_digit.jinja` (one).

Read is a list with exactly one entry for each aspect, each exactly 0, 1 or 2: as the last line (`Grades: [2, 1, 2]`, or
the list alone), or as the last lines `1: 2`, one per aspect in their order. Everything else is unreadable and never a
number: another length, 0.5, 3, a list in the middle of prose, two lists that differ.
"""

import re
from collections.abc import Sequence

from prbench.prompts._reply import UnreadableReply, after_thinking, excerpt
from prbench.prompts.instruction import Instruction
from prbench.types import Aspect, Prompt

__all__ = ["ALL_ASPECTS", "ONE_ASPECT", "UnreadableReply", "ask_grade", "ask_grades", "parse_grades"]

ALL_ASPECTS = Instruction.builtin("grade.jinja")
ONE_ASPECT = Instruction.builtin("grade_digit.jinja")

_GRADES = {"0": 0, "1": 1, "2": 2}
_EMPHASIS = str.maketrans("", "", "*`_")
_LABEL = re.compile(r"(?:final\s+)?grades\s*[:=]\s*", re.IGNORECASE)
_NUMBERED = re.compile(r"([0-9]{1,3})\s*[:.)]\s*(\S{1,12})")
_IDS = re.compile(r"[^\s,]+(?:,\s*[^\s,]+)*")


def ask_grades(question: str, answer: str, aspects: Sequence[Aspect]) -> Prompt:
    """Ask for all aspects at once, each on a line of its own with its reason and evidence."""
    example = "[" + ", ".join("021"[place % 3] for place in range(len(aspects))) + "]"
    shown = [_shown(aspect) for aspect in aspects]
    return ALL_ASPECTS.fill(question=question, answer=answer, aspects=shown, example=example)


def ask_grade(question: str, answer: str, aspect: Aspect) -> Prompt:
    """Ask for one aspect, to be answered by a digit."""
    return ONE_ASPECT.fill(question=question, answer=answer, aspect=_shown(aspect))


def parse_grades(text: str, count: int) -> tuple[int, ...] | UnreadableReply:
    r"""Read one grade for each of `count` aspects.

    Example:
        >>> parse_grades("It is cheap but slow.\nGrades: [2, 0]", 2)
        (2, 0)
        >>> parse_grades("1: 2\n2: 1", 2)
        (2, 1)
        >>> parse_grades("[2, 2, 2]", 2)
        UnreadableReply(reason='3 grades for 2 aspects')
    """
    words = after_thinking(text)
    if isinstance(words, UnreadableReply):
        return words
    lines = [line for line in map(_clean, words.splitlines()) if line]
    if not lines:
        return UnreadableReply("empty reply")
    lists = [found for line in lines if (found := _entries(line)) is not None]
    if _entries(lines[-1]) is not None:
        if any(found != lists[-1] for found in lists):
            return UnreadableReply("the lists of grades contradict each other")
        return _checked(lists[-1], count)
    return _numbered(lines, count, bool(lists))


def _shown(aspect: Aspect) -> Aspect:
    """Return the aspect without evidence that is nothing but ids of posts: a judge does not see the posts."""
    return aspect.model_copy(update={"evidence": ""}) if _IDS.fullmatch(aspect.evidence) else aspect


def _clean(line: str) -> str:
    line = line.strip()
    return "" if line.startswith("```") else line.translate(_EMPHASIS).strip()


def _entries(line: str) -> list[str] | None:
    """The entries of a line that is a list and nothing else, with or without its label."""
    label = _LABEL.match(line)
    value = line[label.end() :] if label else line
    if not (value.startswith("[") and value.endswith("]")):
        return None
    inner = value[1:-1].strip()
    return [entry.strip() for entry in inner.split(",")] if inner else []


def _numbered(lines: Sequence[str], count: int, has_list: bool) -> tuple[int, ...] | UnreadableReply:
    matches = [_NUMBERED.fullmatch(line) for line in lines]
    if matches[-1] is None or has_list:
        return UnreadableReply(f"the last line is not a list of grades: {excerpt(lines[-1])}")
    found = [(match[1], match[2]) for match in matches if match]
    if any(match is None for match in matches[-len(found) :]):
        return UnreadableReply("the lines of grades do not stand together")
    if [number for number, _ in found] != [str(place) for place in range(1, len(found) + 1)]:
        return UnreadableReply(f"the lines of grades are numbered {', '.join(number for number, _ in found)}")
    return _checked([grade for _, grade in found], count)


def _checked(entries: Sequence[str], count: int) -> tuple[int, ...] | UnreadableReply:
    if len(entries) != count:
        return UnreadableReply(f"{len(entries)} grades for {count} aspects")
    for entry in entries:
        if entry not in _GRADES:
            return UnreadableReply(f"the grade {excerpt(entry, 20)} is not 0, 1 or 2")
    return tuple(_GRADES[entry] for entry in entries)
