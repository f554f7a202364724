"""The part of a training split and of the stance passages that is learned from, and the share of labels turned round.

Everything here is drawn by hashes: fewer couples are among more, a smaller share of passages or of flipped labels
lies within a larger one. A *reserve* is a share of the couples, the questions (with their answers) and the passages
that models leave alone, so that a judge may learn from exactly that and share no text with them.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import Field

from prbench.data.fingerprint import hash_text
from prbench.data.passages import Passage
from prbench.errors import ConfigError
from prbench.types import Frozen, Pair

RESERVED = "situations"
"""What a reserve of passages is made of. An earlier one was of situations on an axis: a text could be in both parts."""


class Portion(Frozen):
    """The part of the training material that a model is given.

    Example:
        >>> Portion(reserve=0.25).told
        {'reserve': 0.25, 'reserved': 'situations'}
    """

    people: int | None = Field(default=None, ge=1)
    """Couples (or users, where they come alone); default: all."""
    passages: float = Field(default=1.0, ge=0, le=1)
    """Share of the situations that stance passages are about."""
    flipped: float = Field(default=0.0, ge=0, le=0.5)
    """Share of a couple's axes, and of the passages' situations, whose two sides are exchanged."""
    reserve: float = Field(default=0.0, ge=0, lt=1)
    """Share of couples, questions and passages that is left to judges."""

    @property
    def told(self) -> dict[str, Any]:
        """Return what differs from learning from everything."""
        found = self.model_dump(mode="json", exclude_defaults=True)
        return found | ({"reserved": RESERVED} if self.reserve else {})

    def pairs(self, pairs: Sequence[Pair], seed: int) -> list[Pair]:
        """The pairs that are learned from, with their labels as a careless annotator would have them."""
        kept = _outside(pairs, self.reserve)
        if self.people is not None:
            kept = _of_couples(kept, self.people, seed)
        return _flipped(kept, self.flipped, seed)

    def unowned(self, pairs: Sequence[Pair]) -> list[Pair]:
        """Pairs that belong to no couple: those whose question is not reserved."""
        questions = _reserved_questions(pairs, self.reserve)
        return [pair for pair in pairs if pair.question not in questions]

    def written(self, passages: Sequence[Passage], seed: int) -> list[Passage]:
        """The passages that are learned from."""
        taken = set(_first(_situations(passages), self.reserve, "reserve"))
        kept = [passage for passage in passages if passage.situation not in taken]
        chosen = set(_first(_situations(kept), self.passages, f"{seed}\0passages"))
        wrong = set(_first(chosen, self.flipped, f"{seed}\0flipped"))
        opposite = _opposites((passage.axis, passage.pole) for passage in passages)
        return [
            passage.model_copy(update={"pole": opposite[passage.axis, passage.pole]})
            if passage.situation in wrong
            else passage
            for passage in kept
            if passage.situation in chosen
        ]


def reserved_pairs(pairs: Sequence[Pair], share: float) -> list[Pair]:
    """Return the pairs that models with such a reserve leave to a judge: reserved couples with reserved questions."""
    couples, questions = _reserved_couples(pairs, share), _reserved_questions(pairs, share)
    return [pair for pair in pairs if couple_of(pair) in couples and pair.question in questions]


def reserved_passages(passages: Sequence[Passage], share: float) -> list[Passage]:
    """The passages that models with such a reserve leave to a judge."""
    taken = set(_first(_situations(passages), share, "reserve"))
    return [passage for passage in passages if passage.situation in taken]


def couple_of(pair: Pair) -> str:
    """The couple of a pair's user, or the user who comes alone."""
    return pair.tags.get("couple", pair.user)


def _outside(pairs: Sequence[Pair], reserve: float) -> list[Pair]:
    couples, questions = _reserved_couples(pairs, reserve), _reserved_questions(pairs, reserve)
    return [pair for pair in pairs if couple_of(pair) not in couples and pair.question not in questions]


def _reserved_couples(pairs: Sequence[Pair], share: float) -> set[str]:
    return set(_first(map(couple_of, pairs), share, "reserve"))


def _reserved_questions(pairs: Sequence[Pair], share: float) -> set[str]:
    """Return the reserved questions, by a threshold on the hash: the same in every suite that asks them."""
    limit = round(share * 16**12)
    return {pair.question for pair in pairs if int(hash_text(f"reserve\0{pair.question}")[:12], 16) < limit}


def _of_couples(pairs: Sequence[Pair], people: int, seed: int) -> list[Pair]:
    couples = _ordered(map(couple_of, pairs), f"{seed}\0people")
    if people > len(couples):
        raise ConfigError(
            f"--people {people}: there are {len(couples)} couples or users to learn from",
            hint="take fewer, or leave it out",
        )
    kept = set(couples[:people])
    return [pair for pair in pairs if couple_of(pair) in kept]


def _flipped(pairs: list[Pair], share: float, seed: int) -> list[Pair]:
    """Both halves of a couple change sides on an axis; a pair that only one of its axes would turn is left out."""
    if not share:
        return pairs
    cells = {_cell(pair, axis) for pair in pairs for axis in pair.stances}
    if not cells:
        raise ConfigError(
            "--flipped: no pair says which axis decides it", hint="labels are flipped by the tags `axis` and `pole`"
        )
    wrong = set(_first(cells, share, f"{seed}\0flipped"))
    opposite = _opposites(cell for pair in pairs for cell in pair.stances.items())
    found = []
    for pair in pairs:
        turned = [_cell(pair, axis) in wrong for axis in pair.stances]
        if not any(turned):
            found.append(pair)
        elif all(turned):
            poles = "+".join(opposite[cell] for cell in pair.stances.items())
            changes = {"chosen": pair.rejected, "rejected": pair.chosen, "tags": {**pair.tags, "pole": poles}}
            found.append(pair.model_copy(update=changes))
    return found


def _cell(pair: Pair, axis: str) -> str:
    return f"{couple_of(pair)}\0{axis}"


def _situations(passages: Iterable[Passage]) -> list[str]:
    """What passages are drawn by: a text that shows stances on several axes is a passage of each, and stays whole."""
    return [passage.situation for passage in passages]


def _opposites(stances: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """The other pole of each; an axis with one pole alone keeps it."""
    poles: dict[str, set[str]] = {}
    for axis, pole in stances:
        poles.setdefault(axis, set()).add(pole)
    return {(axis, pole): next(iter(found - {pole}), pole) for axis, found in poles.items() for pole in found}


def _first(keys: Iterable[str], share: float, salt: str) -> list[str]:
    ordered = _ordered(keys, salt)
    return ordered[: round(share * len(ordered))]


def _ordered(keys: Iterable[str], salt: str) -> list[str]:
    return sorted(set(keys), key=lambda key: hash_text(f"{salt}\0{key}"))
