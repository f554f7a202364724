"""Checks that splits are apart: no user, couple, question or answer in two of them, no unseen axis in train."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations, product

from prbench.audit.config import AuditConfig
from prbench.audit.corpus import Corpus
from prbench.audit.result import CheckVerdict, Figure, Finding, Offence
from prbench.texts import near_duplicates


@dataclass(frozen=True)
class DisjointSplits:
    """Check that what is learnt in one split cannot be looked up in another."""

    settings: AuditConfig

    name = "splits"

    def examine(self, corpus: Corpus) -> Finding:
        """Compare the splits by user, couple, question and answer."""
        several = len({pair.tags.get("split", "") for pair in corpus.pairs}) > 1
        users = CheckVerdict.FAIL if corpus.mirrored else CheckVerdict.WARN
        shared = ", ".join(
            f"{split} may share {kind} with {other}"
            for split, kinds in self.settings.sharing.items()
            for kind, other in kinds.items()
        )
        return Finding.of(
            self.name,
            asks="are users, couples, questions and answers of the splits apart, and unseen axes out of train?",
            threshold=f"none in two splits (users of suites that are not mirrored: warn); {shared}",
            figures=[
                self._figure("users", corpus, (pair.user for pair in corpus.pairs), "users", users),
                self._figure("couples", corpus, (pair.tags.get("couple", "") for pair in corpus.pairs), "users"),
                self._questions(corpus),
                self._answers(corpus),
                self._unseen(corpus),
            ]
            if several
            else (),
        )

    def _figure(
        self, what: str, corpus: Corpus, keys: Iterable[str], kind: str, otherwise: CheckVerdict = CheckVerdict.FAIL
    ) -> Figure:
        """Return how many of the things that these keys name, one for each pair, lie in two splits."""
        return self._in_two(what, corpus.splits_of(keys), kind, otherwise)

    def _in_two(self, what: str, places: Mapping[str, Mapping[str, str]], kind: str, otherwise: CheckVerdict) -> Figure:
        found = [
            Offence(ids=tuple(places[key][split] for split in pair), detail=f"{_short(key)} in {' and '.join(pair)}")
            for key in places
            for pair in combinations(sorted(places[key]), 2)
            if not self._may_share(kind, *pair)
        ]
        return Figure.counted(f"{what} in two splits", len(places), found, otherwise)

    def _may_share(self, kind: str, one: str, two: str) -> bool:
        sharing = self.settings.sharing
        return sharing.get(one, {}).get(kind) == two or sharing.get(two, {}).get(kind) == one

    def _questions(self, corpus: Corpus) -> Figure:
        """Questions by content: the same text, or nearly."""
        if corpus.from_items:  # all may be asked the same; what must be apart is the items, looked at as answers
            return Figure(name="questions in two splits", verdict=CheckVerdict.NOT_APPLICABLE, value=None, n=0)
        places = corpus.splits_of(pair.question for pair in corpus.pairs)
        same = self._in_two("questions", places, "questions", CheckVerdict.FAIL)
        texts = list(places)
        alike = [
            Offence(ids=(places[texts[near.first]][one], places[texts[near.second]][two]), detail=f"in {one} and {two}")
            for near in near_duplicates(texts, self.settings.near_fail, corpus.shingles)
            for one, two in product(places[texts[near.first]], places[texts[near.second]])
            if one != two and not self._may_share("questions", one, two)
        ]
        return Figure.counted(same.name, same.n, [*same.examples, *alike])

    def _answers(self, corpus: Corpus) -> Figure:
        places: dict[str, dict[str, str]] = {}
        for pair in corpus.pairs:
            for text in (pair.chosen, pair.rejected):
                places.setdefault(" ".join(text.lower().split()), {}).setdefault(pair.tags.get("split", ""), pair.id)
        return self._in_two("answers", places, "questions", CheckVerdict.FAIL)

    def _unseen(self, corpus: Corpus) -> Figure:
        """Axes that a pair of their own marks as unseen."""
        unseen = {
            axis
            for pair in corpus.pairs
            if pair.tags.get("unseen") == "yes" and len(pair.stances) == 1
            for axis in pair.stances
        }
        train = [pair for pair in corpus.pairs if pair.tags.get("split") == self.settings.train]
        found = [
            Offence(ids=(pair.id,), detail=f"axis {pair.tags.get('axis', '')!r}")
            for pair in train
            if pair.tags.get("unseen") == "yes" or unseen & pair.stances.keys()
        ]
        return Figure.counted("pairs of train on an unseen axis", len(train), found)


def _short(text: str, most: int = 60) -> str:
    return repr(text if len(text) <= most else text[: most - 1] + "…")
