"""What makes an answer unsound: flaws in the content by its vector, and in its counts that it is no answer at all.

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


class Sound(NamedTuple):
    """What soundness is learned from."""

    penalty: float
    """Of the weights that tell a flaw."""
    flawed: Sequence[Pair]
    asked: Sequence[tuple[str, str]]
    """Questions and sound answers."""
    reader: TraitReader


def fit_flaw(sound: Sound, equal: Sequence[tuple[Traits, Traits]]) -> Floats:
    """How f grows with the vector; nothing where no flawed answer is at hand.

    Args:
        sound: What is learned from.
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
    """How u grows with the counts, and where it starts, (COUNTS + 1).

    Args:
        sound: What is learned from.
        spoilt: Texts that are no answers.
        strangers: For each question a reader that has not seen its answers.
    """
    sound.reader.prepare([one.spoilt for one in spoilt])
    made = [strangers[one.question].read(one.question, (one.spoilt,), one.posts)[0].dense for one in spoilt]
    good = [strangers[question].read(question, (answer,))[0].dense for question, answer in sound.asked]
    rows = np.array([*made, *good])[:, :COUNTS]
    rows = np.concatenate([rows, np.ones((len(rows), 1))], axis=1)
    labels = np.concatenate([np.ones(len(made)), np.zeros(len(good))])
    weights = np.where(labels > 0, 1.0, len(made) / len(good))
    telling = [0, *range(COUNTS - TELLING, COUNTS), COUNTS]  # the rest is manner: sound answers differ in it
    penalty = np.append(np.full(TELLING + 1, _SPOILT_PENALTY * COUNTS_SCALE**2), 1e-6)
    found = np.zeros(COUNTS + 1)
    found[telling] = logistic(rows[:, telling], labels, weights, penalty)
    return found
