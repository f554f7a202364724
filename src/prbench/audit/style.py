"""Checks that the poles of an axis do not differ in anything else: length, layout, punctuation, address, difficulty.

Only contrasts in which nothing but the axis differs are looked at. A suite without axes is asked the same of chosen and
rejected answers; there a difference is a warning, since what people choose may well be longer.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from prbench.audit.config import AuditConfig
from prbench.audit.corpus import Corpus
from prbench.audit.raters import Floats
from prbench.audit.result import CheckVerdict, Figure, Finding, Offence
from prbench.stats import Clusters, Estimate, mean_interval
from prbench.texts import list_markers, reading_ease, sentences, without_list_markers, words

Measure = Callable[[str], float]

_SECOND_PERSON = re.compile(r"\b(?:you|your|yours|yourself|yourselves)\b", re.IGNORECASE)
_DIGIT = re.compile(r"\d")


def _per_hundred_words(count: Callable[[str], int]) -> Measure:
    return lambda text: 100 * count(text) / max(len(words(text)), 1)


MEASURES: Mapping[str, Measure] = {
    "words": lambda text: float(len(text.split())),
    "sentences": lambda text: float(len(sentences(text))),
    "list markers": lambda text: float(list_markers(text)),
    "digits": _per_hundred_words(lambda text: len(_DIGIT.findall(without_list_markers(text)))),
    "question marks": _per_hundred_words(lambda text: text.count("?")),
    "exclamation marks": _per_hundred_words(lambda text: text.count("!")),
    "second person": _per_hundred_words(lambda text: len(_SECOND_PERSON.findall(text))),
}
"""Counts of a text; where length should not tell twice, per hundred words."""


@dataclass(frozen=True)
class StyleBalance:
    """The poles of an axis look alike."""

    settings: AuditConfig

    name = "style"

    def examine(self, corpus: Corpus) -> Finding:
        """Compare the poles of every axis in every measure."""
        settings = self.settings
        differences = compare_sides(corpus, MEASURES, settings, standardise=True)
        return Finding.of(
            self.name,
            asks="do the poles of an axis (or chosen and rejected answers) differ in length or looks?",
            threshold=f"standardised difference > {settings.style_warn:g} warns, > {settings.style_fail:g} fails "
            f"(on axes), if its interval excludes 0 and the means are {100 * settings.style_share:g} % apart",
            figures=[self._figure(difference) for difference in differences],
        )

    def _figure(self, difference: "StyleDifference") -> Figure:
        size = abs(difference.estimate.value or 0.0)
        verdict = CheckVerdict.PASS
        apart = difference.share > self.settings.style_share
        if apart and difference.is_clear and not difference.exempt:
            grave = difference.axis and difference.measure not in self.settings.warn_only
            if size > self.settings.style_fail and grave:
                verdict = CheckVerdict.FAIL
            elif size > self.settings.style_warn:
                verdict = CheckVerdict.WARN
        return difference.figure(verdict)


@dataclass(frozen=True)
class ReadingLevel:
    """The poles of an axis are equally hard to read."""

    settings: AuditConfig

    name = "reading level"

    def examine(self, corpus: Corpus) -> Finding:
        """Compare the Flesch reading ease of the poles."""
        points = self.settings.reading_points
        differences = compare_sides(corpus, {self.name: reading_ease}, self.settings, standardise=False)
        figures = []
        for difference in differences:
            far = abs(difference.estimate.value or 0.0) > points and difference.is_clear and not difference.exempt
            figures.append(difference.figure(CheckVerdict.WARN if far else CheckVerdict.PASS))
        return Finding.of(
            self.name,
            asks="is one pole (or the chosen answers) harder to read? Flesch reading ease, in points",
            threshold=f"more than {points:g} points, and the 95 % interval excludes 0: warn",
            figures=figures,
        )


@dataclass(frozen=True)
class StyleDifference:
    """Difference of a measure between two sides."""

    axis: str
    """Axis of the difference; empty where chosen and rejected answers were compared."""
    sides: tuple[str, str]
    measure: str
    means: tuple[float, float]
    estimate: Estimate
    exempt: bool
    extremes: Sequence[Offence]
    """The contrasts that differ most in the direction of the mean."""

    @property
    def is_clear(self) -> bool:
        """Whether the interval excludes 0."""
        low, high = self.estimate.low, self.estimate.high
        return low is not None and high is not None and (low > 0 or high < 0)

    @property
    def share(self) -> float:
        """Distance between the means, as a share of the larger one."""
        low, high = sorted(map(abs, self.means))
        return (high - low) / high if high else 0.0

    def figure(self, verdict: CheckVerdict) -> Figure:
        """The figure to report, with examples only where something is wrong."""
        one, two = self.sides
        means = f"{one} {self.means[0]:.1f}, {two} {self.means[1]:.1f}"
        name = f"{self.axis or 'all pairs'}: {self.measure} ({means}{'; exempt' if self.exempt else ''})"
        wrong = verdict in (CheckVerdict.WARN, CheckVerdict.FAIL)
        return Figure.estimated(name, self.estimate, verdict, self.extremes if wrong else ())


def compare_sides(
    corpus: Corpus, measures: Mapping[str, Measure], settings: AuditConfig, *, standardise: bool
) -> list[StyleDifference]:
    """Compare both sides in each measure: the poles of each axis, or chosen with rejected where there is no axis.

    A standardised difference is the mean difference over the standard deviation within the two sides, which is taken as
    known by the interval.
    """
    taken = {name: np.array([measure(answer.text) for answer in corpus.answers]) for name, measure in measures.items()}
    return [
        _difference(sides, name, values, settings, standardise)
        for sides in _all_sides(corpus)
        for name, values in taken.items()
    ]


class _Sides(NamedTuple):
    """Answers set against each other row by row, by position in the corpus."""

    axis: str
    names: tuple[str, str]
    ids: Sequence[str]
    clusters: Clusters
    first: Sequence[int]
    second: Sequence[int]


def _all_sides(corpus: Corpus) -> Iterator[_Sides]:
    for axis, places in corpus.by_axis.items():
        rows = [corpus.contrasts[place] for place in places]
        one, two = corpus.axes[axis]
        questions = [row.question for row in rows]
        clusters = Clusters.of(questions, questions)
        first, second = [row.first for row in rows], [row.second for row in rows]
        yield _Sides(axis, (one, two), [row.id for row in rows], clusters, first, second)
    if not corpus.by_axis:
        pairs = corpus.pairs
        clusters = Clusters.of([pair.user for pair in pairs], [pair.question for pair in pairs])
        chosen, rejected = zip(*corpus.sides, strict=True)
        yield _Sides("", ("chosen", "rejected"), [pair.id for pair in pairs], clusters, chosen, rejected)


def _difference(
    sides: _Sides, measure: str, values: Floats, settings: AuditConfig, standardise: bool
) -> StyleDifference:
    first, second = values[list(sides.first)], values[list(sides.second)]
    gap = (first - second) / (_spread(first, second) if standardise else 1.0)
    estimate = mean_interval(gap, sides.clusters, np.random.default_rng(settings.seed))
    one, two = sides.names
    extremes = [
        Offence(ids=(sides.ids[row],), detail=f"{measure}: {one} {first[row]:.1f}, {two} {second[row]:.1f}")
        for row in np.argsort(-gap * np.sign(estimate.value or 0.0), kind="stable").tolist()
        if gap[row]
    ]
    means = (float(first.mean()), float(second.mean()))
    exempt = settings.is_exempt(sides.axis, measure)
    return StyleDifference(sides.axis, sides.names, measure, means, estimate, exempt, extremes)


def _spread(first: Floats, second: Floats) -> float:
    """The pooled standard deviation within both sides; 1 where nothing varies within them."""
    pooled = float(np.sqrt((first.var() + second.var()) / 2))
    return pooled or 1.0
