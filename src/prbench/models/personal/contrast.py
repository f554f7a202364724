"""`contrast`: a reward model that sees answers together: what do they differ in, and where does the user stand on it?

Of two answers a and b it says how probable it is that they are told apart by axis k with a on its second side,
P(k, +), or on its first, P(k, −): a softmax over 2 K classes of z(k, ±) = gₖ(|a − b|) ± mₖ(a − b), linear in the
answers' traits. Of the user it says how far the odds are for the second side, Lₖ, the sum over posts, plan and judged
pairs. A post shows the first side of an axis, nothing, or the second: a softmax over the sum of what its terms say and,
where there is one, what an encoder that was tuned to tell stances says of the whole post. It adds
log((P(second) + ε) / (P(first) + ε)): a post that says nothing adds nothing. What the user prefers is then the mixture

    P(a ≻ b | user) = Σₖ P(k, +) σ(Lₖ) + P(k, −) σ(−Lₖ).

To its log-odds are added what everybody prefers: f(a) − f(b) for flaws in the content, linear in the vectors, and
s = h(b) − h(a), where h = log(1 + eᵘ) and u are the log-odds, linear in the counts, that a text is no answer at all
(empty, repeated, garbled, on another subject, pasted). Of two answers s is nearly 0; where it is not, taste does not
count any more: it is weighed by 1 − tanh²(s / 2). Swapping the answers changes the sign of the margin and nothing else.
An answer in a list has the mean of its margins. Alone, it has r(a) = c (1 − σ(u′)) Σₖ 2 tanh(Lₖ / 2) mₖ(a − t) +
f(a − t) − 2 log(1 + eᵘ′) against the typical answer t, with u′ a little below u.
"""

import itertools
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from prbench.config import ModelOptions
from prbench.errors import ModelError
from prbench.files import checked, load_tensors
from prbench.models.lists import compare_by_rank
from prbench.models.ngrams import NGrams, SparseRow, words
from prbench.models.personal import artifact
from prbench.models.personal.features import FeatureStore
from prbench.models.personal.person import keep_judgments
from prbench.models.personal.pieces import pieces
from prbench.models.personal.traits import COUNTS, Floats, TraitReader, Traits
from prbench.models.protocols import ModelCard
from prbench.rank import TextEncoder
from prbench.types import AnswerView, Channel, Judgment, ListView, Message, Outcome, PairView, Prompt

NAME = "contrast"
SEPARATOR = "\0"
"""Between terms; a line break is a term."""
LIMIT = 6.0
"""Log-odds of a side beyond which no reading goes."""
DOUBT = 0.02
"""ε: how probable either side is at least, so that no post settles an axis by itself."""
_ALONE, _DOUBT = 0.15, 1.0
"""Of an answer alone: what of mₖ is kept, since nothing tells which axis decides, and what u must exceed."""
_KEPT = 1024
"""Users, and lists of answers, that are kept at a time."""
_TRUST = 0.9
"""How probable it is that a judged pair was decided by the side the user stands on."""


