"""Cuts a text into the pieces that are embedded: windows of neighbouring sentences, or the text as it is.

A sentence encoder averages over its input, so one telling sentence in a long post is lost among the others; in small
pieces it keeps a vector of its own.
"""

import re

_SENTENCE_END = re.compile(r"""(?<=[.!?…])["'”’)]*\s+(?=["'“‘(]?[A-Z0-9À-Þ])|\n+""")


def sentences(text: str) -> list[str]:
    """Split at sentence ends and line breaks; a text without any is one sentence.

    Example:
        >>> sentences("So, the train. It costs 3.50 less! Why not?")
        ['So, the train.', 'It costs 3.50 less!', 'Why not?']
    """
    found = [part.strip() for part in _SENTENCE_END.split(text)]
    return [part for part in found if part] or [text]


def pieces(text: str, window: int) -> list[str]:
    """Windows of so many sentences, each half over the last one; a window of 0 is the whole text.

    Example:
        >>> pieces("One. Two. Three. Four.", 2)
        ['One. Two.', 'Two. Three.', 'Three. Four.']
        >>> pieces("One. Two.", 0)
        ['One. Two.']
    """
    if window == 0:
        return [text]
    parts = sentences(text)
    if len(parts) <= window:
        return [" ".join(parts)]
    step = max(window // 2, 1)
    starts = list(range(0, len(parts) - window + 1, step))
    if starts[-1] != len(parts) - window:
        starts.append(len(parts) - window)
    return [" ".join(parts[start : start + window]) for start in starts]
