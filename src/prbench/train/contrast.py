"""`prbench train contrast`: fits what answers differ in, where a user stands, and how far either is to be trusted.

Four fits: the sides that posts and plans show (passages, the training people's posts, and the training split's
aspects), what two answers differ in (pairs of the training split's answers and of passages), what makes an answer
unsound (flawed and spoilt answers), and five gains that set their log-odds against each other. The gains are fitted on
the validation split: its people and questions are unseen, so they say how far each reading can be trusted.
"""

import itertools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pydantic import Field

from prbench.contexts.builder import aspect_line
from prbench.data import load_pairs
from prbench.data.passages import Passage, load_passages
from prbench.data.portion import Portion
from prbench.errors import ConfigError
from prbench.models.ngrams import NGrams
from prbench.models.personal import artifact
from prbench.models.personal.contrast import LIMIT, NAME, SEPARATOR, PostGains, post_odds, stance_logits
from prbench.models.personal.traits import COUNTS, COUNTS_SCALE, TELLING, VECTOR_SCALE, Floats, TraitReader, Traits
from prbench.train.leaks import check_splits
from prbench.train.stance_labels import Axes, Stance, answer_stances, people_stances, stated
from prbench.train.train import learned_from, of_split
from prbench.train.tune import Adopted, adopt_encoder, taught, tuned_on
from prbench.train.unsound import unsound
from prbench.types import Frozen, Pair

Tell = Callable[[str], None]
_EQUAL = 0.3
"""Weight of a pair of sound answers where soundness is fitted."""
_SPOILT_PENALTY = 0.01
_START = np.zeros(5)
"""Logarithms of the gains to begin with: answers, plans; terms of a post, the tuned encoder, both together."""
_MODEST = 0.002
"""Penalty of a gain's logarithm: where everything is told right, no gain is large enough."""


class ContrastConfig(Frozen):
    """How `contrast` is fitted."""

    encoder: str = "embed:minilm"
    """Whose vectors of answers are compared, frozen."""
    stances: str = ""
    """A tuned encoder, `embed:DIR#stances`, by which posts are read beside their terms."""
    also: str = "generic"
    """A suite of sound and flawed answers; its pairs of the same split teach what all users want."""
    penalty: float = Field(default=0.03, gt=0)
    """Of the weights that tell what answers differ in."""
    reader_penalty: float = Field(default=0.25, gt=0)
    """Of the weights that tell where a text stands."""
    flaw_penalty: float = Field(default=0.1, gt=0)
    """Of the weights that tell a flawed answer from a sound one."""
    flaw: float = Field(default=0.3, ge=0)
    """How much of the log-odds for the answer without a flaw is kept beside a user's taste."""
    folds: int = Field(default=4, ge=2)
    """Parts of the training questions on which the gains are fitted in turn."""
    seed: int = 0


class AnswerDifference(NamedTuple):
    """Two answers and what they differ in: axes with the side of the first answer."""

    question: str
    one: Traits
    two: Traits
    sides: dict[int, int]


class TraitWeights(NamedTuple):
    """Weights of the traits, (width, 2, K), and the bias, (K)."""

    sides: Floats
    bias: Floats


