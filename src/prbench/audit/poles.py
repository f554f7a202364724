"""Checks that the stance is in the text, and whether user-blind raters take a side.

The probe learns the words of each pole on some questions and tells the poles apart on the others; were the poles only
labels, it could not. The preference shows what mirroring hides: that one pole's answers are simply better liked.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from prbench.audit.config import AuditConfig
from prbench.audit.corpus import Corpus
from prbench.audit.raters import Floats, Opinion
from prbench.audit.result import CheckVerdict, Figure, Finding, Offence
from prbench.stats import Clusters, Estimate, mean_interval

_TOKEN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d[\d.,]*|[?!:;()—]")
_SMOOTHING = 0.5


@dataclass(frozen=True)
class PoleProbe:
    """A bag of words learnt on some questions tells the poles apart on others."""

    settings: AuditConfig

    name = "probe"

    def examine(self, corpus: Corpus) -> Finding:
        """Probe every axis that has enough questions."""
        probed = {
            axis: self._probe(corpus, places)
            for axis, places in corpus.by_axis.items()
            if len({corpus.contrasts[place].question for place in places}) >= self.settings.probe_questions
        }
        figures = [self._axis(axis, estimate) for axis, estimate in probed.items()]
        if probed:
            figures.insert(0, self._mean(list(probed.values())))
        return Finding.of(
            self.name,
            asks="does a naive Bayes classifier of words tell the poles of an axis apart on questions it has not seen?",
            threshold="95 % interval of the mean over axes above ½, else fail; of each axis, else warn",
            figures=figures,
        )

    def _probe(self, corpus: Corpus, places: Sequence[int]) -> Estimate:
        contrasts = [corpus.contrasts[place] for place in places]
        questions = [contrast.question for contrast in contrasts]
        sides = [[corpus.answers[c.first].text for c in contrasts], [corpus.answers[c.second].text for c in contrasts]]
        credits = probe_credits(sides[0], sides[1], questions)
        rng = np.random.default_rng(self.settings.seed)
        return mean_interval(credits, Clusters.of(questions, questions), rng, bounds=(0.0, 1.0))

    def _mean(self, axes: Sequence[Estimate]) -> Figure:
        if len(axes) == 1:
            mean = axes[0]
        else:
            units = list(range(len(axes)))
            rng = np.random.default_rng(self.settings.seed)
            mean = mean_interval(
                [axis.value or 0.0 for axis in axes], Clusters.of(units, units), rng, bounds=(0.0, 1.0)
            )
        return Figure.estimated("mean over axes", mean, CheckVerdict.PASS if _above_half(mean) else CheckVerdict.FAIL)

    def _axis(self, axis: str, estimate: Estimate) -> Figure:
        if _above_half(estimate):
            return Figure.estimated(axis, estimate, CheckVerdict.PASS)
        example = Offence(ids=(axis,), detail="the stance may be in the meaning and not in the words")
        return Figure.estimated(axis, estimate, CheckVerdict.WARN, [example])


def _above_half(estimate: Estimate) -> bool:
    return estimate.low is not None and estimate.low > 0.5


def probe_credits(first: Sequence[str], second: Sequence[str], questions: Sequence[str]) -> Floats:
    """Return for each row whether naive Bayes, learnt on all other questions, knows which text is a first one.

    Words count once a text (Bernoulli with smoothing); a tie is worth ½.

    Example:
        >>> first, second = ["red tea", "red hat"], ["blue tea", "blue hat"]
        >>> probe_credits(first, second, ["tea", "hat"]).tolist()
        [1.0, 1.0]
    """
    ones, twos = _bags(first, second)
    credits = np.zeros(len(questions))
    labels = np.array([list(dict.fromkeys(questions)).index(question) for question in questions])
    for label in np.unique(labels):
        own = labels == label
        seen = int((~own).sum())
        weight = _log_odds(ones[~own].sum(axis=0), seen) - _log_odds(twos[~own].sum(axis=0), seen)
        credits[own] = (np.sign(np.round((ones[own] - twos[own]) @ weight, 9)) + 1) / 2
    return credits


def _log_odds(count: Floats, n: int) -> Floats:
    odds: Floats = np.log(count + _SMOOTHING) - np.log(n - count + _SMOOTHING)
    return odds


def _bags(first: Sequence[str], second: Sequence[str]) -> tuple[Floats, Floats]:
    vocabulary: dict[str, int] = {}
    sets = [{vocabulary.setdefault(token, len(vocabulary)) for token in _tokens(text)} for text in (*first, *second)]
    bags = np.zeros((len(sets), len(vocabulary)))
    for row, tokens in enumerate(sets):
        bags[row, list(tokens)] = 1.0
    return bags[: len(first)], bags[len(first) :]


def _tokens(text: str) -> list[str]:
    """Words and marks; all numbers are one token."""
    return ["0" if token[0].isdigit() else token for token in _TOKEN.findall(text.lower())]


@dataclass(frozen=True)
class PolePreference:
    """Check that no rater that is not shown the user prefers one pole of an axis by far."""

    settings: AuditConfig
    opinions: Sequence[Opinion]

    name = "preference"

    def examine(self, corpus: Corpus) -> Finding:
        """Return for each axis and rater the share of contrasts in which it prefers the axis's first pole."""
        return Finding.of(
            self.name,
            asks="does a rater that is not shown the user prefer one pole? (mirroring hides it; here it shows)",
            threshold=f"more than {self.settings.preference:g} away from ½, and the 95 % interval excludes ½: warn",
            figures=[self._figure(corpus, axis, opinion) for opinion in self.opinions for axis in corpus.by_axis],
        )

    def _figure(self, corpus: Corpus, axis: str, opinion: Opinion) -> Figure:
        places = [place for place in corpus.by_axis[axis] if np.isfinite(opinion.preference[place])]
        contrasts = [corpus.contrasts[place] for place in places]
        preference = opinion.preference[places]
        questions = [contrast.question for contrast in contrasts]
        rng = np.random.default_rng(self.settings.seed)
        share = mean_interval(preference, Clusters.of(questions, questions), rng, bounds=(0.0, 1.0))
        exempt = self.settings.is_exempt(axis, opinion.rater)
        far = not exempt and _is_far(share, self.settings.preference)
        leaning = 1.0 if (share.value or 0.0) > 0.5 else 0.0
        one, two = corpus.axes[axis]
        ids = [contrast.id for contrast, own in zip(contrasts, preference, strict=True) if own == leaning]
        examples = [Offence(ids=(name,), detail=f"{opinion.rater} prefers {one if leaning else two}") for name in ids]
        missing = len(corpus.by_axis[axis]) - len(places)
        notes = ["exempt"] * exempt + [f"{missing} without a verdict"] * bool(missing)
        name = f"{axis}: {opinion.rater} prefers {one} to {two}" + (f" ({', '.join(notes)})" if notes else "")
        return Figure.estimated(name, share, CheckVerdict.WARN if far else CheckVerdict.PASS, examples if far else ())


def _is_far(share: Estimate, most: float) -> bool:
    if share.value is None or share.low is None or share.high is None:
        return False
    return abs(share.value - 0.5) > most and not share.low <= 0.5 <= share.high
