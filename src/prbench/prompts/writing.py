"""The parsers beside the templates with which `prbench build` asks a writer: each reads a reply, or says why it cannot.

`answer.jinja` asks for an answer within a word limit (never cut to fit), `aspect_title.jinja` for one short phrase that
names an aspect, `opposite.jinja` for the opposite of every aspect, with a post that shows it.
"""

import re
from typing import NamedTuple

from prbench.prompts._blocks import read_blocks
from prbench.prompts._reply import UnreadableReply, after_thinking
from prbench.texts import words

_LABEL = re.compile(r"^\s*[*_]*(?:answer|response)[*_]*\s*:[*_]*\s*", re.IGNORECASE)


def parse_answer(reply: str, limit: int) -> str | UnreadableReply:
    """Read an answer of at most so many words.

    Example:
        >>> parse_answer("Answer: Take the train.", 100)
        'Take the train.'
        >>> parse_answer("Take the early train.", 3)
        UnreadableReply(reason='4 words, over the limit of 3')
    """
    said = after_thinking(reply)
    if isinstance(said, UnreadableReply):
        return said
    answer = _LABEL.sub("", said, count=1).strip()
    if len(answer) > 1 and answer[0] + answer[-1] in ('""', "“”", "«»") and '"' not in answer[1:-1]:
        answer = answer[1:-1].strip()
    if not answer:
        return UnreadableReply("empty reply")
    if "<<<" in answer or ">>>" in answer:
        return UnreadableReply("repeats the marks of the request")
    found = count_words(answer)
    return UnreadableReply(f"{found} words, over the limit of {limit}") if found > limit else answer


def count_words(text: str) -> int:
    """Words of a text, as they are counted everywhere in this package.

    Example:
        >>> count_words("Drink green tea."), count_words("喝绿茶")
        (3, 3)
    """
    return len(words(text))


ASKED_WORDS, MOST_WORDS = 12, 25
"""A model is asked for fewer words than are taken: small ones say in a sentence what should be a phrase."""
_REPEATED = re.compile(r"^(?:the|a good) answer (?:should|must|is|would be)(?: to)?[\s:\"“]+", re.IGNORECASE)


def parse_aspect_title(reply: str) -> str | UnreadableReply:
    """Read one line of a few words.

    Example:
        >>> parse_aspect_title("The answer should keep costs low.")
        'keep costs low'
        >>> parse_aspect_title("")
        UnreadableReply(reason='empty reply')
    """
    said = after_thinking(reply)
    if isinstance(said, UnreadableReply):
        return said
    lines = [line for line in (line.strip(" \t\"'“”*-.") for line in said.splitlines()) if line]
    if not lines:
        return UnreadableReply("empty reply")
    if len(lines) > 1:
        return UnreadableReply(f"{len(lines)} lines in place of one phrase")
    title = _REPEATED.sub("", lines[0]).strip()
    count = len(words(title))
    return (
        title
        if 0 < count <= MOST_WORDS
        else UnreadableReply(f"{count} words in place of a phrase of up to {MOST_WORDS}")
    )


_LEAST_POST_WORDS = 5


class Opposite(NamedTuple):
    """Aspect that a user with the opposite taste expects, and the post in which it shows."""

    aspect: str
    post: str
    reason: str


def parse_opposites(reply: str, count: int) -> tuple[Opposite, ...] | UnreadableReply:
    r"""Read exactly `count` opposites.

    Example:
        >>> parse_opposites("Aspect: costly\nPost: I never look at prices anymore.\nReason: has money", 1)[0].aspect
        'costly'
        >>> parse_opposites("Aspect: costly\nPost: I never look at prices anymore.\nReason: has money", 2)
        UnreadableReply(reason='1 opposites for 2 aspects')
    """
    blocks = read_blocks(reply, ("aspect", "post", "reason"))
    if isinstance(blocks, UnreadableReply):
        return blocks
    if len(blocks) != count:
        return UnreadableReply(f"{len(blocks)} opposites for {count} aspects")
    found = tuple(Opposite(block["aspect"], block["post"].strip("\"'“”«» "), block["reason"]) for block in blocks)
    if len({opposite.post for opposite in found}) < len(found):
        return UnreadableReply("a post stands twice")
    if short := next((opposite.post for opposite in found if len(opposite.post.split()) < _LEAST_POST_WORDS), None):
        return UnreadableReply(f"a post of fewer than {_LEAST_POST_WORDS} words: {short!r}")
    return found
