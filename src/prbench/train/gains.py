"""Trust in each reading of `contrast`: a few gains, fitted on the validation split.

Its people and questions are unseen, so it says how sure the readings of unseen people and answers can be. First the
gains of posts, statements and answers, by the pairs of the mirror suite under the users' posts and under their rubrics;
then how much flaws count against taste, by the same pairs and by sound and flawed answers with and without posts.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from prbench.models.personal.contrast import LIMIT, FlawTrust, TextGains, text_odds, weighed
from prbench.models.personal.traits import Floats

_MODEST = 0.002
"""Penalty of a gain's logarithm: where everything is told right, no gain is large enough."""
_LENT, _NOBODY = 0.2, 0.03
"""Weight of flawed answers under posts, and without, against the pairs of the mirror suite: chosen on validation."""
_NEAR = 3.0
"""Gain to begin with of how near a statement is to an answer."""


class TextReading(NamedTuple):
    """Readings of some texts by terms and by the tuned encoder, (N, K, 2) each."""

    terms: Floats
    tuned: Floats | None
    vectors: Floats | None = None
    """Log-odds for the second side by plain vectors, (N, K), of statements."""

    def odds(self, gains: TextGains) -> Floats:
        """Log-odds for the second side of each axis, (K)."""
        found = text_odds(self.terms, self.tuned, gains).sum(0)
        if self.vectors is not None:
            found = found + gains.vectors * self.vectors.sum(0)
        return np.asarray(np.clip(found, -LIMIT, LIMIT))


class ReadPairs(NamedTuple):
    """Pairs of answers as they were read, the better one first."""

    terms: Floats
    """Logits of what the answers differ in by their traits, before they are sharpened, (N, 2, K)."""
    tuned: Floats | None
    """The same by the tuned encoder, where there is one."""
    flaws: Floats
    """Flaw scores F of the pairs, (N)."""

    def logits(self, answers: float, tuned: float) -> Floats:
        """Logits of both readings together."""
        return answers * self.terms + (0.0 if self.tuned is None else tuned * self.tuned)


class HeldReadings(NamedTuple):
    """Readings of the validation split."""

    pairs: ReadPairs
    people: Sequence[TextReading]
    users: Sequence[int]
    """User of each pair, a place among the people, (N)."""
    rubrics: Sequence[TextReading]
    stated: Sequence[int]
    """Rubric of each pair, a place among the rubrics, (N)."""
    near: Floats
    """Difference in nearness of the rubric, in favour of the better answer, (N)."""
    flawed: ReadPairs
    """Sound answers beside flawed ones."""


class ReadingGains(NamedTuple):
    """Trust in each reading."""

    answers: float
    tuned: float
    """The same for the tuned encoder's reading of answers."""
    posts: TextGains
    plan: TextGains
    near: float
    soundness: FlawTrust

    @property
    def told(self) -> str:
        """The gains in one line: by terms and by tuned encoders, where there are any."""
        answers, posts, plan = (
            f"{by_terms:.1f} and {tuned:.1f}"
            for by_terms, tuned in ((self.answers, self.tuned), self.posts[:2], self.plan[:2])
        )
        return (
            f"gains by terms and by tuned encoders: answers {answers}, posts {posts}, statements {plan}; "
            f"statements by plain vectors {self.plan.vectors:.1f} and by nearness {self.near:.1f}, "
            f"flaws {self.soundness.trust:.1f}"
        )


def fit(held: HeldReadings, seed: int) -> ReadingGains:
    """Fit all gains on the validation split."""
    found = _least(lambda logs: _taste_loss(held, np.exp(logs)), np.log([1, 0.5, 2, 1, 1, 2, 1, 1, 1, _NEAR]))
    answers, tuned, *rest = (float(gain) for gain in np.exp(found))
    gains = ReadingGains(answers, tuned, TextGains(*rest[:3]), TextGains(*rest[3:7]), rest[7], FlawTrust(1, 1, 1))
    shown = _shown(held, gains, seed)
    sound = np.exp(_least(lambda logs: _sound_loss(shown, np.exp(logs)), np.log([1.0, 1.0, 2.0])))
    return gains._replace(soundness=FlawTrust(*map(float, sound)))


def tastes(logits_N2K: Floats, odds_NK: Floats) -> Floats:
    """Log-odds that the first answer of each pair is preferred, (N)."""
    shares = np.exp(logits_N2K - logits_N2K.max((1, 2), keepdims=True))
    wanted = 0.5 * (1 + np.tanh(np.stack([odds_NK, -odds_NK], axis=1) / 2))
    first, second = (shares * wanted).sum((1, 2)), (shares[:, ::-1] * wanted).sum((1, 2))
    return np.asarray(np.log(np.maximum(first, 1e-12)) - np.log(np.maximum(second, 1e-12)))


def _taste_loss(held: HeldReadings, gains: Floats) -> float:
    posts, plan, near = TextGains(*gains[2:5]), TextGains(*gains[5:9]), gains[9]
    logits = held.pairs.logits(gains[0], gains[1])
    people = np.array([one.odds(posts) for one in held.people])[held.users]
    stated = np.array([one.odds(plan) for one in held.rubrics])[held.stated]
    loss = np.logaddexp(0, -tastes(logits, people)).mean()
    return float(loss + np.logaddexp(0, -tastes(logits, stated) - near * held.near).mean())


class _Shown(NamedTuple):
    """Taste and flaw of pairs, and how much they weigh."""

    taste: Floats
    flaw: Floats
    weight: Floats


def _shown(held: HeldReadings, gains: ReadingGains, seed: int) -> _Shown:
    """Return the mirror suite's pairs under their users' posts, and the flawed ones under all users' and no posts."""
    people = np.array([one.odds(gains.posts) for one in held.people])
    own = tastes(held.pairs.logits(gains.answers, gains.tuned), people[held.users])
    lent = np.random.default_rng(seed).permutation(len(people))[: min(len(people), 10)]
    logits = held.flawed.logits(gains.answers, gains.tuned)
    tasted = [tastes(logits, np.tile(people[one], (len(held.flawed.flaws), 1))) for one in lent]
    nobody = np.zeros(len(held.flawed.flaws))
    parts = [(own, held.pairs.flaws, 1.0), (nobody, held.flawed.flaws, _NOBODY)]
    parts += [(one, held.flawed.flaws, _LENT / len(tasted)) for one in tasted]
    parts = [part for part in parts if len(part[0])]
    return _Shown(
        np.concatenate([taste for taste, _, _ in parts]),
        np.concatenate([flaw for _, flaw, _ in parts]),
        np.concatenate([np.full(len(taste), weight / len(taste)) for taste, _, weight in parts]),
    )


def _sound_loss(shown: _Shown, gains: Floats) -> float:
    found = weighed(shown.taste, shown.flaw, FlawTrust(*gains))
    return float((shown.weight * np.logaddexp(0, -found)).sum())


def _least(loss: Callable[[Floats], float], start: Floats) -> Floats:
    from scipy.optimize import minimize

    found = minimize(
        lambda logs: loss(logs) + _MODEST * float(((logs - start) ** 2).sum()),
        start,
        method="L-BFGS-B",
        bounds=[(-5, 5)] * len(start),
        options={"maxiter": 100},
    )
    return np.asarray(found.x, dtype=np.float64)
