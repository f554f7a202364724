"""Preferences of raters that are not shown the user, between two answers.

Each is asked about every distinct answer (or, if it compares, about every distinct couple of answers in both orders)
once, whatever the number of pairs. An answer that it does not give is missing, never a preference.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from prbench.audit.corpus import Corpus
from prbench.models import Comparer, Model, Rater, alone, load_model
from prbench.types import AnswerView, Outcome, PairView

Floats: TypeAlias = NDArray[np.float64]

_CREDIT = {"first": 1.0, "tie": 0.5, "second": 0.0}


@dataclass(frozen=True, eq=False)
class Opinion:
    """Preferences of a rater in every contrast of a corpus, without the user."""

    rater: str
    preference: Floats
    """Preference in each contrast: 1 for the first answer, 0 for the second, ½ for a tie; NaN where it did not say."""

    def credits(self, corpus: Corpus) -> Floats:
        """Return the rater's credit on every pair: 1 if the chosen answer won, ½ for a tie, NaN without an opinion."""
        credits = [self.preference[place] if forward else 1 - self.preference[place] for place, forward in corpus.shown]
        return np.array(credits, dtype=np.float64)


def consult(address: str, corpus: Corpus) -> Opinion:
    """Ask the model at an address about all contrasts.

    Example:
        >>> from prbench.types import Pair
        >>> pair = Pair(id="1", user="ann", question="Tea?", chosen="A pot of green tea.", rejected="Black.")
        >>> consult("longer", Corpus([pair])).preference.tolist()
        [1.0]
    """
    return Opinion(address, _ask(load_model(address), corpus))


def _ask(model: Model, corpus: Corpus) -> Floats:
    rater = alone(model)
    return _by_verdict(cast(Comparer, model), corpus) if rater is None else _by_score(rater, corpus)


def _by_score(rater: Rater, corpus: Corpus) -> Floats:
    views = [AnswerView(answer.question, answer.text) for answer in corpus.answers]
    scores = np.full(len(views), np.nan)
    for index, outcome in rater.rate(views):
        if outcome.status == "ok" and outcome.score is not None:
            scores[index] = outcome.score
    first, second = scores[[c.first for c in corpus.contrasts]], scores[[c.second for c in corpus.contrasts]]
    return np.where(np.isnan(first - second), np.nan, (np.sign(first - second) + 1) / 2)


def _by_verdict(comparer: Comparer, corpus: Corpus) -> Floats:
    answers = corpus.answers
    views = [
        PairView(contrast.question, answers[contrast.first].text, answers[contrast.second].text)
        for contrast in corpus.contrasts
    ]
    forward = _verdicts(comparer, views)
    backward = 1 - _verdicts(comparer, [view.swap() for view in views])
    # Both orders or none: half an answer would let a preference for a position through.
    preference: Floats = (forward + backward) / 2
    return preference


def _verdicts(comparer: Comparer, views: Sequence[PairView]) -> Floats:
    found = np.full(len(views), np.nan)
    for index, outcome in comparer.compare(views):
        found[index] = _credit(outcome)
    return found


def _credit(outcome: Outcome) -> float:
    if outcome.status != "ok" or outcome.verdict is None:
        return float("nan")
    return _CREDIT[outcome.verdict]
