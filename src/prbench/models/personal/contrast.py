"""`contrast`: a reward model that sees answers together, finds what they differ in, and where the user stands on it.

Of two answers a and b it says how probable it is that they are told apart by axis k with a on its second side,
P(k, +), or on its first, P(k, −): a softmax over 2 K classes of z(k, ±) = gₖ(|a − b|) ± mₖ(a − b), linear in the
answers' traits and, where an encoder was tuned to read answers, in its vectors. Of the user it says how far the odds
are for the second side, Lₖ, the sum over posts, statements and judged pairs. A text shows the first side of an axis,
nothing, or the second: a softmax over the sum of what its terms say and, where there is one, what an encoder that was
tuned to tell stances says of the whole text. It adds log((P(second) + ε) / (P(first) + ε)): a text that says nothing
adds nothing. What the user prefers is then the mixture

    P(a ≻ b | user) = Σₖ P(k, +) σ(Lₖ) + P(k, −) σ(−Lₖ),

with the log-odds T. What statements say by themselves, whatever the axes, is added to T: how much nearer they are to a
than to b, or farther, where they say what is not wanted. So do sentences of posts that say what is wanted outright,
judged pairs, and posts as a whole a little. What
all users prefer goes before taste: F = f(a) − f(b), linear in the tuned vectors or else in the plain ones, are the
log-odds that b is flawed, where one of them is, and a share q(|F|) of the pairs is decided by that: P = q σ(F) +
(1 − q) σ(T). To its log-odds is added s = h(b) − h(a), where h = log(1 + eᵘ) and eᵘ is the sum of two odds, each
log-linear in counts, signs of fluency and their products with the length: that a text is broken (empty, repeated,
garbled, pasted), and that it answers another question. Of two answers s is nearly 0; where it is not, nothing else
counts: the rest is weighed by 1 − tanh²(s / 2). Swapping the answers changes the sign of the margin and nothing else.
An answer in a list has the mean of its margins. Alone it is weighed against the typical answer t.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from prbench.models.ngrams import NGrams, SparseRow, words
from prbench.models.personal.fluency import KEPT, Fluency
from prbench.models.personal.pieces import sentences
from prbench.models.personal.statements import Attitude, statements
from prbench.models.personal.traits import COUNTS, Floats, Traits, telling
from prbench.rank import TextEncoder

NAME = "contrast"
SEPARATOR = "\0"
"""Separator of terms; a line break is a term."""
SPOILT = "spoilt_by_fluency"
"""Name of the weights of broken texts where fluency is read; without it they are `spoilt`."""
LIMIT = 6.0
"""Log-odds of a side beyond which no reading goes."""
DOUBT = 0.02
"""ε: how probable either side is at least, so that no text settles an axis by itself."""
_MOST_LIKED = 4.0
"""Statements that all judged pairs together weigh as much as, at most."""
_DOUBT = 1.0
"""Level that u must exceed for an answer alone."""
_SURE = 6.0
"""Log-odds that a text is no answer beyond which only their order counts."""
_STEPS = 127
_TRUST = 0.9
"""Probability that a judged pair was decided by the side the user stands on."""


class TextGains(NamedTuple):
    """Trust in the readings of a text: its terms, the tuned encoder, what both say together, and its plain vector."""

    terms: float
    tuned: float
    whole: float
    vectors: float = 0.0
    """Of statements; models of earlier versions do not read them so."""


class FlawTrust(NamedTuple):
    """Weight of flaws: σ(F) is sharpened by `trust`, and q(|F|) = σ(`slope` |F| − `doubt`)."""

    trust: float
    slope: float
    doubt: float


class Leaning(NamedTuple):
    """Stances of a user, as far as they are known."""

    odds: Floats
    """Log-odds for the second side of each axis, (K)."""
    wish: Floats
    """The sum of the vectors of statements and of judged pairs, those of what is not wanted taken off, and the mean of
    those of posts, each with its weight; else zeros."""


class Contrast:
    """Learned weights, and the weighing of a pair by them.

    Args:
        weights: The arrays of `weights.safetensors`.
        axes: The poles of each axis, the first side first.
        encoder: Gives the vectors of statements.
        stances: Gives P(first side) and P(second side) of each axis for a post or a statement.
    """

    def __init__(
        self,
        weights: Mapping[str, Any],
        axes: Mapping[str, Sequence[str]],
        encoder: TextEncoder,
        stances: TextEncoder | None = None,
    ) -> None:
        self._encoder = encoder
        self._stances = stances
        self._post_gains = TextGains(*weights["post_gains"].astype(np.float64))
        self._plan_gains = TextGains(*weights["plan_gains"].astype(np.float64))
        others = [*map(float, weights["other_gains"]), 0.0, 0.0, 0.0]  # models of earlier versions lack the last ones
        self._near, self._alone, self._liked, self._heard, self._said = others[:5]
        self._soundness = FlawTrust(*weights["soundness"].astype(np.float64))
        self.axes = {axis: tuple(poles) for axis, poles in axes.items()}
        vocabulary = bytes(weights["vocabulary"]).decode().split(SEPARATOR)
        self.grams = NGrams.kept(vocabulary, weights["term_weights"].astype(np.float64))
        self._sides = whole(weights["sides"], weights["sides_scale"])
        """Weights of mₖ and gₖ on each trait, (terms + counts + vector, 2, K)."""
        self._dense_sides: Floats = self._sides[len(vocabulary) :].astype(np.float64)
        self._tuned_sides: Floats = weights["tuned_sides"].astype(np.float64)
        """Weights of mₖ and gₖ on the tuned vector, (its width, 2, K)."""
        self._bias: Floats = weights["bias"].astype(np.float64)
        self._texts = whole(weights["texts"], weights["texts_scale"])
        """Log-odds of either side against nothing that each term of a text adds, (terms + 1, K, 2)."""
        self._flaw: Floats = weights["flaw"].astype(np.float64)
        """Weights of f on the vector and on the tuned one."""
        self.fluency = Fluency(weights) if KEPT[0] in weights else None  # models of earlier versions have none
        self._spoilt: Floats = weights["spoilt" if self.fluency is None else SPOILT].astype(np.float64)
        """Weights of u on what tells, and its start: of broken texts, of misplaced answers, (2, signs + 1)."""
        self._attitude = Attitude.of(weights, self.width)
        self._stated: Floats = weights.get("stated", np.zeros((self.width + 1, len(axes), 2))).astype(np.float64)
        """Log-odds of either side against nothing of what a statement names, by its vector, (its width + 1, K, 2)."""
        self._saying: Floats = weights.get("saying", np.zeros(0)).astype(np.float64)
        """Weights of the log-odds that a sentence says what is wanted or not on its terms, and their start."""
        self._typical: Floats = weights["typical"].astype(np.float64)
        """m and f of an answer like any other, (K + 1)."""

    @property
    def width(self) -> int:
        """Width of the encoder's vectors."""
        return int(len(self._sides) - len(self.grams.vocabulary) - COUNTS)

    @property
    def hears(self) -> bool:
        """Whether posts say something beyond the axes, by their vectors."""
        return self._near * self._heard != 0

    def shares(self, one: Traits, two: Traits) -> Floats:
        """P(k, ±) that two answers are told apart by an axis, (2, K)."""
        (found,) = next(self._shares([one, two]))
        return np.asarray(found)

    def _shares(self, answers: Sequence[Traits]) -> Iterator[Floats]:
        """P(k, ±) of each answer and those behind it, (N − 1, 2, K), then (N − 2, 2, K), and so on."""
        columns, terms = _together([one.terms for one in answers])
        weights = self._sides[columns].astype(np.float64)
        dense, tuned = (np.stack(rows) for rows in zip(*((one.dense, one.tuned) for one in answers), strict=True))
        parts = ((terms, weights), (dense, self._dense_sides), (tuned, self._tuned_sides))
        for first in range(len(answers) - 1):
            margin, apart = np.zeros(len(self.axes)), self._bias
            for values, sides in parts:
                change = values[first] - values[first + 1 :]
                margin = margin + change @ sides[:, 0]
                apart = apart + np.abs(change) @ sides[:, 1]
            logits = np.stack([apart + margin, apart - margin], axis=1)
            shares = np.exp(logits - logits.max((1, 2), keepdims=True))
            yield shares / shares.sum((1, 2), keepdims=True)

    def margins(self, answers: Sequence[Traits], person: Leaning) -> Floats:
        """Log-odds that the user prefers each answer, by row, to each other one, by column."""
        near = np.array([self._near * float(person.wish @ one.vector) for one in answers])
        flaws = np.array([self.flaw(one) for one in answers])
        spoilt = np.array([self.spoilt(one) for one in answers])
        found = np.zeros((len(answers), len(answers)))
        for first, shares in enumerate(self._shares(answers)):
            rest = slice(first + 1, None)
            preferred = taste(shares, person.odds) + near[first] - near[rest]
            preferred = weighed(preferred, flaws[first] - flaws[rest], self._soundness)
            found[first, rest] = margin(preferred, spoilt[first], spoilt[rest])
        return found - found.T

    def flaw(self, one: Traits) -> float:
        """f: how good the content is, as far as all users are concerned."""
        return float(np.concatenate([one.vector, one.tuned]) @ self._flaw)

    def spoilt(self, one: Traits) -> float:
        """u: log-odds that a text is no answer at all; far beyond all examples they grow slowly."""
        odds = float(np.logaddexp.reduce(self._spoilt[:, :-1] @ telling(one.dense, one.fluency) + self._spoilt[:, -1]))
        return odds if odds < _SURE else _SURE + math.log1p(odds - _SURE)

    def alone(self, one: Traits, person: Leaning) -> float:
        """The reward of one answer against the typical one."""
        own = one.terms.values @ self._sides[one.terms.columns, 0].astype(np.float64)
        own = own + one.dense @ self._dense_sides[:, 0]
        own = own + one.tuned @ self._tuned_sides[:, 0]
        preferred = self._alone * float(2 * np.tanh(person.odds / 2) @ (own - self._typical[:-1]))
        preferred += self._near * float(person.wish @ one.vector)
        flaw = self._soundness.trust * (self.flaw(one) - self._typical[-1])
        spoilt = self.spoilt(one) - _DOUBT
        sound = 0.5 * (1 - np.tanh(spoilt / 2))
        return float(sound * preferred + flaw - 2 * np.logaddexp(0, spoilt))

    def person(self, posts: Sequence[str], plan: Sequence[str]) -> Leaning:
        """Return what posts and plan say of a user; what is stated in a post as in a form is read as a plan is."""
        said = [line for text in plan for line in statements(text) or [text] if words(line)]
        said += [line for text in posts for line in statements(text) if words(line)]
        told = [text for text in posts if words(text) and not statements(text)]
        odds, wish = np.zeros(len(self.axes)), np.zeros(self.width)
        for texts, gains in ((told, self._post_gains), (said, self._plan_gains)):
            if texts:
                terms = np.stack([self._read_terms(text) for text in texts])
                tuned = None if self._stances is None else stance_logits(self._stances, texts, len(self.axes))
                odds = odds + text_odds(terms, tuned, gains).sum(0)
        if said:
            vectors, willing = self._read_statements(said)
            odds = odds + self._plan_gains.vectors * stated_odds(vectors, willing, self._stated).sum(0)
            wish = willing @ vectors
        if told and self.hears:
            wish = wish + self._heard * self._encoder.encode(told).astype(np.float64).mean(0)
        if sayings := self.sayings(told):
            vectors, willing = self._read_statements(sayings)
            wish = wish + self._said * (willing @ vectors)
        return Leaning(odds, wish)

    def sayings(self, posts: Iterable[str]) -> list[str]:
        """The sentences of posts that say outright what is wanted, or what is not."""
        if not len(self._saying) or not self._said:
            return []
        found = dict.fromkeys(sentence for text in posts for sentence in sentences(text) if words(sentence))
        return [sentence for sentence in found if self._read_saying(sentence) > 0]

    def _read_statements(self, texts: Sequence[str]) -> tuple[Floats, Floats]:
        """The vectors of statements, and how far they want what they name."""
        vectors = self._encoder.encode(list(texts)).astype(np.float64)
        return vectors, self._attitude.willing(vectors, self.grams.rows(texts))

    def _read_saying(self, sentence: str) -> float:
        row = self.grams.row(sentence)
        return float(row.values @ self._saying[row.columns] + self._saying[-1])

    def told_by(self, person: Leaning, pairs: Sequence[tuple[Traits, Traits]]) -> Leaning:
        """What is known of a user once they have judged pairs, the better answer first; all within limits."""
        odds = person.odds + sum((judged(self.shares(*pair)) for pair in pairs), np.zeros(len(self.axes)))
        liked = self._liked * sum((better.vector - worse.vector for better, worse in pairs), np.zeros(self.width))
        liked = liked * min(1.0, _MOST_LIKED / max(float(np.linalg.norm(liked)), 1e-12))
        return Leaning(np.clip(odds, -LIMIT, LIMIT), person.wish + liked)

    def _read_terms(self, text: str) -> Floats:
        row = self.grams.row(text)
        known = self._texts[row.columns].astype(np.float64)
        return np.asarray(np.einsum("t,tks->ks", row.values, known) + self._texts[-1])