class Contrast:
    """What was learned, and how a pair is weighed by it.

    Args:
        weights: The arrays of `weights.safetensors`.
        axes: The poles of each axis, the first side first.
        stances: Gives P(first side) and P(second side) of each axis for a post.
    """

    def __init__(
        self, weights: Mapping[str, Any], axes: Mapping[str, Sequence[str]], stances: TextEncoder | None = None
    ) -> None:
        self._stances = stances
        self._gains = PostGains(*weights["post_gains"].astype(np.float64))
        self.axes = {axis: tuple(poles) for axis, poles in axes.items()}
        vocabulary = bytes(weights["vocabulary"]).decode().split(SEPARATOR)
        self.grams = NGrams.kept(vocabulary, weights["term_weights"].astype(np.float64))
        self._sides = weights["sides"]
        """How mₖ and gₖ grow with each trait, (terms + counts + vector, 2, K)."""
        self._bias: Floats = weights["bias"].astype(np.float64)
        self._posts = weights["posts"]
        """Log-odds of either side against nothing that each term of a post adds, (terms + 1, K, 2)."""
        self._plan = weights["plan"]
        """Log-odds for the second side that each term of a line of a plan adds, (terms + 1, K)."""
        self._flaw: Floats = weights["flaw"].astype(np.float64)
        """How f grows with the vector."""
        self._spoilt: Floats = weights["spoilt"].astype(np.float64)
        """How u grows with the counts, and where it starts."""
        self._typical: Floats = weights["typical"].astype(np.float64)
        """m and f of an answer like any other, (K + 1)."""

    @property
    def width(self) -> int:
        """How wide the encoder's vectors are."""
        return int(len(self._sides) - len(self.grams.vocabulary) - COUNTS)

    def shares(self, one: Traits, two: Traits) -> Floats:
        """P(k, ±) that two answers are told apart by an axis, (2, K)."""
        columns, values = _difference(one.terms, two.terms)
        dense = one.dense - two.dense
        weights = self._sides[columns].astype(np.float64)
        below = self._sides[len(self.grams.vocabulary) :].astype(np.float64)
        margin = values @ weights[:, 0] + dense @ below[:, 0]
        apart = np.abs(values) @ weights[:, 1] + np.abs(dense) @ below[:, 1] + self._bias
        logits = np.stack([apart + margin, apart - margin])
        shares = np.exp(logits - logits.max())
        return np.asarray(shares / shares.sum())

    def flaw(self, one: Traits) -> float:
        """f: how good the content is, as far as all users are concerned."""
        return float(one.dense[COUNTS:] @ self._flaw)

    def spoilt(self, one: Traits) -> float:
        """u: log-odds that a text is no answer at all."""
        return float(one.dense[:COUNTS] @ self._spoilt[:-1] + self._spoilt[-1])

    def alone(self, one: Traits, odds_K: Floats) -> float:
        """The reward of one answer against the typical one."""
        below = self._sides[len(self.grams.vocabulary) :, 0].astype(np.float64)
        own = one.terms.values @ self._sides[one.terms.columns, 0].astype(np.float64) + one.dense @ below
        preferred = _ALONE * float(2 * np.tanh(odds_K / 2) @ (own - self._typical[:-1]))
        spoilt = self.spoilt(one) - _DOUBT
        sound = 0.5 * (1 - np.tanh(spoilt / 2))
        return float(sound * preferred + self.flaw(one) - self._typical[-1] - 2 * np.logaddexp(0, spoilt))

    def person(self, posts: Sequence[str], plan: Sequence[str]) -> Floats:
        """Log-odds that the user stands on the second side of each axis, (K)."""
        odds = np.zeros(len(self.axes))
        for line in plan:
            row = self.grams.row(line)
            if len(row.columns):
                odds = odds + row.values @ self._plan[row.columns].astype(np.float64) + self._plan[-1]
        told = [post for post in posts if words(post)]
        if told:
            terms = np.stack([self._post_terms(post) for post in told])
            tuned = stance_logits(self._stances, told, len(self.axes)) if self._stances is not None else None
            odds = odds + post_odds(terms, tuned, self._gains).sum(0)
        return odds

    def _post_terms(self, post: str) -> Floats:
        row = self.grams.row(post)
        known = self._posts[row.columns].astype(np.float64)
        return np.asarray(np.einsum("t,tks->ks", row.values, known) + self._posts[-1])


class PostGains(NamedTuple):
    """How far the readings of a post are trusted: its terms, the tuned encoder, and what both say together."""

    terms: float
    tuned: float
    whole: float


def post_odds(terms_NK2: Floats, tuned_NK2: Floats | None, gains: PostGains) -> Floats:
    """Log-odds for the second side of each axis that each post adds, (N, K).

    Example:
        >>> silent, telling = [-4.0, -4.0], [-4.0, 3.0]
        >>> post_odds(np.array([[silent, telling]]), None, PostGains(1.0, 0.0, 1.0)).round(1).tolist()
        [[0.0, 3.8]]
    """
    logits = gains.terms * terms_NK2 + (0.0 if tuned_NK2 is None else gains.tuned * tuned_NK2)
    total = np.logaddexp(0.0, np.logaddexp(logits[..., 0], logits[..., 1]))[..., None]
    shares = np.exp(logits - total)
    return np.asarray(gains.whole * np.log((shares[..., 1] + DOUBT) / (shares[..., 0] + DOUBT)))


def stance_logits(stances: TextEncoder, posts: Sequence[str], axes: int) -> Floats:
    """Log-odds of the first and the second side against nothing by a tuned encoder, for each post, (N, K, 2)."""
    shares = stances.encode(list(posts)).astype(np.float64)
    sides = np.stack([shares[:, :axes], shares[:, axes : 2 * axes]], axis=2)
    nothing = np.clip(1 - sides.sum(2, keepdims=True), 1e-4, 1)
    return np.asarray(np.log(np.clip(sides, 1e-4, 1)) - np.log(nothing))


def taste(shares_2K: Floats, odds_K: Floats) -> float:
    """Log-odds that the user prefers the first of two sound answers.

    Example:
        >>> round(taste(np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([2.0, 0.0])), 6)
        2.0
    """
    wanted = 0.5 * (1 + np.tanh(np.stack([odds_K, -odds_K]) / 2))
    first, second = float((shares_2K * wanted).sum()), float((shares_2K[::-1] * wanted).sum())
    return float(np.log(max(first, 1e-12)) - np.log(max(second, 1e-12)))


