"""What raters with local weights have in common: one template, one way of tokenising, one loop over batches.

A prompt that is longer than the window is never cut; it is yielded as invalid, with both numbers (defect D10).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from prbench.models._batching import Item, longest, score_all
from prbench.models.registry import ModelOptions
from prbench.prompts.template import Template
from prbench.types import AnswerView, Message, Outcome, Prompt

_CHUNK = 512
"""Views tokenised ahead of scoring: enough for even batches, few enough that the first score comes at once."""


class LocalRater(ABC):
    """Rates with weights on this machine. Subclasses say how a prompt is encoded and how a batch is scored."""

    def __init__(self, options: ModelOptions, window: int | None) -> None:
        self._options = options
        self._template = Template.load(options.template, "turn", "turn.jinja")
        self._window = options.window or window

    @property
    def window(self) -> int | None:
        """The most tokens a prompt may have."""
        return self._window

    def render(self, view: AnswerView) -> Prompt:
        """The user's posts, plan and question as one user turn, the answer as the assistant's turn."""
        return Prompt((Message("user", self._template.render(view)), Message("assistant", view.answer)))

    def length(self, prompt: Prompt) -> int:
        """Tokens that this prompt takes, special tokens included."""
        return longest(self._encode(prompt))

    def rate(self, views: Sequence[AnswerView]) -> Iterator[tuple[int, Outcome]]:
        """Score each view, longest first, batch by batch; loads the weights if `prepare` has not."""
        self.prepare()
        prompts = [self.render(view) for view in views]
        order = sorted(range(len(prompts)), key=lambda index: -_characters(prompts[index]))
        for start in range(0, len(order), _CHUNK):
            chunk = order[start : start + _CHUNK]
            yield from self._rate_chunk({index: self._encode(prompts[index]) for index in chunk})

    @abstractmethod
    def prepare(self) -> None:
        """Load and check the weights, so that a model that cannot score is refused before the first call."""

    @abstractmethod
    def _encode(self, prompt: Prompt) -> Item: ...

    @abstractmethod
    def _forward(self, batch: list[Item]) -> list[float]: ...

    def _rate_chunk(self, items: dict[int, Item]) -> Iterator[tuple[int, Outcome]]:
        fitting = []
        for index, item in items.items():
            size = longest(item)
            if self._window is not None and size > self._window:
                reason = f"prompt of {size} tokens exceeds the window of {self._window}"
                yield index, Outcome.invalid(reason, tokens_in=size)
            else:
                fitting.append(index)
        for scored in score_all([items[index] for index in fitting], self._forward, self._options.batch_tokens):
            index = fitting[scored.position]
            item = items[index]
            tokens = sum(len(encoding.ids) for encoding in item)
            if scored.score is None:
                outcome = Outcome.failed(f"out of memory on a prompt of {longest(item)} tokens", tokens_in=tokens)
            else:
                outcome = Outcome.scored(scored.score, tokens_in=tokens, latency_ms=scored.latency_ms)
            yield index, outcome


def _characters(prompt: Prompt) -> int:
    return sum(len(message.content) for message in prompt.messages)
