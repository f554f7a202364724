"""The fits of `contrast`: where a text stands, what answers differ in, and what the validation split says of both."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from pydantic import Field

from prbench.config import Config
from prbench.contexts.builder import aspect_line
from prbench.data.passages import Passage, Saying
from prbench.models.ngrams import NGrams
from prbench.models.personal.contrast import (
    SEPARATOR,
    SPOILT,
    in_bytes,
    stance_logits,
    stated_odds,
)
from prbench.models.personal.fluency import Fluency, counted
from prbench.models.personal.statements import Attitude
from prbench.models.personal.traits import Floats, TraitReader, Traits
from prbench.train import gains
from prbench.train.regression import three_way, two_sided
from prbench.train.soundness import Sound, fit_flaw, fit_spoilt
from prbench.train.stance_labels import (
    Axes,
    Difference,
    Stance,
    answer_stances,
    differences,
    passage_stances,
    people_stances,
    stated,
)
from prbench.train.statement_fit import StatementFit
from prbench.train.unsound import unsound
from prbench.types import Pair

Tell = Callable[[str], None]
_RARE = 3
"""A term that fewer texts have is not read: half as many terms, so that the model stays small."""
_LIKED = 0.25
"""Weight of what a judged pair says by itself against a statement: the better answer is wanted, the worse one is not.
Chosen among 0, 0.25, 0.5 and 1 on validation, with pairs from elsewhere in view; more takes from what axes say."""
_HEARD = 1.0
"""Weight of the mean vector of posts against a statement's. Chosen among 0, 1, 2, 4 and 8 as the one above was: on
validation it costs 0.2 points, under posts from elsewhere it gains 3."""
_SAID = 1.0
"""Weight of a sentence of a post that says what is wanted against a statement's."""
_ALONE = 0.15
"""Share of mₖ that is kept for an answer alone, since nothing tells which axis decides."""


class ContrastConfig(Config):
    """Settings for fitting `contrast`."""

    encoder: str = "embed:minilm"
    """Encoder whose vectors of answers are compared, frozen."""
    stances: str = ""
    """A tuned encoder, `embed:DIR#stances`, by which posts and statements are read beside their terms."""
    answers: str = ""
    """A tuned encoder, `embed:DIR`, that tells what answers differ in, beside their terms, and how sound they are."""
    also: str = "generic"
    """A suite of sound and flawed answers; its pairs of the same split teach what all users want."""
    penalty: float = Field(default=0.03, gt=0)
    """Penalty of the weights that tell what answers differ in."""
    reader_penalty: float = Field(default=0.25, gt=0)
    """Penalty of the weights that tell where a text stands."""
    flaw_penalty: float = Field(default=0.1, gt=0)
    """Penalty of the weights that tell a flawed answer from a sound one."""
    folds: int = Field(default=4, ge=2)
    """Parts of the training questions; what is no answer is told by the fluency of the other parts."""
    seed: int = 0


class Material(NamedTuple):
    """Material to learn from, and to fit the gains on."""

    axes: Axes
    pairs: Sequence[Pair]
    """Pairs of the training split, with tags that say what decides them."""
    flawed: Sequence[Pair]
    """Sound and flawed answers of the same split."""
    passages: Sequence[Passage]
    """Texts whose stance is known."""
    held: Sequence[Pair]
    """Pairs of the validation split."""
    held_flawed: Sequence[Pair]
    forms: Sequence[tuple[str, str]] = ()
    """Questions and sound answers of other kinds than those of the suite."""
    sayings: Sequence[Saying] = ()
    """Sentences in which somebody says what is wanted, or nothing of the kind."""


class TraitWeights(NamedTuple):
    """Weights of the traits, (width, 2, K), and the bias, (K)."""

    sides: Floats
    bias: Floats


class AnswerHeads(NamedTuple):
    """Heads of an encoder that was tuned to read answers: of differences, and of flaws."""

    sides: TraitWeights
    flaw: Floats


class TunedReaders(NamedTuple):
    """Tuned encoders, where there are any."""

    stances: Any = None
    """Reads posts and statements."""
    answers: Any = None
    """Gives the vectors of answers."""
    heads: AnswerHeads | None = None
    """Its heads."""


