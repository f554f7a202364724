"""The four things a model can be, its optional abilities, and what every model says of itself.

A Rater scores one answer, a Comparer judges two, a Ranker scores a list that it sees together, a Generator writes. All
take views or prompts in batches and yield `(index, outcome)` pairs in whatever order they finish, so that a slow call
holds nothing up and a paid call is kept at once. An outcome that is a failure is yielded like any other; a backend
raises only if nothing at all can be asked.

The protocols that `isinstance` can check are optional abilities: a model has one by having its methods.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeGuard, runtime_checkable

from pydantic import Field, field_serializer

from prbench.config import Price
from prbench.models.effort import Effort
from prbench.types import AnswerView, Channel, Context, Frozen, Judgment, ListView, Outcome, PairView, Prompt, Record


class ModelCard(Frozen):
    """Description of a model: everything that could change an answer is in here, and goes into every call's key."""

    address: str
    revision: str = ""
    """Commit or content hash of the weights; empty where there is none to know."""
    reads: frozenset[Channel] = frozenset()
    """The channels this model looks at; a context that needs another is unsupported, never a number."""
    parameters: Mapping[str, Any] = Field(default_factory=dict)
    """Decoding parameters, template hash, dtype … (JSON values)."""
    deterministic: bool = True
    """Whether the same input always gets the same answer; if not, repeats are separate calls."""
    reusable: bool = True
    """Whether calls may be taken from the cache in a later run; False for code we cannot pin."""
    price: Price | None = None
    units: Literal["log-odds", "points"] = "points"
    """Meaning of a difference of a Rater's scores: `log-odds` where they are Bradley–Terry rewards, so that σ of it is
    a probability and calibration can be measured; `points` for any other scale."""

    @property
    def identity(self) -> dict[str, Any]:
        """Facts that tell this model from any other, and go into every key under which an answer is kept."""
        return {"address": self.address, "revision": self.revision, "parameters": dict(self.parameters)}

    @field_serializer("reads")
    def _in_order(self, reads: frozenset[Channel]) -> list[str]:
        return sorted(reads)  # a set has no order, and two records of one model must be equal


class Rater(Protocol):
    """Gives each answer a score.

    Example:
        >>> from prbench import AnswerView, Message, ModelCard, Outcome, Post, Prompt, evaluate
        >>> class Echo:
        ...     card = ModelCard(address="echo", revision="1", reads={"posts"})
        ...     def render(self, view):
        ...         shown = [Message("post", post.text) for post in view.posts]
        ...         return Prompt((*shown, Message("question", view.question), Message("answer", view.answer)))
        ...     def rate(self, views):
        ...         for place, view in enumerate(views):
        ...             words = {word for post in view.posts for word in post.text.split()}
        ...             yield place, Outcome.scored(len(words & set(view.answer.split())))
        >>> evaluate(Echo(), "mirror", contexts=["none", "profile"], limit=40).contexts["none"].accuracy.value
        0.5
    """

    @property
    def card(self) -> ModelCard:
        """Description of the model that answers."""
        ...

    def render(self, view: AnswerView) -> Prompt:
        """Exactly what the model will receive for this view. Pure and cheap: no model call."""
        ...

    def rate(self, views: Sequence[AnswerView]) -> Iterator[tuple[int, Outcome]]:
        """Score each view; yields `(position in views, outcome)` once each, in any order."""
        ...


class Comparer(Protocol):
    """Gives a verdict on a pair."""

    @property
    def card(self) -> ModelCard:
        """Description of the model that answers."""
        ...

    def render(self, view: PairView) -> Prompt:
        """Exactly what the model will receive for this view. Pure and cheap: no model call."""
        ...

    def compare(self, views: Sequence[PairView]) -> Iterator[tuple[int, Outcome]]:
        """Judge each view; yields `(position in views, outcome)` once each, in any order."""
        ...


class Ranker(Protocol):
    """Scores the answers to a question that it sees together: what one is worth may depend on the others."""

    @property
    def card(self) -> ModelCard:
        """Description of the model that answers."""
        ...

    def render(self, view: ListView) -> Prompt:
        """Exactly what the model will receive for this list. Pure and cheap: no model call."""
        ...

    def rank(self, views: Sequence[ListView]) -> Iterator[tuple[int, Outcome]]:
        """Score each list of two or more answers; yields `(position in views, outcome with all scores)` once each."""
        ...


class Generator(Protocol):
    """Model that writes text."""

    @property
    def card(self) -> ModelCard:
        """Description of the model that answers."""
        ...

    def generate(
        self,
        prompts: Sequence[Prompt],
        *,
        n: int = 1,
        max_tokens: int = 512,
        temperature: float = 0.0,
        seed: int = 0,
        stop: Sequence[str] = (),
    ) -> Iterator[tuple[int, tuple[Outcome, ...]]]:
        """Write `n` texts for each prompt; each text is an outcome's `raw`."""
        ...


