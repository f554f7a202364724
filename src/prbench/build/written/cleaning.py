"""Texts as people typed them, without invisible characters."""

import re
import unicodedata

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028\u2029\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\ufff9-\ufffb]"
)
"""Control characters but tab and line feed, separators that split lines, and marks that turn the direction of text."""
_LINE_ENDS = re.compile(r"\r\n?|[\u0085\u2028\u2029]")


def clean(text: str) -> str:
    r"""A text without control characters and surrounding space; line ends become line feeds.

    Example:
        >>> clean(" I like\x00 tea.\r\nA lot. ")
        'I like tea.\nA lot.'
    """
    return _UNSEEN.sub("", _LINE_ENDS.sub("\n", text)).strip()


def has_unseen(text: str) -> bool:
    """Whether cleaning takes out more than space and kinds of line ends."""
    return _UNSEEN.search(_LINE_ENDS.sub("\n", text)) is not None


def plain(text: str) -> str:
    """A text by its words alone: case, spaces and forms of letters do not count."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