def train_contrast(
    options: ContrastConfig,
    out: Path,
    *,
    suite: str = "mirror",
    split: str = "train",
    validation: str = "validation",
    portion: Portion = Portion(),  # noqa: B008 (frozen)
    tell: Tell | None = None,
) -> artifact.PersonalRecord:
    """Fit the model on a split and write it to a folder.

    Args:
        options: How.
        out: Folder of the model.
        suite: Name or path; its pairs need the tags `axis` and `pole`.
        split: What is learned from.
        portion: The part of it that is learned from; default: all.
        validation: What the gains are fitted on; accuracy and loss on it are kept in the record.
        tell: Hears how far it is.
    """
    from prbench.config import ModelOptions
    from prbench.models import load_encoder
    from prbench.models.personal.features import FeatureStore, encoder_revision

    everything = load_pairs(suite)
    pairs = learned_from(everything, split, portion, options.seed)
    held = of_split(everything, validation)
    flawed = portion.unowned(of_split(load_pairs(options.also), split)) if options.also else []
    passages = portion.written(load_passages(), options.seed)
    check_splits([*pairs, *flawed], everything, validation, extra=[passage.text for passage in passages])
    encoder = FeatureStore(load_encoder(options.encoder, ModelOptions()))
    fitting = Fitting(options, pairs, held, flawed, passages, encoder, tell or (lambda line: None))
    stances = _stances(options.stances, fitting.axes)
    weights = fitting.run(stances)
    adopted = adopt_encoder(options.stances, out) if stances else Adopted("")
    record = artifact.PersonalRecord(
        method=NAME,
        settings={
            "axes": {axis: list(poles) for axis, poles in fitting.axes.poles.items()},
            "stances": adopted.address,
        },
        encoder=options.encoder,
        encoder_revision=encoder_revision(encoder),
        width_post=len(fitting.grams.vocabulary),
        width_item=len(weights["sides"]),
        training=artifact.TrainingFacts(
            suite=f"{suite}+{options.also}" if options.also else suite,
            fingerprint=everything.record.fingerprint,
            split=split,
            pairs=len(pairs) + len(flawed),
            users=len({pair.user for pair in pairs}),
            questions=len({pair.question for pair in pairs}),
            aspects=True,
            extra_texts=len(passages),
            portion=taught(portion, adopted, tuned_on(options.encoder)),
            seed=options.seed,
        ),
    )
    _save(out, record, weights)
    measured = measure(out, record, held)
    facts = record.training.model_copy(update={"validation": {"split": validation, "pairs": len(held), **measured}})
    record = record.model_copy(update={"training": facts})
    artifact.save_record(out, record)
    return record


def _stances(address: str, axes: Axes) -> Any:
    """The tuned encoder of the options, or None; one that cannot be trusted here is refused."""
    from prbench.config import ModelOptions
    from prbench.models import load_encoder
    from prbench.models.personal.features import FeatureStore
    from prbench.models.personal.stance_encoder import StanceEncoder

    if not address:
        return None
    found = load_encoder(address, ModelOptions())
    if not isinstance(found, StanceEncoder) or dict(found.poles) != axes.poles:
        raise ConfigError(
            f"{address!r} does not tell the stances on this suite's axes",
            hint="tune one with `prbench train encoder -o DIR` and name it embed:DIR#stances",
        )
    return FeatureStore(found)


def measure(folder: Path, record: artifact.PersonalRecord, pairs: Sequence[Pair]) -> dict[str, float]:
    """Accuracy of a model in a folder under the profile, and the loss of its log-odds."""
    from prbench.config import ModelOptions
    from prbench.models.personal.contrast import ContrastRanker
    from prbench.types import PairView

    model = ContrastRanker(folder, record, ModelOptions())
    views = [PairView(pair.question, pair.chosen, pair.rejected, pair.profile, (), pair.user) for pair in pairs]
    margins = np.array([outcome.margin for _, outcome in model.compare(views)], dtype=np.float64)
    return {
        "accuracy": float(((margins > 0) + 0.5 * (margins == 0)).mean()),
        "loss": float(np.logaddexp(0, -margins).mean()),
    }


def _save(out: Path, record: artifact.PersonalRecord, weights: Mapping[str, Any]) -> None:
    from safetensors.numpy import save_file

    out.mkdir(parents=True, exist_ok=True)
    temporary = out / f".{artifact.WEIGHTS}.{os.getpid()}"
    save_file({name: np.ascontiguousarray(array) for name, array in weights.items()}, temporary)
    temporary.chmod(0o644)
    temporary.replace(out / artifact.WEIGHTS)
    artifact.save_record(out, record)


