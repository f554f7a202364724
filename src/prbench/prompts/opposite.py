"""The parser beside `opposite.jinja`: for every aspect its opposite, with a post that shows it, or a reason."""

from typing import NamedTuple

from prbench.prompts._blocks import read_blocks
from prbench.prompts._reply import UnreadableReply

__all__ = ["Opposite", "UnreadableReply", "parse_opposites"]

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