def stated_odds(vectors: Floats, willing: Floats, stated: Floats) -> Floats:
    """Log-odds for the second side of each axis by the vectors of statements, (N, K): what is not wanted turns them."""
    logits = np.einsum("nd,dks->nks", vectors, stated[:-1]) + stated[-1]
    return np.asarray(willing[:, None] * text_odds(logits, None, TextGains(1.0, 0.0, 1.0)))


def in_bytes(weights: Floats) -> tuple[Any, Any]:
    """Keep weights as a byte each with a scale for each row.

    Example:
        >>> kept, scale = in_bytes(np.array([[1.0, -0.5], [0.0, 0.0]]))
        >>> kept.tolist(), whole(kept, scale).round(2).tolist()
        ([[127, -64], [0, 0]], [[1.0, -0.5], [0.0, 0.0]])
    """
    scale = np.abs(weights).reshape(len(weights), -1).max(1, initial=0) / _STEPS
    rows = (-1, *[1] * (weights.ndim - 1))
    kept = np.round(weights / np.maximum(scale, 1e-12).reshape(rows)).astype(np.int8)
    return kept, scale.astype(np.float32)


def whole(kept: Any, scale: Any) -> Any:
    """Return the weights of which bytes and scales were kept."""
    return kept * scale.reshape(-1, *[1] * (kept.ndim - 1)).astype(np.float32)