class Fitting:
    """Fit of one model.

    Args:
        options: Settings of the fit.
        material: Pairs and passages to learn from.
        encoder: Maps texts to vectors.
        tuned: Tuned encoders that read as well.
        tell: Hears how far it is.
    """

    def __init__(
        self, options: ContrastConfig, material: Material, encoder: Any, tuned: TunedReaders, tell: Tell
    ) -> None:
        self._options, self._encoder, self._tuned, self._tell = options, encoder, tuned, tell
        self._index = {axis: place for place, axis in enumerate(material.axes.poles)}
        self._wishes = [passage for passage in material.passages if passage.kind == "wish"]  # of whatever axis
        passages = [passage for passage in material.passages if passage.axis in self._index]
        self._material = material._replace(passages=passages)
        self._answers = answer_stances(material.pairs, material.axes)
        self._lines = aspect_lines(material.pairs, material.axes)
        self._posts = people_stances(material.pairs, material.axes)
        self.grams = self._grams(self._answers)
        self._reader = TraitReader(self.grams, encoder)
        self._held_reader = TraitReader(self.grams, encoder, tuned.answers)

    def _grams(self, answers: Iterable[str]) -> NGrams:
        return NGrams(
            [*self._written, *answers, *self._lines, *(saying.text for saying in self._material.sayings)], _RARE
        )

    @cached_property
    def _written(self) -> list[str]:
        return [*(passage.text for passage in self._material.passages), *self._posts]

    def run(self) -> dict[str, Any]:
        """Fit everything; the arrays of `weights.safetensors`."""
        texts = self._fit_reader()
        self._tell("where a text stands: fitted")
        said = StatementFit(self._wishes, self._material.sayings, self._lines, self._posts, self.grams, self._encoder)
        apart = differences(self._material.pairs, self._material.passages, self._material.axes)
        self._tell(f"what answers differ in: {len(apart):,} pairs of answers")
        read = self._read_differences(apart)
        whole = self._fit_differences(apart, read)
        forms = self._material.forms
        spoilt = list(unsound(self._material.pairs, self._options.seed, forms))
        sound = Sound(self._options.flaw_penalty, self._material.flawed, self._asked, forms, self._reader)
        asked = {question for question, _ in self._asked}
        flaw = fit_flaw(sound, [two for two, pair in zip(read, apart, strict=True) if pair.question in asked])
        if self._tuned.heads is not None:
            flaw = np.concatenate([np.zeros(len(flaw)), self._tuned.heads.flaw])
        spoils = fit_spoilt(sound, spoilt, self._strangers())
        self._tell(f"soundness: {len(self._material.flawed):,} flawed and {len(spoilt):,} spoilt answers")
        attitude = said.attitude()
        self._tell(f"wanted or not: {sum(wish.framed for wish in self._wishes):,} wishes and their denials")
        named = said.named(self._material.axes, attitude)
        found = gains.fit(self._held(texts, whole, flaw, attitude, named), self._options.seed)
        self._tell(found.told)
        others = {SPOILT: spoils.astype(np.float32), **attitude.arrays}
        others |= {"stated": named.astype(np.float16), "saying": said.saying().astype(np.float16)}
        fluency = counted([*self._written, *(answer for _, answer in self._sound)])
        return self._arrays(texts, whole, flaw, found) | others | fluency

    def _arrays(self, texts: Floats, whole: TraitWeights, flaw: Floats, found: gains.ReadingGains) -> dict[str, Any]:
        sides, bias = found.answers * whole.sides, found.answers * whole.bias
        tuned = np.zeros((0, *sides.shape[1:]))
        if self._tuned.heads is not None:
            tuned = found.tuned * self._tuned.heads.sides.sides
            bias = bias + found.tuned * self._tuned.heads.sides.bias
        kept = {"sides": in_bytes(sides), "texts": in_bytes(texts)}
        usual = [self._reader.read(question, (answer,))[0] for question, answer in self._asked]
        terms = np.asarray(self.grams.rows([answer for _, answer in self._asked]).mean(0)).ravel()
        dense = np.mean([traits.dense for traits in usual], axis=0)
        unseen = self._unseen()
        own = np.mean([one.tuned for one in unseen], axis=0) @ tuned[:, 0]
        good = float(np.mean([np.concatenate([one.vector, one.tuned]) @ flaw for one in unseen]))
        return {
            "vocabulary": np.frombuffer(SEPARATOR.join(self.grams.vocabulary).encode(), dtype=np.uint8),
            "term_weights": self.grams.weights.astype(np.float32),
            **{name: values for name, (values, _) in kept.items()},
            **{f"{name}_scale": scale for name, (_, scale) in kept.items()},
            "tuned_sides": tuned.astype(np.float16),
            "bias": bias.astype(np.float32),
            "flaw": flaw.astype(np.float32),
            "typical": np.append(np.concatenate([terms, dense]) @ sides[:, 0] + own, good).astype(np.float32),
            "post_gains": np.array(found.posts[:3], dtype=np.float32),  # vectors are read of statements
            "plan_gains": np.array(found.plan, dtype=np.float32),
            "other_gains": np.array([found.near, _ALONE, _LIKED, _HEARD, _SAID], dtype=np.float32),
            "soundness": np.array(found.soundness, dtype=np.float32),
        }

    def _unseen(self) -> list[Traits]:
        """The traits of sound answers that nothing was fitted on: those of the validation split."""
        asked = sorted({(pair.question, pair.chosen) for pair in self._material.held})
        return [self._held_reader.read(question, (answer,))[0] for question, answer in asked]

    @cached_property
    def _asked(self) -> list[tuple[str, str]]:
        pairs = self._material.pairs
        return sorted({(pair.question, answer) for pair in pairs for answer in (pair.chosen, pair.rejected)})

    def _read_differences(self, apart: Sequence[Difference]) -> list[tuple[Traits, Traits]]:
        """The traits of pairs of answers; a situation is no question."""
        asked = {pair.question for pair in self._material.pairs}
        self._reader.prepare([*asked, *(text for pair in apart for text in (pair.one, pair.two))])
        found = []
        for pair in apart:
            one, two = self._reader.read(pair.question if pair.question in asked else "", (pair.one, pair.two))
            found.append((one, two))
        return found

    @cached_property
    def _sound(self) -> list[tuple[str, str]]:
        """Questions and sound answers, of the suite and of other forms."""
        return [*self._asked, *self._material.forms]

    def _strangers(self) -> dict[str, TraitReader]:
        """Return for each question a reader whose fluency was not counted on its answers, as with unseen answers."""
        questions, found = sorted({question for question, _ in self._sound}), dict[str, TraitReader]()
        for fold in range(self._options.folds):
            out = set(questions[fold :: self._options.folds])
            others = (answer for question, answer in self._sound if question not in out)
            fluency = Fluency(counted([*self._written, *others]))
            found.update(dict.fromkeys(out, TraitReader(self.grams, self._encoder, None, fluency)))
        return found

    def _fit_differences(self, apart: Sequence[Difference], read: Sequence[tuple[Traits, Traits]]) -> TraitWeights:
        """Softmax over axis and side."""
        axes = len(self._index)
        labels = np.zeros((len(apart), 2 * axes))
        for row, pair in enumerate(apart):
            for axis, side in pair.stances:
                labels[row, self._index[axis] + (0 if side > 0 else axes)] = 1 / len(pair.stances)
        return TraitWeights(*two_sided(self._apart(read), labels, self._options.penalty))

    def _apart(self, pairs: Sequence[tuple[Traits, Traits]]) -> Any:
        """The traits of the first answers less those of the second, a row each."""
        from scipy.sparse import csr_array, hstack

        first, second = (_sparse([pair[place].terms for pair in pairs], len(self.grams.vocabulary)) for place in (0, 1))
        dense = np.array([one.dense - two.dense for one, two in pairs])
        return csr_array(hstack([first - second, csr_array(dense)]))

    def _fit_reader(self) -> Floats:
        """Weights of terms for the first and the second side against nothing, (terms + 1, K, 2)."""
        axes = self._material.axes
        texts: list[tuple[str, tuple[Stance, ...]]]
        texts = [*passage_stances(self._material.passages, axes).items(), *self._posts.items()]
        texts += [(line, (stance,)) for line, stance in self._lines.items()]
        texts += self._answers.items()
        labels = np.zeros((len(texts), len(self._index), 3))
        labels[:, :, 1] = 1.0
        for place, (_, stances) in enumerate(texts):
            for axis, side in stances:
                labels[place, self._index[axis]] = np.eye(3)[1 + side]
        return three_way(self.grams.rows([text for text, _ in texts]), labels, self._options.reader_penalty)

    def _held(
        self, texts: Floats, whole: TraitWeights, flaw: Floats, attitude: Attitude, named: Floats
    ) -> gains.HeldReadings:
        """Return the readings of the validation split by all that was fitted."""
        held = self._material.held
        rubrics = [tuple(aspect_line(aspect) for aspect in pair.rubric_aspects) for pair in held]
        profiles = {pair.user: tuple(post.text for post in pair.profile) for pair in held}
        users, distinct = list(profiles), list(dict.fromkeys(rubrics))
        stated = [distinct.index(lines) for lines in rubrics]
        pairs = [self._held_reader.read(pair.question, (pair.chosen, pair.rejected)) for pair in held]
        vectors = [
            self._encoder.encode(list(lines) or ["width"])[: len(lines)].astype(np.float64) for lines in distinct
        ]
        wills = [attitude.willing(said, self.grams.rows(lines)) for said, lines in zip(vectors, distinct, strict=True)]
        wishes = [willing @ said for willing, said in zip(wills, vectors, strict=True)]
        near = [
            float(wishes[place] @ (one.vector - two.vector)) for place, (one, two) in zip(stated, pairs, strict=True)
        ]
        flawed = [
            self._held_reader.read(pair.question, (pair.chosen, pair.rejected)) for pair in self._material.held_flawed
        ]
        return gains.HeldReadings(
            self._read_pairs(pairs, whole, flaw),
            [self._read(profiles[user], texts) for user in users],
            [users.index(pair.user) for pair in held],
            [
                self._read(lines, texts)._replace(vectors=stated_odds(said, willing, named))
                for lines, said, willing in zip(distinct, vectors, wills, strict=True)
            ],
            stated,
            np.array(near),
            self._read_pairs(flawed, whole, flaw),
        )

    def _read_pairs(self, pairs: Sequence[Sequence[Traits]], whole: TraitWeights, flaw: Floats) -> gains.ReadPairs:
        axes = len(self._index)
        if not pairs:
            return gains.ReadPairs(np.zeros((0, 2, axes)), None, np.zeros(0))
        vectors, tuned = (
            np.array([getattr(one, name) - getattr(two, name) for one, two in pairs]) for name in ("vector", "tuned")
        )
        heads = self._tuned.heads
        return gains.ReadPairs(
            _logits(self._apart([(one, two) for one, two in pairs]), whole),
            None if heads is None else _logits(tuned, heads.sides),
            np.hstack([vectors, tuned]) @ flaw,
        )

    def _read(self, texts: Sequence[str], weights: Floats) -> gains.TextReading:
        """Return what terms and the tuned encoder say of texts."""
        terms = np.asarray(self.grams.rows(texts) @ weights[:-1].reshape(len(weights) - 1, -1))
        tuned = None if self._tuned.stances is None else stance_logits(self._tuned.stances, texts, len(self._index))
        return gains.TextReading(terms.reshape(len(texts), *weights.shape[1:]) + weights[-1], tuned)


def aspect_lines(pairs: Sequence[Pair], axes: Axes) -> dict[str, Stance]:
    """The lines of the rubrics, as a plan would show them, with the stance each states."""
    return {aspect_line(aspect): stance for pair in pairs for stance, aspect in stated(pair, axes)}


def _logits(apart: Any, weights: TraitWeights) -> Floats:
    """Logits of what pairs differ in, (N, 2, K)."""
    margin, size = apart @ weights.sides[:, 0], abs(apart) @ weights.sides[:, 1] + weights.bias
    return np.stack([size + margin, size - margin], axis=1)


def _sparse(rows: Sequence[Any], width: int) -> Any:
    from scipy.sparse import csr_array

    places = np.cumsum([0, *(len(row.columns) for row in rows)])
    values, columns = (np.concatenate([row[place] for row in rows]) for place in (1, 0))
    return csr_array((values, columns, places), shape=(len(rows), width))
