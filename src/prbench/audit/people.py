"""Checks of the stances that users hold: equally many at each pole, axes unrelated to each other and to attributes."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from prbench.audit.config import AuditConfig
from prbench.audit.corpus import Corpus
from prbench.audit.result import CheckVerdict, Figure, Finding, Offence
from prbench.stats import holm, mcnemar

People = Mapping[str, Mapping[str, str]]
"""User → attribute → value."""

_DRAWS = 9999


@dataclass(frozen=True)
class StanceBalance:
    """Each axis has equally many users at each pole, and no axis goes with another."""

    settings: AuditConfig

    name = "stances"

    def examine(self, corpus: Corpus) -> Finding:
        """Count users by axis and pole, and correlate axes over the users who hold both."""
        otherwise = CheckVerdict.FAIL if corpus.mirrored else CheckVerdict.WARN
        torn = [
            Offence(ids=(user, axis), detail=f"wants both {' and '.join(sorted(poles))}")
            for user, held in corpus.stances.items()
            for axis, poles in held.items()
            if len(poles) > 1
        ]
        held = sum(len(held) for held in corpus.stances.values())
        figures = [
            Figure.counted("stances that contradict themselves", held, torn, otherwise),
            Figure.counted("axes held unequally in a split", len(corpus.axes), _unequal(corpus), otherwise),
            *self._correlations(corpus),
        ]
        return Finding.of(
            self.name,
            asks="are there equally many users at each pole, and are the axes independent of each other?",
            threshold=f"equal numbers in every split; |phi| of two axes above {self.settings.correlation:g} warns if "
            f"its p < {self.settings.level:g} after Holm",
            figures=figures if corpus.axes else (),
        )

    def _correlations(self, corpus: Corpus) -> list[Figure]:
        """Return the axes that go together more than by chance, and the largest phi of all."""
        found = list(_correlations(corpus))
        if not found:
            return []
        adjusted = holm([pair.p for pair in found]).tolist()
        strong = [
            Offence(ids=pair.axes, detail=f"phi {pair.phi:+.2f}, {pair.users} users, p {p:.3f} after Holm")
            for pair, p in zip(found, adjusted, strict=True)
            if p < self.settings.level and abs(pair.phi) > self.settings.correlation
        ]
        largest = max(found, key=lambda pair: (abs(pair.phi), pair.users))
        name = f"largest |phi|: {' × '.join(largest.axes)}"
        return [
            Figure.counted("couples of axes that go together", len(found), strong, CheckVerdict.WARN),
            Figure(name=name, verdict=CheckVerdict.PASS, value=abs(largest.phi), n=largest.users),
        ]


def _unequal(corpus: Corpus) -> list[Offence]:
    users: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    for pair in corpus.pairs:
        for axis, poles in corpus.stances.get(pair.user, {}).items():
            users[axis, pair.tags.get("split", "")].update((pair.user, pole) for pole in poles)
    found = []
    for (axis, split), held in users.items():
        counts = Counter(pole for _, pole in held)
        numbers = [counts[pole] for pole in corpus.axes[axis]]
        if len(numbers) != 2 or numbers[0] != numbers[1]:
            shown = ", ".join(f"{counts[pole]} {pole}" for pole in corpus.axes[axis])
            found.append(Offence(ids=(axis,), detail=f"split {split!r}: {shown}"))
    return found


class _Correlation(NamedTuple):
    axes: tuple[str, str]
    phi: float
    p: float
    """P-value of the sign test over couples (or users) that the first poles go together as often as not."""
    users: int


def _correlations(corpus: Corpus) -> Iterator[_Correlation]:
    """Phi of every two axes over the users who hold both; the users of one couple are one unit of its test."""
    unit = {pair.user: pair.tags.get("couple") or pair.user for pair in corpus.pairs}
    signs = {
        axis: {
            user: 1 if corpus.axes[axis][0] in held[axis] else -1
            for user, held in corpus.stances.items()
            if len(held.get(axis, ())) == 1
        }
        for axis in corpus.two_sided
    }
    for one, two in itertools.combinations(signs, 2):
        users = sorted(signs[one].keys() & signs[two].keys())
        x, y = (np.array([signs[axis][user] for user in users], dtype=np.float64) for axis in (one, two))
        if len(users) < 2 or x.std() == 0 or y.std() == 0:
            continue
        together: Counter[str] = Counter()
        for user, product in zip(users, (x * y).tolist(), strict=True):
            together[unit[user]] += int(product)
        p = mcnemar(list(together.values()), [0] * len(together))
        yield _Correlation((one, two), float(np.corrcoef(x, y)[0, 1]), p, len(users))


@dataclass(frozen=True)
class DemographicAssociation:
    """Check that no stance goes with who the person is."""

    settings: AuditConfig
    people: People

    name = "demographics"

    def examine(self, corpus: Corpus) -> Finding:
        """Test every axis against every attribute of people."""
        level = self.settings.level
        tests = list(_tests(corpus, self.people, np.random.default_rng(self.settings.seed)))
        adjusted = holm([test.p for test in tests]).tolist() if tests else []
        found = [
            Offence(
                ids=(test.axis, test.attribute),
                detail=f"p {p:.3f} after Holm, Cramér's V {test.strength:.2f}, {test.table}",
            )
            for test, p in sorted(zip(tests, adjusted, strict=True), key=lambda pair: pair[1])
            if p < level
        ]
        figures = [Figure.counted("associations of an axis with an attribute", len(tests), found)]
        if tests:
            smallest = min(adjusted)
            strongest = max(tests, key=lambda test: test.strength)
            figures += [
                Figure(name="smallest p after Holm", verdict=CheckVerdict.PASS, value=smallest, n=len(tests)),
                Figure(
                    name=f"largest Cramér's V: {strongest.axis} × {strongest.attribute}",
                    verdict=CheckVerdict.PASS,
                    value=strongest.strength,
                    n=strongest.users,
                ),
            ]
        return Finding.of(
            self.name,
            asks="does a stance go with age, gender, place or whatever is known of people?",
            threshold=f"p < {level:g} after Holm: fail (chi-square, by {_DRAWS:,} draws with the margins fixed)",
            figures=figures,
        )


class _Test(NamedTuple):
    axis: str
    attribute: str
    p: float
    strength: float
    """Cramér's V, the strength of the association."""
    users: int
    table: str