def stance_logits(stances: TextEncoder, texts: Sequence[str], axes: int) -> Floats:
    """Log-odds of the first and the second side against nothing by a tuned encoder, for each text, (N, K, 2)."""
    shares = stances.encode(list(texts)).astype(np.float64)
    sides = np.stack([shares[:, :axes], shares[:, axes : 2 * axes]], axis=2)
    nothing = np.clip(1 - sides.sum(2, keepdims=True), 1e-4, 1)
    return np.asarray(np.log(np.clip(sides, 1e-4, 1)) - np.log(nothing))


def text_odds(terms_NK2: Floats, tuned_NK2: Floats | None, gains: TextGains) -> Floats:
    """Log-odds for the second side of each axis that each text adds, (N, K).

    Example:
        >>> silent, telling = [-4.0, -4.0], [-4.0, 3.0]
        >>> text_odds(np.array([[silent, telling]]), None, TextGains(1.0, 0.0, 1.0)).round(1).tolist()
        [[0.0, 3.8]]
    """
    logits = gains.terms * terms_NK2 + (0.0 if tuned_NK2 is None else gains.tuned * tuned_NK2)
    total = np.logaddexp(0.0, np.logaddexp(logits[..., 0], logits[..., 1]))[..., None]
    shares = np.exp(logits - total)
    return np.asarray(gains.whole * np.log((shares[..., 1] + DOUBT) / (shares[..., 0] + DOUBT)))


