"""The parser beside `aspects.jinja`: rubric aspects, each resting on words that the story really has, or a reason.

Evidence that was made up is the mark of an aspect that was made up: one such quotation and the whole reply is refused.
"""

import re
import unicodedata

from prbench.prompts._blocks import read_blocks
from prbench.prompts._reply import UnreadableReply, excerpt
from prbench.types import Aspect

__all__ = ["FEWEST", "MOST", "UnreadableReply", "occurs_in", "parse_aspects"]

FEWEST, MOST = 2, 8
_LEAST_WORDS = 2
_QUOTES = str.maketrans("“”„«»‘’‚`´", "\"\"\"\"\"'''''")
_ELLIPSIS = re.compile(r"\s*(?:\.{3,}|…|\[\s*(?:\.{3}|…)\s*\])\s*")


def parse_aspects(reply: str, narrative: str) -> tuple[Aspect, ...] | UnreadableReply:
    r"""Read the aspects of a reply and hold their evidence against the narrative.

    Example:
        >>> reply = "Aspect: cheap\nEvidence: \"only fifty euros\"\nReason: money is short\n\n"
        >>> reply += "Aspect: quick\nEvidence: by Friday\nReason: a deadline"
        >>> [aspect.evidence for aspect in parse_aspects(reply, "I need it by Friday and have only fifty euros.")]
        ['only fifty euros', 'by Friday']
        >>> parse_aspects(reply, "I need it by Friday.")
        UnreadableReply(reason="evidence that is not in the narrative: 'only fifty euros'")
    """
    blocks = read_blocks(reply, ("aspect", "evidence", "reason"))
    if isinstance(blocks, UnreadableReply):
        return blocks
    aspects = []
    for block in blocks:
        evidence = block["evidence"].strip().strip("\"'“”„«»‘’ ").strip()
        if len(evidence.split()) < _LEAST_WORDS and evidence.casefold() != narrative.strip().casefold():
            return UnreadableReply(f"evidence of fewer than {_LEAST_WORDS} words: {excerpt(evidence)}")
        if not occurs_in(evidence, narrative):
            return UnreadableReply(f"evidence that is not in the narrative: {excerpt(evidence)}")
        aspects.append(Aspect(aspect=block["aspect"], evidence=evidence, reason=block["reason"]))
    distinct = {_plain(aspect.aspect) for aspect in aspects}
    if len(distinct) < len(aspects):
        return UnreadableReply("an aspect stands twice")
    if not FEWEST <= len(aspects) <= MOST:
        return UnreadableReply(f"{len(aspects)} aspects, expected {FEWEST} to {MOST}")
    return tuple(aspects)


def occurs_in(quotation: str, text: str) -> bool:
    """Whether a quotation stands in a text, but for case, spaces, kinds of quotation marks and marked omissions.

    Example:
        >>> occurs_in("Only … fifty  EUROS", "I have only about fifty euros.")
        True
    """
    rest = _plain(text)
    parts = [part for part in map(_plain, _ELLIPSIS.split(quotation)) if part]
    for part in parts:
        place = rest.find(part.strip(" .,;:!?"))
        if place < 0:
            return False
        rest = rest[place:]
    return bool(parts)


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).translate(_QUOTES).casefold().split())