def _tests(corpus: Corpus, people: People, rng: np.random.Generator) -> Iterator[_Test]:
    attributes = sorted({name for person in people.values() for name in person})
    for axis, attribute in itertools.product(corpus.two_sided, attributes):
        one, two = corpus.axes[axis]
        rows = [
            (people[user][attribute], one in held[axis])
            for user, held in sorted(corpus.stances.items())
            if len(held.get(axis, ())) == 1 and attribute in people.get(user, {})
        ]
        values = sorted({value for value, _ in rows})
        total = np.array([sum(value == own for own, _ in rows) for value in values], dtype=np.int64)
        first = np.array([sum(value == own and at_one for own, at_one in rows) for value in values], dtype=np.int64)
        if len(values) < 2 or first.sum() in (0, total.sum()):
            continue
        drawn = rng.multivariate_hypergeometric(total, int(first.sum()), size=_DRAWS)
        observed = float(_chi_square(first[None, :], total)[0])
        # A draw that ties with what was observed counts; floats that should tie may differ in the last bit.
        p = (1 + int((_chi_square(drawn, total) >= observed * (1 - 1e-9)).sum())) / (_DRAWS + 1)
        shown = "; ".join(f"{v}: {a} {one}, {t - a} {two}" for v, a, t in zip(values, first, total, strict=True))
        yield _Test(axis, attribute, p, float(np.sqrt(observed / total.sum())), int(total.sum()), shown)


def _chi_square(first: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Pearson's statistic of tables with two columns, given the first one and the row totals."""
    share = first.sum(axis=1, keepdims=True) / total.sum()
    statistic: np.ndarray = ((first - total * share) ** 2 / (total * share * (1 - share))).sum(axis=1)
    return statistic
