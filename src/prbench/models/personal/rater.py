"""`personal:DIR`: a trained personalized reward model as a Rater that reads posts and plans and adapts to judgments."""

import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from prbench.config import ModelOptions
from prbench.errors import AddressError, ConfigError, ModelError
from prbench.files import describe
from prbench.models.personal import SHIPPED, artifact, shipped
from prbench.models.personal.features import FeatureStore, encoder_revision
from prbench.models.personal.method import Method, State, Width, make
from prbench.models.personal.person import keep_judgments, stack
from prbench.models.personal.pieces import pieces
from prbench.models.personal.reader import Reader
from prbench.models.protocols import ModelCard
from prbench.rank import TextEncoder
from prbench.types import AnswerView, Channel, Judgment, Message, Outcome, Prompt

if TYPE_CHECKING:
    from prbench.models.personal.contrast_ranker import ContrastRanker
    from prbench.models.personal.cross import CrossRater

_CHUNK = 256
"""Views whose texts are embedded together."""
_KEPT = 1024
"""Users whose state is kept at a time."""


class PersonalRater:
    """Rater of an answer for the user whose posts, plan or judgments it is given.

    A user without any of these is a stranger: the score is what the method gives to all users. What a plan says is read
    as if the user had written it.

    Args:
        folder: Where the trained model lies.
        record: Record of the model.
        method: The module, with its weights.
        encoder: Maps texts to vectors.
        address: What it is called; default: by its folder.
        options: Precision of the encoder.
    """

    def __init__(
        self,
        folder: Path,
        record: artifact.PersonalRecord,
        method: Method,
        encoder: TextEncoder,
        address: str = "",
        options: ModelOptions = ModelOptions(),  # noqa: B008 (frozen)
    ) -> None:
        self.record = record
        self._folder = folder
        self._address = address or f"personal:{folder}"
        self._method = method.eval()
        self._precision = precision(options)
        self._reader = Reader(encoder, post_window=record.post_window, answer_window=record.answer_window)
        self._judged: dict[str, tuple[Judgment, ...]] = {}
        self._states: dict[tuple[object, ...], State] = {}

    @cached_property
    def card(self) -> ModelCard:
        """Description of the model that answers."""
        return ModelCard(
            address=self._address,
            revision=artifact.revision(self._folder),
            reads=frozenset({Channel.POSTS, Channel.PLAN}) if self._method.reads_user else frozenset(),
            parameters={
                "method": self.record.method,
                "encoder": self.record.encoder,
                "training": self.record.training.told,
                **self._precision,
            },
            units="log-odds",
        )

    @property
    def adapts(self) -> bool:
        """Whether `fit_user` takes judgments: one reward for all does not."""
        return bool(self._method.reads_user)

    def parameter_count(self) -> int:
        """Parameters of the method; the encoder's are not counted."""
        return sum(parameter.numel() for parameter in self._method.parameters())

    def prepare(self) -> None:
        """Load the encoder, so that what the first answer takes is not what loading takes."""
        encoder = self._reader.encoder
        getattr(encoder, "encoder", encoder).encode(["width"])  # past the store, which may know the text

    def fit_user(self, user: str, judgments: Sequence[Judgment]) -> None:
        """Adapt to all that this user has judged; no judgments forget the user."""
        if judgments and not self._method.reads_user:
            raise ModelError(
                f"{self._address} ({self.record.method}) has one reward for all and cannot adapt to a user",
                hint="train a method that reads the user, for example `prbench train user-bt`",
            )
        keep_judgments(self._judged, user, judgments)

    def hold_back(self) -> None:
        """Write no vectors from now on: texts that a server meets are not this machine's to keep."""
        if isinstance(self._reader.encoder, FeatureStore):
            self._reader.encoder.hold_back()

    def forget(self) -> None:
        """Drop what was made of users' texts; it is computed again where it is needed."""
        self._states.clear()
        if isinstance(self._reader.encoder, FeatureStore):
            self._reader.encoder.forget()

    def render(self, view: AnswerView) -> Prompt:
        """Each text as a turn of its own: the model embeds them one by one."""
        messages = [Message("post", post.text) for post in view.posts]
        messages += [Message("expectation", line) for line in view.plan]
        for judgment in self._shots(view):
            messages += [
                Message("judged question", judgment.question),
                Message("judged better", judgment.chosen),
                Message("judged worse", judgment.rejected),
            ]
        return Prompt((*messages, Message("question", view.question), Message("answer", view.answer)))

    def fresh_texts(self, prompts: Iterable[Prompt]) -> set[str]:
        """The pieces of texts whose vectors are still to be computed."""
        said = {(message.role, message.content) for prompt in prompts for message in prompt.messages}
        parts = {piece for role, text in said for piece in pieces(text, self._windows.get(role, 0))}
        encoder = self._reader.encoder
        return encoder.missing(parts) if isinstance(encoder, FeatureStore) else parts

    @property
    def _windows(self) -> dict[str, int]:
        """Sentences in a piece of a text, by what the text is; any other is embedded whole."""
        posts, answers = self.record.post_window, self.record.answer_window
        return {
            "post": posts,
            "expectation": posts,
            "answer": answers,
            "judged better": answers,
            "judged worse": answers,
        }

    def foreseen_seconds(self, tokens: int, length: int) -> float:
        """Return the seconds that embedding texts of so many tokens would take here."""
        encoder = self._reader.encoder
        return encoder.foreseen_seconds(tokens, length) if isinstance(encoder, FeatureStore) else 0.0

    def rate(self, views: Sequence[AnswerView]) -> Iterator[tuple[int, Outcome]]:
        """Score each view; what is known of a user is read once."""
        for start in range(0, len(views), _CHUNK):
            chunk = views[start : start + _CHUNK]
            began = time.perf_counter()
            scores = self._score(chunk)
            share_ms = (time.perf_counter() - began) * 1000 / len(chunk)
            for place, score in enumerate(scores):
                yield start + place, Outcome.scored(score, latency_ms=share_ms)

    def _score(self, views: Sequence[AnswerView]) -> list[float]:
        items = self._reader.items([(view.question, view.answer) for view in views])
        scores = []
        with torch.inference_mode():
            for view, item in zip(views, items, strict=True):
                # One user and one item at a time: a score must not depend on what else is asked.
                scores.append(float(self._method.reward(self._state(view), item[None, None]).item()))
        return scores

    def _state(self, view: AnswerView) -> State:
        shots = self._shots(view)
        texts = (*(post.text for post in view.posts), *view.plan)
        key = (texts, shots)
        if key not in self._states:
            while len(self._states) >= _KEPT:
                del self._states[next(iter(self._states))]
            self._states[key] = self._method.person(stack([self._reader.known(texts, shots)]))
        return self._states[key]

    def _shots(self, view: AnswerView) -> tuple[Judgment, ...]:
        return self._judged.get(view.user, ()) if view.user is not None else ()