@runtime_checkable
class Windowed(Protocol):
    """A model with a limit on its input; whole posts are left out until a prompt fits, the answer is never cut."""

    @property
    def window(self) -> int | None:
        """The most tokens a rendered prompt may have; None where there is no known limit."""
        ...

    def length(self, prompt: Prompt) -> int:
        """Tokens that this prompt takes in the model, special tokens included."""
        ...


@runtime_checkable
class Positional(Protocol):
    """A Ranker that may favour places in a list: it is asked in every rotation, and the scores are averaged."""

    @property
    def favours_places(self) -> bool:
        """Whether the order of a list may change its scores."""
        ...

    @property
    def most_answers(self) -> int | None:
        """The longest list that can be asked about; None where there is no such limit."""
        ...


@runtime_checkable
class Adaptive(Protocol):
    """A model that learns what a user wants from a few pairs the user has judged."""

    def fit_user(self, user: str, judgments: Sequence[Judgment]) -> None:
        """Adapt to all that this user has judged; replaces what was there, no judgments forget the user."""
        ...


@runtime_checkable
class Willing(Protocol):
    """An adaptive model that says whether it takes judgments at all; one that does not say so takes them."""

    @property
    def adapts(self) -> bool:
        """Whether `fit_user` has an effect; a model for which it has none refuses judgments."""
        ...


@runtime_checkable
class Forgetful(Protocol):
    """A model that keeps what it computed from texts, and can be told not to."""

    def hold_back(self) -> None:
        """Keep a bounded part of what is computed from now on, in memory only; called once by a server."""
        ...

    def forget(self) -> None:
        """Drop everything that was computed from texts since."""
        ...


@runtime_checkable
class Preparable(Protocol):
    """A model that can load its weights before the first call."""

    def prepare(self) -> None:
        """Load what the first call would load."""
        ...


@runtime_checkable
class Sized(Protocol):
    """A model that knows how many parameters it has."""

    def parameter_count(self) -> int:
        """Count the parameters without loading the weights."""
        ...


@runtime_checkable
class Foreseeable(Protocol):
    """A model on this machine that can tell how long its passes will take."""

    def foreseen_seconds(self, tokens: int, length: int) -> float:
        """Foresee the seconds of passes over so many tokens, in prompts of about this length."""
        ...


@runtime_checkable
class TextByText(Foreseeable, Protocol):
    """A model on this machine that embeds texts, each once, and remembers them."""

    def fresh_texts(self, prompts: Iterable[Prompt]) -> Collection[str]:
        """The distinct texts, or pieces of texts, that these prompts make it compute."""
        ...


@runtime_checkable
class Accounted(Protocol):
    """A model that knows what its scoring took."""

    @property
    def effort(self) -> Effort:
        """Effort of scoring so far; asking loads no weights."""
        ...


@runtime_checkable
class Paced(Protocol):
    """A model that knows how fast this machine could compute for it."""

    @property
    def peak_flops(self) -> float | None:
        """Operations per second of a matrix product here, as this model makes it; None before weights are loaded."""
        ...


@runtime_checkable
class Noted(Protocol):
    """A model that has something to tell about how it was run."""

    @property
    def note(self) -> str | None:
        """A sentence for the user; None where there is nothing to tell."""
        ...


@runtime_checkable
class Replay(Protocol):
    """A model whose answers exist already: it gives whole records by pair id, and nothing is asked."""

    contexts: frozenset[str] | None
    expected: int

    def replay(self, pair: str, context: Context) -> list[Record]:
        """All records of a pair in a context."""
        ...


Model = Rater | Comparer
"""Model that can be evaluated."""


def can_rate(model: object) -> TypeGuard[Rater]:
    """Whether a model can be asked about one answer by itself, whatever else it can."""
    return hasattr(model, "rate")


def is_rater(model: Model) -> TypeGuard[Rater]:
    """Whether a model is asked about a pair's answers one by one; a model that can compare them sees both."""
    return can_rate(model) and not hasattr(model, "compare")


def is_ranker(model: object) -> TypeGuard[Ranker]:
    """Whether a model can be asked about several answers at once."""
    return hasattr(model, "rank")


def is_adaptive(model: object) -> TypeGuard[Adaptive]:
    """Whether a model learns from a user's judgments: it has `fit_user`, and does not say that it refuses them."""
    return isinstance(model, Adaptive) and not (isinstance(model, Willing) and not model.adapts)


def is_instant(model: object) -> bool:
    """Whether a model says that it answers faster than an answer is looked up, so that none is kept across runs."""
    return bool(getattr(model, "instant", False))
