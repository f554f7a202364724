"""Soundness of answers: flaws in the content, told by the vector, and texts that are no answer, told by counts.

Pairs of sound answers are shown as equally good. A flaw is not looked for in the counts, nor a spoilt answer in the
vector: they would learn how the examples were made.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from prbench.models.personal.traits import COUNTS, COUNTS_SCALE, TELLING, Floats, TraitReader, Traits
from prbench.train.regression import logistic
from prbench.train.unsound import Unsound
from prbench.types import Pair

_EQUAL = 0.3
"""Weight of a pair of sound answers."""
_SPOILT_PENALTY = 0.01
_TIES = [COUNTS - TELLING, COUNTS - TELLING + 1]
"""The counts that tie an answer to its question: how near it is, and how many of its words it has."""
_RARER = 1.0
"""Difference by which the log-odds of what is no answer are lower than among the examples; chosen on validation."""
_NEVER = -20.0
"""Log-odds of a kind that no example was made of."""


class Sound(NamedTuple):
    """Material that soundness is learned from."""

    penalty: float
    """Penalty of the weights that tell a flaw."""
    flawed: Sequence[Pair]
    asked: Sequence[tuple[str, str]]
    """Questions and sound answers."""
    reader: TraitReader


def fit_flaw(sound: Sound, equal: Sequence[tuple[Traits, Traits]]) -> Floats:
    """Fit the weights of f on the vector; zeros where no flawed answer is at hand.

    Args:
        sound: Material that is learned from.
        equal: Pairs of sound answers.
    """
    sound.reader.prepare([text for pair in sound.flawed for text in (pair.question, pair.chosen, pair.rejected)])
    alike = np.array([one.vector - two.vector for one, two in equal])
    if not sound.flawed:
        return np.zeros(alike.shape[1])
    shown = [sound.reader.read(pair.question, (pair.chosen, pair.rejected)) for pair in sound.flawed]
    worse = np.array([better.vector - flawed.vector for better, flawed in shown])
    rows = np.concatenate([worse, alike])
    labels = np.concatenate([np.ones(len(worse)), np.full(len(alike), 0.5)])
    weights = np.concatenate([np.ones(len(worse)), np.full(len(alike), _EQUAL)])
    return logistic(rows, labels, weights, np.full(rows.shape[1], sound.penalty))


def fit_spoilt(sound: Sound, spoilt: Sequence[Unsound], strangers: Mapping[str, TraitReader]) -> Floats:
    """Fit the weights of u on the counts, and its start, (2, COUNTS + 1): for broken texts, and for misplaced answers.

    A sound answer to another question is as well made as any; only what ties it to the question tells it. So the two
    kinds are told apart from sound answers each by its own counts.

    Args:
        sound: Material that is learned from.
        spoilt: Texts that are no answers.
        strangers: For each question a reader that has not seen its answers.
    """
    sound.reader.prepare([one.spoilt for one in spoilt])
    answers = {answer for _, answer in sound.asked}
    made = [strangers[one.question].read(one.question, (one.spoilt,), one.posts)[0].dense for one in spoilt]
    misplaced = np.array([one.spoilt in answers for one in spoilt])
    good = np.array([strangers[question].read(question, (answer,))[0].dense for question, answer in sound.asked])
    found = np.zeros((2, COUNTS + 1))
    # the other counts are manner: sound answers differ in it
    for place, (kind, telling) in enumerate(((~misplaced, [0, *range(COUNTS - TELLING, COUNTS)]), (misplaced, _TIES))):
        bad = np.array(made)[kind]
        if not len(bad):
            found[place, -1] = _NEVER
            continue
        rows = np.concatenate([bad[:, telling], good[:, telling]])
        labels = np.concatenate([np.ones(len(bad)), np.zeros(len(good))])
        weights = np.where(labels > 0, 1.0, len(bad) / len(good))
        penalty = np.append(np.full(len(telling), _SPOILT_PENALTY * COUNTS_SCALE**2), 1e-6)
        own = logistic(np.concatenate([rows, np.ones((len(rows), 1))], axis=1), labels, weights, penalty)
        found[place, [*telling, COUNTS]] = own - np.append(np.zeros(len(telling)), _RARER)
    return found