def margin(taste: float, flaw: float, spoilt_one: float, spoilt_two: float) -> float:
    """Log-odds that the user prefers the first of two answers.

    Example:
        >>> round(margin(2.0, 0.0, -9.0, -9.0), 3), round(margin(-2.0, 0.0, -9.0, 9.0))
        (2.0, 9)
    """
    sounder = float(np.logaddexp(0, spoilt_two) - np.logaddexp(0, spoilt_one))
    return float((1 - np.tanh(sounder / 2) ** 2) * taste + flaw + sounder)


def judged(shares_2K: Floats) -> Floats:
    """What it adds to a user's log-odds that the first answer was preferred, (K)."""
    plus, minus = shares_2K
    other = (1 - plus - minus) / 2
    agree, oppose = (plus * _TRUST + minus * (1 - _TRUST), plus * (1 - _TRUST) + minus * _TRUST)
    return np.asarray(np.log((other + agree) / (other + oppose)))


def _difference(one: SparseRow, two: SparseRow) -> tuple[Any, Floats]:
    columns, places = np.unique(np.concatenate([one.columns, two.columns]), return_inverse=True)
    values = np.zeros(len(columns))
    np.add.at(values, places, np.concatenate([one.values, -two.values]))
    return columns, values


class ContrastRanker:
    """Scores answers that it sees together, or one by one, for the user whose posts, plan or judgments it is given.

    Args:
        folder: Where the trained model lies.
        record: What it is.
        options: Device and batches of the encoder.
        address: What it is called; default: by its folder.
    """

    adapts = True

    def __init__(self, folder: Path, record: artifact.PersonalRecord, options: ModelOptions, address: str = "") -> None:
        from prbench.models.personal.rater import open_encoder

        self.record = record
        self._folder = folder
        self._address = address or f"personal:{folder}"
        self._encoder = open_encoder(record, folder, options)
        self._stances = open_stances(folder, record, options)
        self.contrast = open_contrast(folder, record, self._address, self._stances)
        self._reader = TraitReader(self.contrast.grams, self._encoder)
        self._judged: dict[str, tuple[Judgment, ...]] = {}
        self._persons: dict[tuple[object, ...], Floats] = {}
        self._lists: dict[tuple[object, ...], list[Traits]] = {}

    @cached_property
    def card(self) -> ModelCard:
        """Who answers."""
        return ModelCard(
            address=self._address,
            revision=artifact.revision(self._folder),
            reads=frozenset({Channel.POSTS, Channel.PLAN}),
            parameters={
                "method": self.record.method,
                "encoder": self.record.encoder,
                "training": self.record.training.told,
            },
            units="log-odds",
        )

    def prepare(self) -> None:
        """Load the encoder, so that what the first answer takes is not what loading takes."""
        for encoder in (self._encoder, self._stances):
            if encoder is not None:
                getattr(encoder, "encoder", encoder).encode(["width"])

    def fit_user(self, user: str, judgments: Sequence[Judgment]) -> None:
        """Adapt to all that this user has judged; no judgments forget the user."""
        keep_judgments(self._judged, user, judgments)

    def hold_back(self) -> None:
        """Write no vectors from now on: texts that a server meets are not this machine's to keep."""
        for encoder in (self._encoder, self._stances):
            if isinstance(encoder, FeatureStore):
                encoder.hold_back()

    def forget(self) -> None:
        """Drop what was made of users' texts; it is computed again where it is needed."""
        self._persons.clear()
        self._lists.clear()
        for encoder in (self._encoder, self._stances):
            if isinstance(encoder, FeatureStore):
                encoder.forget()

    def render(self, view: AnswerView | PairView | ListView) -> Prompt:
        """Each text as a turn of its own."""
        messages = [Message("post", post.text) for post in view.posts]
        messages += [Message("expectation", line) for line in view.plan]
        for judgment in self._shots(view.user):
            messages += [
                Message("judged question", judgment.question),
                Message("judged better", judgment.chosen),
                Message("judged worse", judgment.rejected),
            ]
        answers = (view.answer,) if isinstance(view, AnswerView) else _listed(view).answers
        return Prompt((*messages, Message("question", view.question), *(Message("answer", text) for text in answers)))

    def fresh_texts(self, prompts: Iterable[Prompt]) -> set[str]:
        """The sentences of questions and answers, and the posts, whose vectors are still to be computed."""
        said = {(message.role == "post", message.content) for prompt in prompts for message in prompt.messages}
        posts = {text for is_post, text in said if is_post}
        parts = {piece for is_post, text in said if not is_post for piece in pieces(text, 1)}
        found: set[str] = set()
        for encoder, texts in ((self._encoder, parts), (self._stances, posts)):
            if isinstance(encoder, FeatureStore):
                found |= encoder.missing(texts)
        return found

    def foreseen_seconds(self, tokens: int, length: int) -> float:
        """What embedding texts of so many tokens would take here."""
        return self._encoder.foreseen_seconds(tokens, length) if isinstance(self._encoder, FeatureStore) else 0.0

    def rank(self, views: Sequence[ListView]) -> Iterator[tuple[int, Outcome]]:
        """Score the answers of each list against each other: the mean of an answer's margins; two have half each."""
        for place, view in enumerate(views):
            began = time.perf_counter()
            scores = self._rank(view)
            yield place, Outcome.ranked(scores, latency_ms=(time.perf_counter() - began) * 1000)

    def compare(self, views: Sequence[PairView]) -> Iterator[tuple[int, Outcome]]:
        """Judge each pair by the list of its two answers."""
        return compare_by_rank(self, views)

    def rate(self, views: Sequence[AnswerView]) -> Iterator[tuple[int, Outcome]]:
        """Score each answer alone, against the typical one."""
        for place, view in enumerate(views):
            began = time.perf_counter()
            texts = tuple(post.text for post in view.posts)
            (traits,) = self._traits(view.question, (view.answer,), texts)
            score = self.contrast.alone(traits, self._odds(view))
            yield place, Outcome.scored(score, latency_ms=(time.perf_counter() - began) * 1000)

    def _rank(self, view: ListView) -> list[float]:
        answers = sorted(set(view.answers))  # read and weighed in one order, however they stand in the list
        traits = self._traits(view.question, tuple(answers), tuple(post.text for post in view.posts))
        odds = self._odds(view)
        against = np.zeros((len(answers), len(answers)))
        for one, two in itertools.combinations(range(len(answers)), 2):
            preferred = taste(self.contrast.shares(traits[one], traits[two]), odds)
            flaw = self.contrast.flaw(traits[one]) - self.contrast.flaw(traits[two])
            found = margin(preferred, flaw, self.contrast.spoilt(traits[one]), self.contrast.spoilt(traits[two]))
            against[one, two], against[two, one] = found, -found
        places = [answers.index(answer) for answer in view.answers]
        return [float(against[place, places].sum() / len(places)) for place in places]

    def _odds(self, view: AnswerView | ListView) -> Floats:
        shots = self._shots(view.user)
        key = (tuple(post.text for post in view.posts), view.plan, shots)
        if key not in self._persons:
            _make_room(self._persons)
            odds = self.contrast.person(key[0], key[1])
            for shot in shots:
                better, worse = self._traits(shot.question, (shot.chosen, shot.rejected), ())
                odds = odds + judged(self.contrast.shares(better, worse))
            self._persons[key] = np.clip(odds, -LIMIT, LIMIT)
        return self._persons[key]

    def _traits(self, question: str, answers: tuple[str, ...], posts: tuple[str, ...]) -> list[Traits]:
        key = (question, answers, posts)
        if key not in self._lists:
            _make_room(self._lists)
            self._lists[key] = self._reader.read(question, answers, posts)
        return self._lists[key]

    def _shots(self, user: str | None) -> tuple[Judgment, ...]:
        return self._judged.get(user, ()) if user is not None else ()


def _listed(view: PairView | ListView) -> ListView:
    return ListView.of(view) if isinstance(view, PairView) else view


def _make_room(kept: dict[Any, Any]) -> None:
    while len(kept) >= _KEPT:
        del kept[next(iter(kept))]


def open_stances(folder: Path, record: artifact.PersonalRecord, options: ModelOptions) -> TextEncoder | None:
    """The tuned encoder that posts are read by, where the model has one."""
    from prbench.models.registry import load_encoder

    if not record.settings.get("stances"):
        return None
    kept = ModelOptions(device=options.device, batch_tokens=options.batch_tokens)
    return FeatureStore(load_encoder(f"embed:{folder}/{record.settings['stances']}", kept))


def open_contrast(
    folder: Path, record: artifact.PersonalRecord, address: str, stances: TextEncoder | None = None
) -> Contrast:
    """What the model in a folder has learned."""
    hint = "train the model again"
    weights = load_tensors(folder / artifact.WEIGHTS, kind="numpy", raises=ModelError, hint=hint)
    with checked(f"{address}: {str(folder / artifact.WEIGHTS)!r}", raises=ModelError, hint=hint):
        return Contrast(weights, record.settings["axes"], stances)
