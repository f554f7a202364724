"""The parser beside `aspect_title.jinja`: one short phrase that names an aspect, or a reason."""

import re

from prbench.prompts._reply import UnreadableReply, after_thinking
from prbench.texts import words

__all__ = ["ASKED_WORDS", "MOST_WORDS", "UnreadableReply", "parse_aspect_title"]

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
