"""Stated wishes, made of the phrases in `wishes/phrases.toml`: frames that ask for a thing or an act, or forbid it."""

import hashlib
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from prbench.data.passages import Passage

_PHRASES = Path(__file__).parent / "wishes" / "phrases.toml"
_WANTED = (
    "I like {}.", "Please give me {}.", "{}, please.", "I want {}.", "preference for {}: yes", "The user prefers {}.",
    "More {bare}, please.", "wants {}", "I'm always glad of {}.", "likes {}: true",
)  # fmt: skip
_UNWANTED = (
    "No {bare}, please.", "I don't want {}.", "Spare me {}.", "I can do without {}.", "preference for {}: no",
    "I hate {}.", "The user dislikes {}.", "does not want {}", "Anything but {}.", "likes {}: false",
)  # fmt: skip
_ASKED = (
    "Please {}.", "{}.", "I'd like you to {}.", "It helps me when you {}.", "{}: yes", "The user asks you to {}.",
    "Always {}.", "You should {}.",
)  # fmt: skip
_FORBIDDEN = (
    "Please don't {}.", "Never {}.", "I don't want you to {}.", "There is no need to {}.", "{}: no",
    "The user asks you not to {}.", "Do not {}.", "It annoys me when you {}.",
)  # fmt: skip
_ARTICLE = re.compile(r"^(a|an|the) ")
_EACH = 3
"""Frames that a phrase is put into, plain and again negated."""


def wishes() -> Iterator[Passage]:
    """All wishes with the pole that each asks for."""
    with _PHRASES.open("rb") as file:
        axes = tomllib.load(file)
    for axis, poles in axes.items():
        for pole, phrases in poles.items():
            (other,) = set(poles) - {pole}
            for text in phrases["says"]:
                yield Passage(axis=axis, pole=pole, kind="wish", situation=text, text=text)
            for kind, plain, negated in (("things", _WANTED, _UNWANTED), ("acts", _ASKED, _FORBIDDEN)):
                for phrase in phrases[kind]:
                    for frames, asked in ((plain, pole), (negated, other)):
                        told = {"axis": axis, "pole": asked, "kind": "wish", "situation": phrase}
                        for text in _framed(phrase, frames):
                            yield Passage(**told, text=text, denied=frames is negated)


def _framed(phrase: str, frames: Sequence[str]) -> list[str]:
    """The phrase in some of the frames, chosen by its hash."""
    start = int.from_bytes(hashlib.sha256(phrase.encode()).digest()[:4], "big")
    step = 3  # coprime to the number of frames of each kind
    chosen = [frames[(start + step * number) % len(frames)] for number in range(_EACH)]
    filled = [frame.format(phrase, bare=_ARTICLE.sub("", phrase)) for frame in chosen]
    return [text[:1].upper() + text[1:] for text in filled]
