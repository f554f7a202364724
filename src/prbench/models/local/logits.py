"""One loop over prompts for all ways in which a local language model is read: from logits, never from its words."""

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple

from prbench.models.effort import Effort
from prbench.models.local.language_model import LanguageModel
from prbench.models.local.prefix import LogitRequest, Reading, last_logits
from prbench.models.local.rater import chunks
from prbench.models.protocols import ModelCard
from prbench.prompts import Template
from prbench.types import Outcome, Prompt

ANYBODY = "anybody in the user's place"
"""Role of the turn against which `#pmi` holds the user's own."""


class LogitReader:
    """Base of all modes: a template, one way of asking for logits, one loop over prompts."""

    mode: ClassVar[str]

    def __init__(self, model: LanguageModel, template: Template, fragment: str | None = None) -> None:
        self._model = model
        self._template = template
        self._fragment = fragment or self.mode

    @cached_property
    def card(self) -> ModelCard:
        """Description of the model, with everything that could change an answer."""
        checkpoint = self._model.checkpoint
        return ModelCard(
            address=f"{checkpoint.address}#{self._fragment}",
            revision=checkpoint.revision,
            reads=self._template.reads,
            parameters={"mode": self.mode, "template": self._template.digest, **self._model.parameters},
            reusable=bool(checkpoint.revision),
        )

    @property
    def window(self) -> int | None:
        """The most tokens a prompt may have."""
        return self._model.window

    @property
    def note(self) -> str | None:
        """Note that a user should know about how this model is run; loads the weights."""
        return self._model.note

    @property
    def effort(self) -> Effort:
        """Effort of reading so far: tokens, operations, time."""
        return self._model.effort

    @property
    def peak_flops(self) -> float | None:
        """Operations per second of a matrix product on this machine, as this model makes it."""
        return self._model.peak_flops

    def length(self, prompt: Prompt) -> int:
        """Tokens that this prompt takes, special tokens included."""
        return self._model.encoder.length(_conversation(prompt))

    def written_out(self, prompt: Prompt) -> str:
        """The prompt as one text, with the special tokens of the chat template."""
        return self._model.encoder.written_out(_conversation(prompt))

    def prepare(self) -> None:
        """Load the weights of the model."""
        _ = self._model.scorer

    computes_once: ClassVar[Literal["prefixes"]] = "prefixes"
    """Part that several prompts share and that is computed once."""

    def parameter_count(self) -> int:
        """Parameters of the model, from its config alone."""
        return self._model.parameter_count()

    def foreseen_seconds(self, tokens: int, length: int) -> float:
        """Return the seconds that so many tokens of prompts of this length would take here."""
        return self._model.foreseen_seconds(tokens, length)

    @abstractmethod
    def _requests(self, prompt: Prompt) -> tuple[LogitRequest, ...]:
        """Return the logits to read for a prompt; none where the answer is known without the model."""

    @abstractmethod
    def _outcome(self, values: list[tuple[float, ...]], usage: dict[str, float]) -> Outcome:
        """Turn what was read, request by request, into an outcome."""

    def _read(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Outcome]]:
        """Ask for many prompts at once, so that whatever they have in common is computed once."""
        self.prepare()
        for chunk in chunks(prompts):
            asked = {index: self._requests(prompts[index]) for index in chunk}
            yield from self._read_chunk(asked)

    def _read_chunk(self, asked: dict[int, tuple[LogitRequest, ...]]) -> Iterator[tuple[int, Outcome]]:
        open_calls: dict[int, _OpenCall] = {}
        for index, requests in asked.items():
            size = max((len(request.ids) for request in requests), default=0)
            if self.window is not None and size > self.window:
                reason = f"prompt of {size} tokens exceeds the window of {self.window}"
                yield index, Outcome.invalid(reason, tokens_in=size)
            elif not requests:
                yield index, self._outcome([], {})
            else:
                open_calls[index] = _OpenCall([None] * len(requests), sum(len(request.ids) for request in requests))
        owners = [(index, place) for index in open_calls for place in range(len(asked[index]))]
        for reading in self._model.scorer.read([asked[index][place] for index, place in owners]):
            index, place = owners[reading.request]
            open_calls[index].readings[place] = reading
            if None not in open_calls[index].readings:
                yield index, self._finish(open_calls.pop(index))

    def _finish(self, call: "_OpenCall") -> Outcome:
        readings = [reading for reading in call.readings if reading is not None]
        values = [reading.values for reading in readings if reading.values is not None]
        if len(values) < len(readings):
            return Outcome.failed(f"out of memory on a prompt of {call.tokens} tokens", tokens_in=call.tokens)
        latency_ms = sum(reading.latency_ms for reading in readings)
        return self._outcome(values, {"tokens_in": call.tokens, "latency_ms": latency_ms})


class _OpenCall(NamedTuple):
    readings: list[Reading | None]
    tokens: int


def _conversation(prompt: Prompt) -> Prompt:
    return Prompt(tuple(message for message in prompt.messages if message.role != ANYBODY))


def reply_request(model: LanguageModel, prompt: Prompt, words: Sequence[Sequence[int]]) -> LogitRequest:
    """The logits of these words' tokens as the first of a reply."""
    return last_logits(model.encoder.encode(prompt).ids, [token for tokens in words for token in tokens])


def log_weights(values: Sequence[float], words: Sequence[Sequence[int]]) -> list[float]:
    """Per word, the log of the summed weights of its tokens; `values` are their logits, one word after the other."""
    remaining = iter(values)
    return [log_sum([next(remaining) for _ in tokens]) for tokens in words]


def log_sum(values: Sequence[float]) -> float:
    """The log of a sum of numbers that are given by their logs.

    Example:
        >>> round(math.exp(log_sum([math.log(0.25), math.log(0.5)])), 6)
        0.75
    """
    top = max(values)
    return top + math.log(math.fsum(math.exp(value - top) for value in values))
