"""Replies in blocks of labelled lines; shared by the parsers of aspects and of opposites.

A plain line format instead of JSON: small models can keep it, and nothing has to be repaired. A line without a label
belongs to the line before it; after an empty line it is talk, and passed over.
"""

import re
from collections.abc import Sequence

from prbench.prompts._reply import UnreadableReply, after_thinking

_EMPHASIS = str.maketrans("", "", "*`")
_MARK = re.compile(r"^\s*(?:#{1,6}\s+|[-•]\s+|\d{1,2}[.)]\s+)?")


def read_blocks(reply: str, labels: Sequence[str]) -> list[dict[str, str]] | UnreadableReply:
    r"""Read blocks whose lines begin with these labels, each block with every label once, in this order.

    Example:
        >>> read_blocks("Sure!\n\nAspect: brief\nReason: in a hurry", ("aspect", "reason"))
        [{'aspect': 'brief', 'reason': 'in a hurry'}]
        >>> read_blocks("Aspect: brief", ("aspect", "reason"))
        UnreadableReply(reason="block 1 has no 'reason' line")
    """
    words = after_thinking(reply)
    if isinstance(words, UnreadableReply):
        return words
    lines = _labelled_lines(words, labels)
    blocks: list[dict[str, str]] = []
    for label, value in lines:
        if label == labels[0]:
            blocks.append({})
        if not blocks or label in blocks[-1]:
            return UnreadableReply(f"a {label!r} line stands outside of a block")
        blocks[-1][label] = value
    for number, block in enumerate(blocks, start=1):
        for label in labels:
            if not block.get(label):
                return UnreadableReply(f"block {number} has no {label!r} line")
    return blocks if blocks else UnreadableReply(f"no {labels[0]!r} line in the reply")


def _labelled_lines(text: str, labels: Sequence[str]) -> list[tuple[str, str]]:
    label_at_start = re.compile(rf"({'|'.join(labels)})\s*\d{{0,2}}\s*[:：]\s*", re.IGNORECASE)
    found: list[tuple[str, str]] = []
    talking = True
    for raw in text.translate(_EMPHASIS).splitlines():
        line = _MARK.sub("", raw, count=1).strip()
        match = label_at_start.match(line)
        if match:
            found.append((match[1].lower(), line[match.end() :].strip()))
        elif line and not talking:
            label, value = found[-1]
            found[-1] = (label, f"{value} {raw.strip()}".strip())
        talking = not found or not line
    return found
