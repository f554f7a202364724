"""Checks that the suite is as mirrored as it says, and that ignoring the user scores exactly one half."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from prbench.audit.config import AuditConfig
from prbench.audit.corpus import Corpus
from prbench.audit.raters import Floats, Opinion
from prbench.audit.result import CheckVerdict, Figure, Finding, Offence
from prbench.stats import Clusters, couple_coverage, mean_interval
from prbench.types import Pair


@dataclass(frozen=True)
class MirrorBalance:
    """Every couple of pairs is a mirror image, and every answer is chosen as often as rejected."""

    name = "mirror"

    def examine(self, corpus: Corpus) -> Finding:
        """Look at mirror tags, then at the tally of every answer in every stratum."""
        return Finding.of(
            self.name,
            asks="is every pair half of a mirrored couple, and each answer chosen exactly as often as rejected?",
            threshold="no exception",
            figures=self._figures(corpus) if corpus.mirrored else (),
        )

    def _figures(self, corpus: Corpus) -> list[Figure]:
        mirrors: dict[str, list[Pair]] = defaultdict(list)
        for pair in corpus.pairs:
            mirrors[pair.tags.get("mirror", "")].append(pair)
        alone = [Offence(ids=(pair.id,), detail="no mirror tag") for pair in mirrors.pop("", [])]
        broken = [
            Offence(ids=tuple(pair.id for pair in pairs), detail=f"mirror {name!r}: {why}")
            for name, pairs in mirrors.items()
            if (why := _broken(pairs))
        ]
        tilted, tallies = _tilted(corpus)
        couples = _couples(corpus.pairs)
        odd = [
            Offence(ids=tuple(sorted(users)), detail=f"couple {couple!r} has {len(users)} users")
            for couple, users in couples.items()
            if len(users) != 2
        ]
        return [
            Figure.counted("pairs without a mirror tag", len(corpus.pairs), alone),
            Figure.counted("mirror tags that are not two opposite halves", len(mirrors), broken),
            Figure.counted("answers chosen and rejected unequally in a stratum", tallies, tilted),
            Figure.counted("couples that are not two users", len(couples), odd),
        ]


def _broken(pairs: Sequence[Pair]) -> str:
    """Return what keeps these pairs from being two opposite halves; empty if nothing does."""
    if len(pairs) != 2:
        return f"{len(pairs)} halves"
    one, two = pairs
    ours, theirs = one.stances, two.stances
    same = [axis for axis in ours if ours[axis] == theirs.get(axis)]
    wrong = {
        "the questions differ": one.question != two.question,
        "the answers are not swapped": (one.chosen, one.rejected) != (two.rejected, two.chosen),
        "both halves are the same user": one.user == two.user,
        "the halves lie in different splits": one.tags.get("split") != two.tags.get("split"),
        "the halves lie in different couples": one.tags.get("couple") != two.tags.get("couple"),
        "the halves have different axes": one.tags.get("axis") != two.tags.get("axis"),
        f"both halves want the same on {', '.join(same)}": bool(same),
    }
    return "; ".join(why for why, so in wrong.items() if so)


def _tilted(corpus: Corpus) -> tuple[list[Offence], int]:
    """Answers whose choices and rejections do not cancel within split, category and axis; and how many were counted."""
    net: Counter[tuple[str, str, str, int]] = Counter()
    for pair, (chosen, rejected) in zip(corpus.pairs, corpus.sides, strict=True):
        stratum = (pair.tags.get("split", ""), pair.category, pair.tags.get("axis", ""))
        net[*stratum, chosen] += 1
        net[*stratum, rejected] -= 1
    tilted = [
        Offence(
            ids=(corpus.answers[answer].id,),
            detail=f"chosen − rejected = {count:+d} in split {split!r}, category {category!r}, axis {axis!r}",
        )
        for (split, category, axis, answer), count in net.items()
        if count
    ]
    return tilted, len(net)


def _couples(pairs: Sequence[Pair]) -> Mapping[str, set[str]]:
    couples: dict[str, set[str]] = defaultdict(set)
    for pair in pairs:
        if couple := pair.tags.get("couple"):
            couples[couple].add(pair.user)
    return couples


@dataclass(frozen=True)
class UserBlindAccuracy:
    """Check that ignoring the user scores one half: exactly on a mirrored suite, within its interval on any other."""

    settings: AuditConfig
    opinions: Sequence[Opinion]

    name = "user-blind accuracy"

    def examine(self, corpus: Corpus) -> Finding:
        """Score every rater that is not shown the user."""
        exact = corpus.mirrored
        return Finding.of(
            self.name,
            asks="does a rater that is not shown the user score ½ (ties ½), and cover no couple?",
            threshold="exactly ½ in every split, category and axis; couple coverage 0"
            if exact
            else "warn where the 95 % interval lies above ½",
            figures=[
                figure
                for opinion in self.opinions
                for figure in (
                    *(self._exact(opinion, corpus) if exact else self._estimated(opinion, corpus)),
                    *_silence(opinion, corpus),
                )
            ],
        )

    def _exact(self, opinion: Opinion, corpus: Corpus) -> list[Figure]:
        credits = opinion.credits(corpus)
        said = np.isfinite(credits)
        off = [
            Offence(ids=(stratum,), detail=f"{total / count:.4f} over {count:,} pairs")
            for stratum, (total, count) in _totals(corpus, credits, said).items()
            if 2 * total != count
        ]
        accuracy = Figure(
            name=f"{opinion.rater}: accuracy",
            verdict=CheckVerdict.FAIL if off else CheckVerdict.PASS if said.any() else CheckVerdict.NOT_APPLICABLE,
            value=float(credits[said].mean()) if said.any() else None,
            n=int(said.sum()),
            examples=tuple(off),
        )
        return [accuracy, *_coverage(opinion.rater, corpus, credits, said)]

    def _estimated(self, opinion: Opinion, corpus: Corpus) -> list[Figure]:
        credits = opinion.credits(corpus)
        said = np.isfinite(credits)
        pairs = [pair for pair, kept in zip(corpus.pairs, said, strict=True) if kept]
        clusters = Clusters.of([pair.user for pair in pairs], [pair.question for pair in pairs])
        rng = np.random.default_rng(self.settings.seed)
        accuracy = mean_interval(credits[said], clusters, rng, bounds=(0.0, 1.0))
        beats = accuracy.low is not None and accuracy.low > 0.5
        verdict = CheckVerdict.WARN if beats else CheckVerdict.PASS
        return [Figure.estimated(f"{opinion.rater}: accuracy", accuracy, verdict)]


def _silence(opinion: Opinion, corpus: Corpus) -> list[Figure]:
    """Return figures on what a rater did not say; the pairs concerned are left out of its accuracy."""
    silent = [
        Offence(ids=(contrast.id,), detail=f"{opinion.rater} gave no verdict")
        for contrast, said in zip(corpus.contrasts, np.isfinite(opinion.preference), strict=True)
        if not said
    ]
    name = f"{opinion.rater}: couples of answers without a verdict"
    return [Figure.counted(name, len(corpus.contrasts), silent, CheckVerdict.WARN)] if silent else []


def _totals(corpus: Corpus, credits: Floats, said: np.ndarray) -> dict[str, tuple[float, int]]:
    """Credit and pairs of every stratum; halves add up exactly in binary."""
    totals: dict[str, tuple[float, int]] = {}
    for pair, credit, kept in zip(corpus.pairs, credits.tolist(), said.tolist(), strict=True):
        for stratum in _strata(pair) if kept else ():
            total, count = totals.get(stratum, (0.0, 0))
            totals[stratum] = (total + credit, count + 1)
    return totals


def _strata(pair: Pair) -> Iterator[str]:
    split, axis = pair.tags.get("split", ""), pair.tags.get("axis", "")
    yield "all pairs"
    yield f"split {split}"
    for stratum in (f"category {pair.category}", f"axis {axis}"):
        yield stratum
        yield f"split {split}, {stratum}"


def _coverage(rater: str, corpus: Corpus, credits: Floats, said: np.ndarray) -> list[Figure]:
    """Couple coverage, over the couples that are two users."""
    whole = {couple for couple, users in _couples(corpus.pairs).items() if len(users) == 2}
    rows = [i for i, pair in enumerate(corpus.pairs) if said[i] and pair.tags.get("couple") in whole]
    if not rows:
        return []
    pairs = [corpus.pairs[i] for i in rows]
    share = couple_coverage(credits[rows], [pair.user for pair in pairs], [pair.tags["couple"] for pair in pairs])
    verdict = CheckVerdict.FAIL if share.value else CheckVerdict.PASS
    return [Figure.estimated(f"{rater}: couple coverage", share, verdict)]