def taste(shares_2K: Floats, odds_K: Floats) -> Any:
    """Log-odds that the user prefers the first of two sound answers, for one pair or many, (…, 2, K).

    Example:
        >>> round(float(taste(np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([2.0, 0.0]))), 6)
        2.0
    """
    wanted = 0.5 * (1 + np.tanh(np.stack([odds_K, -odds_K]) / 2))
    first, second = ((shares * wanted).sum((-2, -1)) for shares in (shares_2K, shares_2K[..., ::-1, :]))
    return np.log(np.maximum(first, 1e-12)) - np.log(np.maximum(second, 1e-12))


def weighed(taste: Any, flaw: Any, soundness: FlawTrust) -> Any:
    """Log-odds of the mixture of flaws and taste: where one answer seems flawed, taste counts for less.

    Example:
        >>> strict = FlawTrust(trust=1.0, slope=2.0, doubt=4.0)
        >>> round(float(weighed(-2.0, 0.0, strict)), 1), round(float(weighed(-2.0, 5.0, strict)), 1)
        (-1.9, 4.7)
    """
    by_flaw = soundness.slope * np.abs(flaw) - soundness.doubt
    decided, free = -np.logaddexp(0, -by_flaw), -np.logaddexp(0, by_flaw)
    trusted = soundness.trust * flaw
    first = np.logaddexp(decided - np.logaddexp(0, -trusted), free - np.logaddexp(0, -taste))
    second = np.logaddexp(decided - np.logaddexp(0, trusted), free - np.logaddexp(0, taste))
    return first - second


def margin(preferred: Any, spoilt_one: Any, spoilt_two: Any) -> Any:
    """Log-odds that the first of two texts is preferred, where one of them may be no answer at all.

    Example:
        >>> round(float(margin(2.0, -9.0, -9.0)), 3), round(float(margin(-2.0, -9.0, 9.0)))
        (2.0, 9)
    """
    sounder = np.logaddexp(0, spoilt_two) - np.logaddexp(0, spoilt_one)
    return (1 - np.tanh(sounder / 2) ** 2) * preferred + sounder


def judged(shares_2K: Floats) -> Floats:
    """Return what it adds to a user's log-odds that the first answer was preferred, (K)."""
    plus, minus = shares_2K
    other = (1 - plus - minus) / 2
    agree, oppose = (plus * _TRUST + minus * (1 - _TRUST), plus * (1 - _TRUST) + minus * _TRUST)
    return np.asarray(np.log((other + agree) / (other + oppose)))


def _together(rows: Sequence[SparseRow]) -> tuple[Any, Floats]:
    """The columns that rows have, and the rows over these alone."""
    columns, places = np.unique(np.concatenate([row.columns for row in rows]), return_inverse=True)
    found = np.zeros((len(rows), len(columns)))
    found[np.repeat(np.arange(len(rows)), [len(row.columns) for row in rows]), places] = np.concatenate(
        [row.values for row in rows]
    )
    return columns, found