class Fitting:
    """One training.

    Args:
        options: How.
        pairs: Of the training split, with tags that say what decides them.
        held: Of the validation split, on which the gains are fitted.
        flawed: Sound and flawed answers of the same split.
        passages: Texts whose stance is known.
        encoder: Maps texts to vectors.
        tell: Hears how far it is.
    """

    def __init__(
        self,
        options: ContrastConfig,
        pairs: Sequence[Pair],
        held: Sequence[Pair],
        flawed: Sequence[Pair],
        passages: Sequence[Passage],
        encoder: Any,
        tell: Tell,
    ) -> None:
        self._options, self._pairs, self._held, self._flawed, self._tell = options, pairs, held, flawed, tell
        self.axes = Axes.of(pairs)
        self._index = {axis: place for place, axis in enumerate(self.axes.poles)}
        self._passages = [passage for passage in passages if passage.axis in self._index]
        self._answers = answer_stances(pairs, self.axes)
        self._lines = aspect_lines(pairs, self.axes)
        self._posts = people_stances(pairs, self.axes)
        self._encoder = encoder
        self.grams = self._grams(self._answers)
        self._reader = TraitReader(self.grams, encoder)

    def _grams(self, answers: Iterable[str]) -> NGrams:
        return NGrams([*(passage.text for passage in self._passages), *self._posts, *answers, *self._lines])

    def run(self, stances: Any = None) -> dict[str, Any]:
        """Fit everything; the arrays of `weights.safetensors`. `stances` is an encoder that reads posts as well."""
        from scipy.optimize import minimize

        posts, plan = self._fit_reader(plan=False), _between(self._fit_reader(plan=True))
        self._tell("where a text stands: fitted")
        differences = self._differences()
        self._tell(f"what answers differ in: {len(differences):,} pairs of answers")
        whole = self._fit_differences(differences)
        people = self._held_people(posts, stances)
        stated_NK, logits_N2K = self._held_examples(whole, plan)
        users = list(people)
        rows = np.array([users.index(pair.user) for pair in self._held])

        def loss(gains: Floats) -> float:
            sharpness, plan_gain, *of_posts = np.exp(gains)
            odds = np.array([post_odds(*people[user], PostGains(*of_posts)).sum(0) for user in users])
            found = _loss(sharpness * logits_N2K, np.clip(odds, -LIMIT, LIMIT)[rows])
            found += _loss(sharpness * logits_N2K, np.clip(plan_gain * stated_NK, -LIMIT, LIMIT))
            return found + _MODEST * float(((gains - _START) ** 2).sum())

        found = minimize(loss, _START, method="Nelder-Mead", options={"maxiter": 600})
        sharpness, plan_gain, *of_posts = (float(gain) for gain in np.exp(found.x))
        self._tell(
            f"gains: {sharpness:.2f} for answers, {plan_gain:.2f} for plans, {of_posts[0]:.2f} for terms of posts, "
            f"{of_posts[1] if stances else 0:.2f} for the tuned encoder, {of_posts[2]:.2f} for both"
        )
        arrays = self._arrays(whole, sharpness, posts, plan_gain * plan)
        arrays["post_gains"] = np.array(of_posts, dtype=np.float32)
        return arrays | self._sound_arrays(differences, arrays["typical"])

    def _held_people(self, posts: Floats, stances: Any) -> dict[str, tuple[Floats, Floats | None]]:
        """What terms and the tuned encoder say of each post of the validation people."""
        found: dict[str, tuple[Floats, Floats | None]] = {}
        for pair in self._held:
            if pair.user not in found:
                texts = [post.text for post in pair.profile]
                terms = np.asarray(self.grams.rows(texts) @ posts[:-1].reshape(len(posts) - 1, -1))
                tuned = None if stances is None else stance_logits(stances, texts, len(self._index))
                found[pair.user] = terms.reshape(len(texts), *posts.shape[1:]) + posts[-1], tuned
        return found

    def _arrays(self, whole: TraitWeights, sharpness: float, posts: Floats, plan: Floats) -> dict[str, Any]:
        sides = (sharpness * whole.sides).astype(np.float16)
        usual = [self._traits(question, (answer,))[0] for question, answer in self._asked()]
        terms = np.asarray(self.grams.rows([answer for _, answer in self._asked()]).mean(0)).ravel()
        dense = np.mean([traits.dense for traits in usual], axis=0)
        return {
            "vocabulary": np.frombuffer(SEPARATOR.join(self.grams.vocabulary).encode(), dtype=np.uint8),
            "term_weights": self.grams.weights.astype(np.float32),
            "sides": sides,
            "bias": (sharpness * whole.bias).astype(np.float32),
            "posts": posts.astype(np.float16),
            "plan": plan.astype(np.float16),
            "typical": np.concatenate([terms, dense]) @ sides[:, 0].astype(np.float64),
        }

    def _asked(self) -> list[tuple[str, str]]:
        found = {(pair.question, answer) for pair in self._pairs for answer in (pair.chosen, pair.rejected)}
        return sorted(found)

    def _traits(self, question: str, answers: Sequence[str], posts: Sequence[str] = ()) -> list[Traits]:
        return self._reader.read(question, answers, posts)

    def _differences(self) -> list[AnswerDifference]:
        """All pairs of sound answers whose difference is known."""
        texts = [text for pair in self._pairs for text in (pair.question, pair.chosen, pair.rejected)]
        self._reader.prepare([*texts, *(passage.text for passage in self._passages if passage.kind == "answer")])
        found: list[AnswerDifference] = []
        by_question: dict[str, list[str]] = {}
        for question, answer in self._asked():
            by_question.setdefault(question, []).append(answer)
        for question, answers in by_question.items():
            traits = dict(zip(answers, self._traits(question, answers), strict=True))
            for one, two in itertools.combinations(answers, 2):
                sides = {stance.axis: stance.side for stance in self._answers[one]}
                apart = {self._index[s.axis]: -s.side for s in self._answers[two] if sides.get(s.axis) == -s.side}
                if apart:
                    found.append(AnswerDifference(question, traits[one], traits[two], apart))
        for situation in self._situations():
            axis, side = self.axes.stance(situation[0].axis, situation[0].pole)
            read = self._traits("", [passage.text for passage in situation])
            found.append(AnswerDifference("", read[0], read[1], {self._index[axis]: side}))
        return found

    def _sound_arrays(self, differences: Sequence[AnswerDifference], typical: Floats) -> dict[str, Any]:
        """How flaws show in an answer's vector, and in its counts that it is no answer at all.

        Pairs of sound answers are shown as equally good. A flaw is not looked for in the counts, nor a spoilt answer in
        the vector: they would learn how the examples were made.
        """
        spoilt = list(unsound(self._pairs, self._options.seed))
        texts = [text for pair in self._flawed for text in (pair.question, pair.chosen, pair.rejected)]
        self._reader.prepare([*texts, *(one.spoilt for one in spoilt)])
        equal = np.array([(pair.one.dense - pair.two.dense)[COUNTS:] for pair in differences if pair.question])
        flaw = np.zeros(equal.shape[1])
        if self._flawed:
            shown = [self._traits(pair.question, (pair.chosen, pair.rejected)) for pair in self._flawed]
            worse = np.array([(sound.dense - flawed.dense)[COUNTS:] for sound, flawed in shown])
            rows, half = np.concatenate([worse, equal]), np.full(len(equal), 0.5)
            weights = np.concatenate([np.ones(len(worse)), np.full(len(equal), _EQUAL)])
            labels = np.concatenate([np.ones(len(worse)), half])
            penalty = np.full(rows.shape[1], self._options.flaw_penalty * VECTOR_SCALE**2)
            flaw = self._options.flaw * _logistic(rows, labels, weights, penalty)
        readers = self._strangers()
        made = [readers[one.question].read(one.question, (one.spoilt,), one.posts)[0].dense for one in spoilt]
        sound = [readers[question].read(question, (answer,))[0].dense for question, answer in self._asked()]
        rows = np.array([*made, *sound])[:, :COUNTS]
        rows = np.concatenate([rows, np.ones((len(rows), 1))], axis=1)
        labels = np.concatenate([np.ones(len(made)), np.zeros(len(sound))])
        weights = np.where(labels > 0, 1.0, len(made) / len(sound))
        telling = [0, *range(COUNTS - TELLING, COUNTS), COUNTS]  # the rest is manner: sound answers differ in it
        penalty = np.append(np.full(TELLING + 1, _SPOILT_PENALTY * COUNTS_SCALE**2), 1e-6)
        spoils = np.zeros(COUNTS + 1)
        spoils[telling] = _logistic(rows[:, telling], labels, weights, penalty)
        self._tell(f"soundness: {len(self._flawed):,} flawed and {len(made):,} spoilt answers")
        usual = float(np.mean(sound, axis=0)[COUNTS:] @ flaw)
        return {
            "flaw": flaw.astype(np.float32),
            "spoilt": spoils.astype(np.float32),
            "typical": np.append(typical, usual).astype(np.float32),
        }

    def _strangers(self) -> dict[str, TraitReader]:
        """For each question a reader that knows no term from its answers alone, as it will not of unseen answers."""
        questions, found = sorted({question for question, _ in self._asked()}), {}
        for fold in range(self._options.folds):
            out = set(questions[fold :: self._options.folds])
            grams = self._grams(answer for question, answer in self._asked() if question not in out)
            found.update(dict.fromkeys(out, TraitReader(grams, self._encoder)))
        return found

    def _situations(self) -> list[list[Passage]]:
        """The two answers of each situation that was written as answers."""
        found: dict[tuple[str, str], list[Passage]] = {}
        for passage in self._passages:
            if passage.kind == "answer":
                found.setdefault((passage.axis, passage.situation), []).append(passage)
        return [both for both in found.values() if len(both) == 2]

    def _fit_differences(self, pairs: Sequence[AnswerDifference]) -> TraitWeights:
        """Softmax over axis and side; swapping a pair's answers swaps the sides, so each is shown one way round."""
        from scipy.sparse import csr_array, hstack

        vocabulary, axes = len(self.grams.vocabulary), len(self._index)
        first = _sparse([pair.one.terms for pair in pairs], vocabulary)
        second = _sparse([pair.two.terms for pair in pairs], vocabulary)
        dense = np.array([pair.one.dense - pair.two.dense for pair in pairs])
        apart = csr_array(hstack([first - second, csr_array(dense)]))
        sizes = abs(apart)
        labels = np.zeros((len(pairs), 2 * axes))
        for row, pair in enumerate(pairs):
            for axis, side in pair.sides.items():
                labels[row, axis + (0 if side > 0 else axes)] = 1 / len(pair.sides)
        penalty, wide = self._options.penalty, apart.shape[1]

        def objective(flat: Floats) -> tuple[float, Floats]:
            own, size, bias = _split(flat, wide, axes)
            margin, base = apart @ own, sizes @ size + bias
            logits = np.hstack([base + margin, base - margin])
            total = np.logaddexp.reduce(logits, axis=1, keepdims=True)
            error = np.exp(logits - total) - labels
            plus, minus = error[:, :axes], error[:, axes:]
            loss = float(total.sum() - (logits * labels).sum())
            loss += penalty / 2 * float((own**2).sum() + (size**2).sum()) + penalty * float((bias**2).sum())
            slopes = (
                apart.T @ (plus - minus) + penalty * own,
                sizes.T @ (plus + minus) + penalty * size,
                (plus + minus).sum(0) + 2 * penalty * bias,
            )
            return loss, np.concatenate([slope.ravel() for slope in slopes])

        own, size, bias = _split(_minimise(objective, 2 * wide * axes + axes), wide, axes)
        return TraitWeights(np.stack([own, size], axis=1), bias)

    def _fit_reader(self, *, plan: bool) -> Floats:
        """Weights of terms for the first and the second side against nothing, (terms + 1, K, 2).

        Posts are read by passages written as posts and by people's posts, plans by the lines of aspects and all
        passages.
        """
        texts: list[tuple[str, tuple[Stance, ...]]] = [
            (passage.text, (self.axes.stance(passage.axis, passage.pole),))
            for passage in self._passages
            if plan or passage.kind == "post"
        ]
        texts += [(text, (line.stance,)) for text, line in self._lines.items()] if plan else self._posts.items()
        rows, axes = self.grams.rows([text for text, _ in texts]), len(self._index)
        labels = np.zeros((len(texts), axes, 3))
        labels[:, :, 1] = 1.0
        for place, (_, stances) in enumerate(texts):
            for axis, side in stances:
                labels[place, self._index[axis]] = np.eye(3)[1 + side]
        penalty, wide = self._options.reader_penalty, rows.shape[1]

        def objective(flat: Floats) -> tuple[float, Floats]:
            own, bias = flat[: wide * axes * 3].reshape(wide, -1), flat[wide * axes * 3 :]
            logits = (rows @ own + bias).reshape(len(texts), axes, 3)
            total = np.logaddexp.reduce(logits, axis=2, keepdims=True)
            error = (np.exp(logits - total) - labels).reshape(len(texts), -1)
            loss = float(total.sum() - (logits * labels).sum() + penalty / 2 * (own**2).sum())
            return loss, np.concatenate([(rows.T @ error + penalty * own).ravel(), error.sum(0)])

        flat = _minimise(objective, (wide + 1) * axes * 3).reshape(wide + 1, axes, 3)
        return np.asarray(flat[:, :, [0, 2]] - flat[:, :, 1:2])

    def _held_examples(self, whole: TraitWeights, plan: Floats) -> tuple[Floats, Floats]:
        """Of each pair of the validation split: log-odds by the stated aspects, and the logits of what decides."""
        vocabulary = len(self.grams.vocabulary)
        self._reader.prepare([text for pair in self._held for text in (pair.question, pair.chosen, pair.rejected)])
        stated, logits = [], []
        for pair in self._held:
            one, two = self._traits(pair.question, (pair.chosen, pair.rejected))
            apart = np.zeros(vocabulary + len(one.dense))
            np.add.at(apart, one.terms.columns, one.terms.values)
            np.add.at(apart, two.terms.columns, -two.terms.values)
            apart[vocabulary:] = one.dense - two.dense
            touched = np.flatnonzero(apart)
            own, size = (whole.sides[touched, place] for place in (0, 1))
            margin, base = apart[touched] @ own, np.abs(apart[touched]) @ size + whole.bias
            stated.append(self._odds([aspect_line(aspect) for aspect in pair.rubric_aspects], plan))
            logits.append(np.stack([base + margin, base - margin]))
        return np.array(stated), np.array(logits)

    def _odds(self, texts: Sequence[str], weights: Floats) -> Floats:
        rows = self.grams.rows(texts)
        return np.asarray((rows @ weights[:-1] + weights[-1]).sum(0))


