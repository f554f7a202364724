"""Base of raters with local weights: one template, one way of tokenising, one loop over chunks.

Prompts that begin alike are scored together, so that what they share is computed once where the model allows it. A
prompt that is longer than the window is never cut; it is yielded as invalid, with both numbers.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from prbench.models.effort import Effort
from prbench.models.local.batching import Item, Scored, longest
from prbench.models.local.encoding import PromptEncoder
from prbench.models.local.flops import matmul_peak
from prbench.models.local.placement import spread_note
from prbench.models.local.prefix import LogitRequest, PrefixScorer
from prbench.models.local.quantize import choose_sample, describe_change, quantise
from prbench.models.protocols import ModelCard
from prbench.models.registry import ModelOptions
from prbench.prompts import Template, conversation
from prbench.types import AnswerView, Message, Outcome, Prompt

_CHUNK = 512
"""Views tokenised ahead of scoring: enough to share much, few enough that the first score comes at once."""


class LocalRater:
    """Rates with weights on this machine. Subclasses say how a prompt is encoded and how encoded prompts are scored.

    Args:
        options: Device, precision, budget, template.
        window: The most tokens a prompt may have, unless the options say otherwise.
    """

    def __init__(self, options: ModelOptions, window: int | None) -> None:
        self._quantize = options.quantize
        self._options = options.model_copy(update={"quantize": None})  # done here, once weights are loaded
        self._rounding: str | None = None
        self._plain_effort = Effort()
        self._template = Template.load(options.template, "turn", "turn.jinja")
        self._window = options.window or window

    @property
    @abstractmethod
    def card(self) -> ModelCard:
        """Description of the model, with everything that could change a score."""

    @property
    def window(self) -> int | None:
        """The most tokens a prompt may have."""
        return self._window

    @property
    def note(self) -> str | None:
        """Note that a user should know about how this model is run; loads the weights."""
        return "; ".join(self._notes()) or None

    @property
    def effort(self) -> Effort:
        """Effort of scoring so far; asking loads no weights."""
        return self._plain_effort

    @property
    def peak_flops(self) -> float | None:
        """Operations per second of a matrix product here, as this model makes it; None where it is not known."""
        return None

    def render(self, view: AnswerView) -> Prompt:
        """Earlier turns, posts, plan and question as the last user turn, the answer as the assistant's turn."""
        return Prompt((*conversation(self._template, view), Message("assistant", view.answer)))

    def length(self, prompt: Prompt) -> int:
        """Tokens that this prompt takes, special tokens included."""
        return longest(self._encode(prompt))

    def rate(self, views: Sequence[AnswerView]) -> Iterator[tuple[int, Outcome]]:
        """Score each view, chunk by chunk; loads the weights if `prepare` has not."""
        self.prepare()
        prompts = [self.render(view) for view in views]
        if self._quantize is not None and self._rounding is None:
            self._round_weights(prompts)
        for chunk in chunks(prompts):
            yield from self._rate_chunk({index: self._encode(prompts[index]) for index in chunk})

    @abstractmethod
    def prepare(self) -> None:
        """Load and check the weights, so that a model that cannot score is refused before the first call."""

    @abstractmethod
    def _encode(self, prompt: Prompt) -> Item: ...

    @abstractmethod
    def _encoders(self) -> Sequence[PromptEncoder]:
        """Encoders that turn prompts into tokens, for each of the models behind a score."""

    @abstractmethod
    def _networks(self) -> Sequence[Any]:
        """The models behind a score, loaded."""

    @abstractmethod
    def _score_items(self, items: list[Item]) -> Iterator[Scored]:
        """Score all items, in any order."""

    def _notes(self) -> Iterator[str]:
        yield from dict.fromkeys(encoder.note for encoder in self._encoders() if encoder.note is not None)
        yield from (note for network in self._networks() if (note := spread_note(network)) is not None)
        if self._rounding is not None:
            yield self._rounding

    @property
    def _precision(self) -> dict[str, str]:
        """Return what the card says of the weights' precision; a run in full precision says what it always said."""
        rounded = {} if self._quantize is None else {"quantize": self._quantize}
        return {"dtype": self._options.dtype, **rounded}

    def _round_weights(self, prompts: Sequence[Prompt]) -> None:
        """Quantise the weights, and measure on a sample of the prompts what that changes."""
        sample = choose_sample(prompts, self._options.quantize_sample)
        items = [self._encode(prompt) for prompt in sample]
        fitting = [place for place, item in enumerate(items) if self._window is None or longest(item) <= self._window]
        kind = self._quantize or "int8"
        before = self._sampled([items[place] for place in fitting])
        for network in self._networks():
            quantise(network, self.card.address, kind)
        after = self._sampled([items[place] for place in fitting])
        self._rounding = describe_change([sample[place] for place in fitting], before, after, self.card.address, kind)

    def _sampled(self, items: list[Item]) -> list[float | None]:
        found = {scored.position: scored.score for scored in self._score_items(items)}
        return [found[place] for place in range(len(items))]

    def _rate_chunk(self, items: dict[int, Item]) -> Iterator[tuple[int, Outcome]]:
        fitting = []
        for index, item in items.items():
            size = longest(item)
            if self._window is not None and size > self._window:
                reason = f"prompt of {size} tokens exceeds the window of {self._window}"
                yield index, Outcome.invalid(reason, tokens_in=size)
            else:
                fitting.append(index)
        for scored in self._score_items([items[index] for index in fitting]):
            index = fitting[scored.position]
            item = items[index]
            tokens = sum(len(encoding.ids) for encoding in item)
            if scored.score is None:
                outcome = Outcome.failed(f"out of memory on a prompt of {longest(item)} tokens", tokens_in=tokens)
            else:
                outcome = Outcome.scored(scored.score, tokens_in=tokens, latency_ms=scored.latency_ms)
            yield index, outcome


