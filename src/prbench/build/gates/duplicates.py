"""Gate against pairs whose answers are nearly one text, and pairs that stand there twice."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from prbench.build.draft import Draft
from prbench.build.gates.gate import by_couple, couple
from prbench.texts import Shingles, near_duplicates, similarity


@dataclass(frozen=True)
class NearDuplicates:
    """Answers share less than `least` of their word 5-grams (Jaccard similarity): in a draft, and between drafts.

    Of drafts that have an answer nearly in common, the one with the first id stays. The halves of a couple share both
    answers and are not each other's duplicates.

    Example:
        >>> one = Draft(id="1", user="ann", question="Tea?", chosen="Green.", rejected="Black.")
        >>> NearDuplicates().check([one, one.model_copy(update={"id": "2", "rejected": "White."})])
        {'2': "chosen is nearly the chosen answer of '1': similarity 1.00 ≥ 0.50"}
    """

    least: float = 0.5

    name = "near-duplicates"

    @property
    def rule(self) -> str:
        """Rule of what passes."""
        return f"similarity of any two answers < {self.least:.2f} (word 5-grams)"

    def check(self, drafts: Sequence[Draft]) -> dict[str, str]:
        """Compare the two answers of each draft, then all answers with each other."""
        shingles = Shingles()
        reasons = dict(self._within(drafts, shingles))
        # Each text is compared with a bounded number of others, so a large heap is cleared away in several rounds.
        while found := self._between(_without(drafts, reasons), shingles):
            reasons.update(found)
        return reasons

    def _within(self, drafts: Sequence[Draft], shingles: Shingles) -> Iterator[tuple[str, str]]:
        for draft in drafts:
            # A text without words is like no other but itself.
            same = draft.chosen == draft.rejected
            alike = 1.0 if same else similarity(draft.chosen, draft.rejected, shingles)
            if alike >= self.least:
                yield draft.id, f"chosen is nearly rejected: similarity {alike:.2f} ≥ {self.least:.2f}"

    def _between(self, drafts: Sequence[Draft], shingles: Shingles) -> dict[str, str]:
        """Couples in the order of their ids; each must differ from all that are kept before it."""
        couples = list(by_couple(drafts).values())
        answers = [_Answer(number, side) for number in range(len(couples)) for side in ("chosen", "rejected")]
        texts = [getattr(couples[answer.couple][0], answer.side) for answer in answers]
        close: dict[int, list[tuple[_Answer, _Answer, float]]] = {}
        for near in near_duplicates(texts, self.least, shingles):
            earlier, later = answers[near.first], answers[near.second]
            close.setdefault(later.couple, []).append((earlier, later, near.similarity))
        reasons: dict[int, str] = {}
        for number in sorted(close):
            for earlier, later, alike in close[number]:
                if earlier.couple not in reasons:
                    like = f"{later.side} is nearly the {earlier.side} answer of {couples[earlier.couple][0].id!r}"
                    reasons[number] = f"{like}: similarity {alike:.2f} ≥ {self.least:.2f}"
                    break
        return {couples[number][0].id: reason for number, reason in reasons.items()}


def _without(drafts: Sequence[Draft], reasons: Mapping[str, str]) -> list[Draft]:
    """Return what is left once the refused drafts have gone with their other halves."""
    gone = {couple(draft) for draft in drafts if draft.id in reasons}
    return [draft for draft in drafts if couple(draft) not in gone]


class _Answer(NamedTuple):
    """One side of the first half of a couple, by position."""

    couple: int
    side: str