class RubricLine(NamedTuple):
    """What a line of a rubric says, and the questions it was written for."""

    stance: Stance
    questions: set[str]


def aspect_lines(pairs: Sequence[Pair], axes: Axes) -> dict[str, RubricLine]:
    """The lines of the rubrics, as a plan would show them, with the stance each states."""
    found: dict[str, RubricLine] = {}
    for pair in pairs:
        for stance, aspect in stated(pair, axes):
            found.setdefault(aspect_line(aspect), RubricLine(stance, set())).questions.add(pair.question)
    return found


def _between(sides: Floats) -> Floats:
    """The log-odds of the second side against the first."""
    return np.asarray(sides[:, :, 1] - sides[:, :, 0])


def _sparse(rows: Sequence[Any], width: int) -> Any:
    from scipy.sparse import csr_array

    places = np.cumsum([0, *(len(row.columns) for row in rows)])
    values, columns = (np.concatenate([row[place] for row in rows]) for place in (1, 0))
    return csr_array((values, columns, places), shape=(len(rows), width))


def _split(flat: Floats, wide: int, axes: int) -> tuple[Floats, Floats, Floats]:
    size = wide * axes
    return flat[:size].reshape(wide, axes), flat[size : 2 * size].reshape(wide, axes), flat[2 * size :]