def load(rest: str, options: ModelOptions) -> "PersonalRater | CrossRater | ContrastRanker":
    """Open the model that `prbench train … --out DIR` left in a folder, or `personal:reference`, which ships."""
    address = f"personal:{rest}"
    folder = SHIPPED / rest if shipped.is_shipped(rest) else Path(rest).expanduser()
    record = artifact.read_record(folder, address)
    if record.method == "cross":
        from prbench.models.personal.cross import CrossRater

        return CrossRater(folder, record, options)
    if record.method == "contrast":
        from prbench.models.personal.contrast_ranker import ContrastRanker

        return ContrastRanker(folder, record, options, address)
    try:
        method = make(record.method, Width(record.width_post, record.width_item), dict(record.settings), seed=0)
    except ConfigError as error:
        raise ConfigError(f"{folder / artifact.RECORD}: {describe(error.message)}", hint=error.hint) from error
    try:
        method.load_state_dict(artifact.read_weights(folder, address))
    except RuntimeError as error:
        raise ModelError(
            f"{address}: the weights do not fit the method {record.method!r}: {_first_misfit(error)}",
            hint="train the model again",
        ) from error
    return PersonalRater(folder, record, method, open_encoder(record, folder, options), address, options)


def _first_misfit(error: RuntimeError) -> str:
    return next((line.strip() for line in str(error).splitlines()[1:]), str(error))


def open_encoder(record: artifact.PersonalRecord, folder: Path, options: ModelOptions) -> TextEncoder:
    """The encoder a model was trained with, refused if it is another one by now.

    Its vectors must be those of the training, so of the options only what does not change them is passed on, and the
    precision, which the model's card then tells.
    """
    from prbench.models.registry import load_encoder

    own = record.encoder.partition("#")[0] == "encoder"
    address = f"embed:{folder}/{record.encoder}" if own else record.encoder
    try:
        encoder = load_encoder(address, of_encoder(options))
    except (AddressError, ModelError) as error:
        raise ModelError(f"{folder / artifact.RECORD} names an encoder: {error.message}", hint=error.hint) from error
    found = encoder_revision(encoder)
    if record.encoder_revision and found and found != record.encoder_revision:
        raise ModelError(
            f"personal:{folder}: trained with {record.encoder} at {record.encoder_revision[:12]}, found {found[:12]}",
            hint="train the model again, or bring back the encoder it was trained with",
        )
    return FeatureStore(encoder)


def of_encoder(options: ModelOptions) -> ModelOptions:
    """Return the options that reach a trained model's encoder."""
    return ModelOptions(device=options.device, batch_tokens=options.batch_tokens, dtype=options.dtype)


def precision(options: ModelOptions) -> dict[str, str]:
    """Return what a card says of the encoder's precision; in full precision it says what it always said.

    Example:
        >>> precision(ModelOptions()), precision(ModelOptions(dtype="bfloat16"))
        ({}, {'dtype': 'bfloat16'})
    """
    return {} if options.dtype == "float32" else {"dtype": options.dtype}
