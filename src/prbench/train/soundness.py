"""Soundness of answers: flaws in the content, told by the vector, and texts that are no answer, told by counts.

Pairs of sound answers are shown as equally good. A flaw is not looked for in the counts, nor a spoilt answer in the
vector: they would learn how the examples were made.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from prbench.models.personal.traits import COUNTS_SCALE, TELLING, Floats, TraitReader, Traits, telling
from prbench.train.regression import logistic
from prbench.train.unsound import Unsound, shortened
from prbench.types import Pair

_EQUAL = 0.3
"""Weight of a pair of sound answers."""
_SPOILT_PENALTY = 0.01
_SIGNS = TELLING + 1
_TIES = [0, 1, 2, _SIGNS, _SIGNS + 1, _SIGNS + 2]
"""The signs that tie an answer to its question: how near it is and how many of its words it has, for its length."""
_RARER = (1.0, 0.5)
"""Differences by which the log-odds of broken texts and of misplaced answers are lower than among the examples; chosen
on validation."""
_FORMS_WEIGHT = (1.0, 0.3)
"""Weights of a sound answer of another form beside those of the suite, for broken texts and for misplaced answers: a
verse or a title shares little with the request for it. Chosen on validation."""
_NEVER = -20.0
"""Log-odds of a kind that no example was made of."""


class Sound(NamedTuple):
    """Material that soundness is learned from."""

    penalty: float
    """Penalty of the weights that tell a flaw."""
    flawed: Sequence[Pair]
    asked: Sequence[tuple[str, str]]
    """Questions and sound answers."""
    forms: Sequence[tuple[str, str]]
    """Questions and sound answers of other kinds: lists, code, verse, a word."""
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
    """Fit the weights of u on the signs, and its start, (2, signs + 1): for broken texts, and for misplaced answers.

    A sound answer to another question is as well made as any; only what ties it to the question tells it. So the two
    kinds are told apart from sound answers each by its own signs. A first sentence counts as sound: being short is no
    fault. Nor is being a list, code or verse.

    Args:
        sound: Material that is learned from.
        spoilt: Texts that are no answers.
        strangers: For each question a reader that has not seen its answers.
    """
    asked = sorted({(question, text) for question, answer in sound.asked for text in (answer, shortened(answer))})
    asked += sound.forms
    answers = {answer for _, answer in asked}
    sound.reader.prepare([*(one.spoilt for one in spoilt), *answers, *(question for question, _ in asked)])
    made = telling(*_read([(one.question, one.spoilt, one.posts) for one in spoilt], strangers))
    misplaced = np.array([one.spoilt in answers for one in spoilt])
    strange = np.arange(len(asked)) >= len(asked) - len(sound.forms)
    good = telling(*_read([(question, answer, ()) for question, answer in asked], strangers))
    found = np.zeros((2, 2 * _SIGNS + 1))
    kinds = ((~misplaced, list(range(2 * _SIGNS))), (misplaced, _TIES))  # the other counts are manner
    for place, (kind, signs) in enumerate(kinds):
        bad = made[kind]
        if not len(bad):
            found[place, -1] = _NEVER
            continue
        rows = np.concatenate([bad[:, signs], good[:, signs]])
        labels = np.concatenate([np.ones(len(bad)), np.zeros(len(good))])
        own = np.where(strange, _FORMS_WEIGHT[place], 1.0)
        weights = np.concatenate([np.ones(len(bad)), own * len(bad) / own.sum()])
        penalty = np.append(np.full(len(signs), _SPOILT_PENALTY * COUNTS_SCALE**2), 1e-6)
        fitted = logistic(np.concatenate([rows, np.ones((len(rows), 1))], axis=1), labels, weights, penalty)
        found[place, [*signs, -1]] = fitted - np.append(np.zeros(len(signs)), _RARER[place])
    return found


def _read(texts: Sequence[tuple[str, str, Sequence[str]]], readers: Mapping[str, TraitReader]) -> tuple[Floats, Floats]:
    """The dense traits and the fluency of answers to questions beside posts, each by the reader of its question."""
    found = [readers[question].read(question, (text,), posts)[0] for question, text, posts in texts]
    return np.array([one.dense for one in found]), np.array([one.fluency for one in found])
