"""`contrast` as a model that is asked: it reads what a view shows, keeps what it has read, and answers in log-odds."""

import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from prbench.config import ModelOptions
from prbench.errors import ModelError
from prbench.files import checked, load_tensors
from prbench.models.lists import compare_by_rank
from prbench.models.personal import artifact
from prbench.models.personal.contrast import Contrast, Leaning
from prbench.models.personal.features import FeatureStore
from prbench.models.personal.person import keep_judgments
from prbench.models.personal.statements import statements
from prbench.models.personal.traits import TraitReader
from prbench.models.protocols import ModelCard
from prbench.rank import TextEncoder
from prbench.types import AnswerView, Channel, Judgment, ListView, Message, Outcome, PairView, Prompt

_KEPT = 1024
"""Users that are kept at a time."""


class ContrastRanker:
    """Scores answers that it sees together, or one by one, for the user whose posts, plan or judgments it is given.

    Args:
        folder: Where the trained model lies.
        record: Record of the model.
        options: Device, batches and precision of the encoder.
        address: What it is called; default: by its folder.
    """

    adapts = True

    def __init__(self, folder: Path, record: artifact.PersonalRecord, options: ModelOptions, address: str = "") -> None:
        from prbench.models.personal.rater import open_encoder, precision

        self.record = record
        self._precision = precision(options)
        self._folder = folder
        self._address = address or f"personal:{folder}"
        self._encoder = open_encoder(record, folder, options)
        self._stances, self._answers = (
            open_tuned(folder, record, self._encoder, name) for name in ("stances", "answers")
        )
        self.contrast = open_contrast(folder, record, self._address, self._encoder, self._stances)
        self._reader = TraitReader(self.contrast.grams, self._encoder, self._answers, self.contrast.fluency)
        self._judged: dict[str, tuple[Judgment, ...]] = {}
        self._persons: dict[tuple[object, ...], Leaning] = {}

    @property
    def _encoders(self) -> tuple[TextEncoder | None, ...]:
        return self._encoder, self._stances, self._answers

    @cached_property
    def card(self) -> ModelCard:
        """Description of the model that answers."""
        return ModelCard(
            address=self._address,
            revision=artifact.revision(self._folder),
            reads=frozenset({Channel.POSTS, Channel.PLAN}),
            parameters={
                "method": self.record.method,
                "encoder": self.record.encoder,
                "training": self.record.training.told,
                **self._precision,
            },
            units="log-odds",
        )

    def prepare(self) -> None:
        """Load the encoder, so that what the first answer takes is not what loading takes."""
        for encoder in self._encoders:
            if encoder is not None:
                getattr(encoder, "encoder", encoder).encode(["width"])

    def fit_user(self, user: str, judgments: Sequence[Judgment]) -> None:
        """Adapt to all that this user has judged; no judgments forget the user."""
        keep_judgments(self._judged, user, judgments)

    def hold_back(self) -> None:
        """Write no vectors from now on: texts that a server meets are not this machine's to keep."""
        for encoder in self._encoders:
            if isinstance(encoder, FeatureStore):
                encoder.hold_back()

    def forget(self) -> None:
        """Drop what was made of users' texts; it is computed again where it is needed."""
        self._persons.clear()
        self._reader.forget()
        for encoder in self._encoders:
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
        """The questions, answers and statements, and the posts, whose vectors are still to be computed."""
        said = {(message.role, message.content) for prompt in prompts for message in prompt.messages}
        posts = [text for role, text in said if role == "post" and not statements(text)]
        spoken = {text for role, text in said if role != "post"} | set(self.contrast.sayings(posts))
        read = (
            spoken.union(posts) if self.contrast.hears else spoken,
            {text for role, text in said if role in ("post", "expectation")},
            {text for role, text in said if role not in ("post", "expectation", "question")},
        )
        found: set[str] = set()
        for encoder, texts in zip(self._encoders, read, strict=True):
            if isinstance(encoder, FeatureStore):
                found |= encoder.missing(texts)
        return found

    def foreseen_seconds(self, tokens: int, length: int) -> float:
        """Return the seconds that embedding texts of so many tokens would take here."""
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
            (traits,) = self._reader.read(view.question, (view.answer,), texts)
            score = self.contrast.alone(traits, self._person(view))
            yield place, Outcome.scored(score, latency_ms=(time.perf_counter() - began) * 1000)

    def _rank(self, view: ListView) -> list[float]:
        answers = sorted(set(view.answers))  # read and weighed in one order, however they stand in the list
        traits = self._reader.read(view.question, answers, tuple(post.text for post in view.posts))
        against = self.contrast.margins(traits, self._person(view))
        places = [answers.index(answer) for answer in view.answers]
        return [float(against[place, places].sum() / len(places)) for place in places]

    def _person(self, view: AnswerView | ListView) -> Leaning:
        shots = self._shots(view.user)
        key = (tuple(post.text for post in view.posts), view.plan, shots)
        if key not in self._persons:
            _make_room(self._persons)
            read = [self._reader.read(shot.question, (shot.chosen, shot.rejected)) for shot in shots]
            pairs = [(better, worse) for better, worse in read]
            self._persons[key] = self.contrast.told_by(self.contrast.person(key[0], key[1]), pairs)
        return self._persons[key]

    def _shots(self, user: str | None) -> tuple[Judgment, ...]:
        return self._judged.get(user, ()) if user is not None else ()


def _listed(view: PairView | ListView) -> ListView:
    return ListView.of(view) if isinstance(view, PairView) else view


def _make_room(kept: dict[Any, Any]) -> None:
    while len(kept) >= _KEPT:
        del kept[next(iter(kept))]


def open_tuned(folder: Path, record: artifact.PersonalRecord, base: TextEncoder, name: str) -> TextEncoder | None:
    """The tuned encoder that reads posts and statements (`stances`), or answers (`answers`), where there is one."""
    from prbench.models.local.upper import open_upper

    if not record.settings.get(name):
        return None
    plain: Any = base.encoder if isinstance(base, FeatureStore) else base
    return FeatureStore(open_upper(plain, f"{folder}/{record.settings[name]}"))


def open_contrast(
    folder: Path,
    record: artifact.PersonalRecord,
    address: str,
    encoder: TextEncoder,
    stances: TextEncoder | None = None,
) -> Contrast:
    """Open what the model in a folder has learned."""
    hint = "train the model again"
    weights = load_tensors(folder / artifact.WEIGHTS, kind="numpy", raises=ModelError, hint=hint)
    with checked(f"{address}: {str(folder / artifact.WEIGHTS)!r}", raises=ModelError, hint=hint):
        return Contrast(weights, record.settings["axes"], encoder, stances)
