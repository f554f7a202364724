"""Changes to a pair that leave alone what decides it: a verdict that follows them rests on something else.

Each is a function of the texts alone, so that both halves of a mirrored couple are changed alike. A pair that has
nothing to change, such as answers without markdown, is left as it is and not counted.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from prbench.errors import DataError
from prbench.files import read_models
from prbench.types import Frozen, Pair, Post, Text

AGAIN = "again"
"""The change that changes nothing: the model is asked once more."""
_SHIPPED = Path(__file__).parent / "paraphrases.jsonl"
_NAMES = (
    "Tom Ben|Ruth Helen|Dave Derek|Hannah Mia|Maria Ana|Jonas Alec|Nora Elsa|Carol Jean|Jess Kate|Alex Sam|Anna Emma"
    "|James Peter|John Paul|David Daniel|Sarah Laura|Mary Susan|Michael Robert|Linda Karen|Thomas Stephen|Lucy Sophie"
    "|Amal Layla|Marta Ilse|Kartik Rohan|Tarun Ramesh|Mitali Prerana|Nirmal Dilshan|Graciela Rosario"
    "|Heriberto Ruperto|Tiburcio Ignacio|Dawa Pasang|Haru Ren|Keshab Bishnu|Ifor Emyr|Lojze Janez|Roy Ken|Richie Eddie"
    "|Ahmed Omar|Fatima Aisha|Wei Ming|Yuki Hana|Ivan Sergei|Olga Irina|Carlos Miguel|Sofia Elena|Pierre Luc"
    "|Hans Karl|Lars Sven|Ingrid Astrid|Priya Anita|Arjun Vikram|Chen Lin|Kofi Kwame|Ama Abena|Amina Zainab"
)
"""First names that are no everyday words, in twos that are put in each other's place."""


class Change(NamedTuple):
    """One change, what it does in a sentence, and how; None where there is nothing to change."""

    name: str
    sentence: str
    apply: Callable[[Pair], Pair | None]


class Paraphrase(Frozen):
    """One line of a file of paraphrases."""

    question: Text
    paraphrase: Text


def read_paraphrases(path: Path | None = None) -> dict[str, str]:
    """Paraphrases by question, from a JSONL file with `question` and `paraphrase`; default: those that ship.

    Example:
        >>> len(read_paraphrases())
        60
    """
    found = read_models(path or _SHIPPED, Paraphrase, raises=DataError, hint="one object with both fields per line")
    return {one.question: one.paraphrase for one in found}


def make_changes(paraphrases: Mapping[str, str]) -> dict[str, Change]:
    """All changes by name."""
    listed = (
        Change("markdown", "the answers without their markdown", _without_markdown),
        Change("typography", "other whitespace and quotation marks in the answers", _other_typography),
        Change("posts", "the user's posts in another order", _other_order),
        Change("names", "first names swapped in question, posts and answers", _other_names),
        Change("question", "the question paraphrased", lambda pair: _paraphrased(pair, paraphrases)),
        Change(AGAIN, "nothing; the model is asked once more", lambda pair: pair),
    )
    return {change.name: change for change in listed}


def strip_markdown(text: str) -> str:
    r"""A text without markdown's marks; its words and lines stay.

    Example:
        >>> print(strip_markdown("# Tea\n- **Green** or `black`\n2. see [here](http://x)"))
        Tea
        Green or black
        see here
    """
    text = re.sub(r"^```.*$\n?", "", text, flags=re.MULTILINE)
    text = re.sub(r"^ {0,3}(#{1,6} +|> ?|[-*+•] +|\d{1,3}[.)] +)", "", text, flags=re.MULTILINE)
    text = re.sub(r"!?\[([^\]\n]+)\]\([^)\s]+\)", r"\1", text)
    text = re.sub(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1", r"\2", text)
    text = re.sub(r"(?<!\w)([*_])(?=\S)([^*_\n]+?)(?<=\S)\1(?!\w)", r"\2", text)
    return re.sub(r"`([^`\n]+)`", r"\1", text)


def retype(text: str) -> str:
    r"""The same words with other quotation marks, two spaces between sentences and a line break at the end.

    Example:
        >>> retype('Don\'t say "soon". Say when.')
        'Don’t say “soon”.  Say when.\n'
    """
    if re.search(r"[“”’]", text):
        text = re.sub(r"[“”]", '"', text).replace("’", "'")
    else:
        text = re.sub(r'"([^"]*)"', r"“\1”", text).replace("'", "’")
    return re.sub(r"(?<=[.!?”\"]) (?=\S)", "  ", text) + "\n"


def swap_names(text: str) -> str:
    """The same text about people of other first names.

    Example:
        >>> swap_names("Tom's sister Ruth knows Ben.")
        "Ben's sister Helen knows Tom."
    """
    return _NAME.sub(lambda match: _SWAPPED[match[0]], text)


def _swaps() -> dict[str, str]:
    couples = [couple.split() for couple in _NAMES.split("|")]
    return {name: other for one, two in couples for name, other in ((one, two), (two, one))}


_SWAPPED = _swaps()
_NAME = re.compile(rf"\b(?:{'|'.join(_SWAPPED)})\b")


def _answers(pair: Pair, change: Callable[[str], str]) -> Pair | None:
    chosen, rejected = change(pair.chosen), change(pair.rejected)
    if (chosen, rejected) == (pair.chosen, pair.rejected) or chosen == rejected or not (chosen and rejected):
        return None
    return pair.model_copy(update={"chosen": chosen, "rejected": rejected})


def _without_markdown(pair: Pair) -> Pair | None:
    return _answers(pair, strip_markdown)


def _other_typography(pair: Pair) -> Pair | None:
    return _answers(pair, retype)


def _other_order(pair: Pair) -> Pair | None:
    order = sorted(pair.profile, key=lambda post: hashlib.sha256(f"{pair.user}\0{post.id}".encode()).digest())
    return None if tuple(order) == pair.profile else pair.model_copy(update={"profile": tuple(order)})


def _other_names(pair: Pair) -> Pair | None:
    profile = tuple(
        post if (text := swap_names(post.text)) == post.text else Post(id=post.id, text=text, category=post.category)
        for post in pair.profile
    )
    changed = {"question": swap_names(pair.question), "profile": profile}
    changed |= {"chosen": swap_names(pair.chosen), "rejected": swap_names(pair.rejected)}
    if changed["chosen"] == changed["rejected"] or all(getattr(pair, name) == new for name, new in changed.items()):
        return None
    return pair.model_copy(update=changed)


def _paraphrased(pair: Pair, paraphrases: Mapping[str, str]) -> Pair | None:
    said = paraphrases.get(pair.question)
    return None if said is None or said == pair.question else pair.model_copy(update={"question": said})


CHANGES = tuple(make_changes({}))
"""Names of the changes, in the order in which they are made."""