def _minimise(objective: Callable[[Floats], tuple[float, Floats]], count: int) -> Floats:
    from scipy.optimize import minimize

    found = minimize(objective, np.zeros(count), jac=True, method="L-BFGS-B", options={"maxiter": 150, "maxcor": 6})
    return np.asarray(found.x, dtype=np.float64)


def _logistic(rows: Floats, labels: Floats, weights: Floats, penalty: Floats) -> Floats:
    """Logistic regression with a penalty for each column."""

    def objective(flat: Floats) -> tuple[float, Floats]:
        decisions = rows @ flat
        loss = float((weights * (np.logaddexp(0, decisions) - labels * decisions)).sum())
        error = weights * (0.5 * (1 + np.tanh(decisions / 2)) - labels)
        return loss + float(penalty @ flat**2) / 2, rows.T @ error + penalty * flat

    return _minimise(objective, rows.shape[1])


def _loss(logits_N2K: Floats, odds_NK: Floats) -> float:
    """−log P of the chosen answer, the mean over pairs."""
    shares = np.exp(logits_N2K - logits_N2K.max((1, 2), keepdims=True))
    shares /= shares.sum((1, 2), keepdims=True)
    wanted = 0.5 * (1 + np.tanh(np.stack([odds_NK, -odds_NK], axis=1) / 2))
    return float(-np.log(np.maximum((shares * wanted).sum((1, 2)), 1e-12)).mean())