class PrefixRater(LocalRater):
    """A rater whose models are read through shared prefixes; subclasses say what is read from the logits.

    Args:
        options: Device, precision, budget, template.
        window: The most tokens a prompt may have, unless the options say otherwise.
        shared: False computes every prompt in full, for comparison; scores are the same.
    """

    def __init__(self, options: ModelOptions, window: int | None, *, shared: bool = True) -> None:
        super().__init__(options, window)
        self._shared = shared

    @property
    def effort(self) -> Effort:
        """Effort of scoring so far; asking loads no weights."""
        scorers = self._scorers if "_scorers" in self.__dict__ else ()
        return sum((scorer.effort for scorer in scorers), self._plain_effort)

    @property
    def peak_flops(self) -> float | None:
        """Operations per second of a matrix product here, as this model makes it; None before weights are loaded."""
        return matmul_peak(self._scorers[0].model) if "_scorers" in self.__dict__ else None

    @property
    @abstractmethod
    def _scorers(self) -> tuple[PrefixScorer, ...]:
        """One per model behind a score; asked for once the weights are loaded."""

    @abstractmethod
    def _requests(self, item: Item) -> tuple[LogitRequest, ...]:
        """Return what each of the scorers is to read."""

    @abstractmethod
    def _score(self, values: tuple[tuple[float, ...], ...]) -> float:
        """One score from what each of the scorers read."""

    def _networks(self) -> Sequence[Any]:
        return [scorer.model for scorer in self._scorers]

    def _notes(self) -> Iterator[str]:
        yield from dict.fromkeys(scorer.note for scorer in self._scorers if scorer.note is not None)
        yield from super()._notes()

    def _score_items(self, items: list[Item]) -> Iterator[Scored]:
        """Score all items, in any order."""
        requests = [self._requests(item) for item in items]
        *earlier, last = [
            scorer.read([request[side] for request in requests]) for side, scorer in enumerate(self._scorers)
        ]
        known = [{reading.request: reading for reading in readings} for readings in earlier]
        for reading in last:
            sides = [*(side[reading.request] for side in known), reading]
            values = tuple(side.values for side in sides if side.values is not None)
            score = self._score(values) if len(values) == len(sides) else None
            yield Scored(reading.request, score, sum(side.latency_ms for side in sides))


def chunks(prompts: Sequence[Prompt]) -> list[list[int]]:
    """Put prompts that begin alike into the same chunk, and the chunk with the longest prompt first.

    Example:
        >>> prompts = [Prompt((Message("user", text),)) for text in ("tea", "a long question", "tea?")]
        >>> chunks(prompts)
        [[1, 0, 2]]
    """
    order = sorted(range(len(prompts)), key=lambda index: [message.content for message in prompts[index].messages])
    chunks = [order[start : start + _CHUNK] for start in range(0, len(order), _CHUNK)]
    # What does not fit into memory then fails at the start of a run, not in its last minute.
    return sorted(chunks, key=lambda chunk: -max(_characters(prompts[index]) for index in chunk))


def _characters(prompt: Prompt) -> int:
    return sum(len(message.content) for message in prompt.messages)
