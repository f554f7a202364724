"""`lm:smollm2`, `lm:DIR`, `lm:FILE.gguf`, `lm:ORG/NAME`: a causal language model on this machine, in five modes.

`#compare` (the default) reads the logits of the letters A and B after a judge's prompt; `#rate` the expectation of a
digit from 1 to 5; `#loglik` how likely the answer is, per token; `#pmi` how much likelier the user's posts and plan
make it than those of nobody in particular, which is 0 where neither is shown; `#yes-no` the log-odds of Yes against No,
as generative reward models are read. All are read from logits: no reply can be
unreadable. A prompt longer than the window is never cut; it is invalid.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple, get_args

from prbench.config import ModelOptions
from prbench.errors import AddressError, did_you_mean
from prbench.models.effort import Effort
from prbench.models.lists import rank_by_comparisons
from prbench.models.local.checkpoint import Checkpoint
from prbench.models.local.generate import LanguageModelGenerator
from prbench.models.local.hidden import HiddenStates
from prbench.models.local.language_model import LanguageModel, open_named
from prbench.models.local.prefix import LogitRequest, Reading, last_logits, log_likelihood
from prbench.models.local.rater import chunks
from prbench.models.protocols import ModelCard
from prbench.prompts import Template
from prbench.prompts.neutral import as_anybody
from prbench.prompts.turns import conversation, judged_conversation, last_turn
from prbench.types import AnswerView, ListView, Message, Outcome, PairView, Prompt

__all__ = [
    "DigitRater",
    "InformationRater",
    "LanguageModel",
    "LetterComparer",
    "LikelihoodRater",
    "LogitRequest",
    "PreferenceLetters",
    "Reading",
    "YesNoRater",
    "last_logits",
    "load",
    "load_encoder",
    "load_generator",
    "log_sum",
    "open_named",
]

Mode = Literal["compare", "loglik", "pmi", "rate", "yes-no"]
ANYBODY = "anybody in the user's place"
"""Role of the turn against which `#pmi` holds the user's own."""


def load(
    rest: str, options: ModelOptions
) -> "LetterComparer | LikelihoodRater | InformationRater | DigitRater | YesNoRater":
    """Open the model behind `lm:REST`; pulls a named one on first use, reads no weights yet.

    Example:
        >>> load("smollm2#vote", ModelOptions())
        Traceback (most recent call last):
        prbench.errors.AddressError: unknown mode 'vote' in 'lm:smollm2#vote'
        <BLANKLINE>
        hint: known: compare, loglik, pmi, rate, yes-no
    """
    name, mode = _parse(rest)
    model = LanguageModel(_opened(name, options), options)
    kinds = {kind.mode: kind for kind in (LetterComparer, LikelihoodRater, InformationRater, DigitRater, YesNoRater)}
    return kinds[mode](model)


def load_generator(rest: str, options: ModelOptions) -> LanguageModelGenerator:
    """Open the model behind `lm:REST` as a writer; a mode in the address is ignored."""
    name, _ = _parse(rest)
    return LanguageModelGenerator(LanguageModel(_opened(name, options), options))


def load_encoder(rest: str, options: ModelOptions) -> HiddenStates:
    """Open the model behind `lm:REST` as a frozen encoder; a mode in the address is ignored."""
    name, _ = _parse(rest)
    return HiddenStates(_opened(name, options), options)


def _opened(name: str, options: ModelOptions) -> Checkpoint:
    return open_named(name, f"lm:{name}", trust=options.trust_remote_code)


def _parse(rest: str) -> tuple[str, Mode]:
    name, mark, mode = rest.rpartition("#")
    if not mark or Path(rest).expanduser().exists():
        name, mode = rest, "compare"
    if not name:
        raise AddressError("'lm:' names no model", hint="for example lm:smollm2, lm:DIR or lm:ORG/NAME")
    for known in get_args(Mode):
        if mode == known:
            return name, known
    raise AddressError(f"unknown mode {mode!r} in 'lm:{rest}'", hint=did_you_mean(mode, get_args(Mode)))


class _LogitReader:
    """What all modes share: a template, one way of asking for logits, one loop over prompts."""

    mode: ClassVar[Mode]

    def __init__(self, model: LanguageModel, template: Template, fragment: str | None = None) -> None:
        self._model = model
        self._template = template
        self._fragment = fragment or self.mode

    @cached_property
    def card(self) -> ModelCard:
        """Who answers, with everything that could change an answer."""
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
        """What a user should know about how this model is run; loads the weights."""
        return self._model.note

    @property
    def effort(self) -> Effort:
        """What reading took so far: tokens, operations, time."""
        return self._model.effort

    @property
    def peak_flops(self) -> float | None:
        """Operations per second of a matrix product on this machine, as this model makes it."""
        return self._model.peak_flops

    def length(self, prompt: Prompt) -> int:
        """Tokens that this prompt takes, special tokens included."""
        return len(self._model.encoder.encode(_conversation(prompt)).ids)

    def written_out(self, prompt: Prompt) -> str:
        """The prompt as one text, with the special tokens of the chat template."""
        return self._model.encoder.written_out(_conversation(prompt))

    def prepare(self) -> None:
        """Load the weights."""
        _ = self._model.scorer

    computes_once: ClassVar[Literal["prefixes"]] = "prefixes"
    """What several prompts share and is computed once."""

    def parameter_count(self) -> int:
        """Parameters of the model, from its config alone."""
        return self._model.parameter_count()

    def foreseen_seconds(self, tokens: int, length: int) -> float:
        """What computing so many tokens of prompts of this length would take here."""
        return self._model.foreseen_seconds(tokens, length)

    @abstractmethod
    def _requests(self, prompt: Prompt) -> tuple[LogitRequest, ...]:
        """What to read for a prompt; nothing where the answer is known without the model."""

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


class LetterComparer(_LogitReader):
    """Judges by the log-odds of the letters A and B as the first token of the reply."""

    mode = "compare"
    template = "judge_letters.jinja"

    def __init__(self, model: LanguageModel, fragment: str | None = None) -> None:
        super().__init__(model, Template.load(model.options.template, "compare", self.template), fragment)
        self._letters = model.reply_tokens(("A", "B"))

    def render(self, view: PairView) -> Prompt:
        """Posts, plan, question and both answers as one user turn."""
        return Prompt(judged_conversation(self._template, view))

    def compare(self, views: Sequence[PairView]) -> Iterator[tuple[int, Outcome]]:
        """Judge each view; the margin is log p(A) - log p(B)."""
        return self._read([self.render(view) for view in views])

    def _requests(self, prompt: Prompt) -> tuple[LogitRequest, ...]:
        return (_reply_request(self._model, prompt, self._letters),)

    def _outcome(self, values: list[tuple[float, ...]], usage: dict[str, float]) -> Outcome:
        first, second = _log_weights(values[0], self._letters)
        margin = first - second
        return Outcome.judged("first" if margin > 0 else "second" if margin < 0 else "tie", margin, **usage)


class PreferenceLetters(LetterComparer):
    """A pair-preference model: trained to reply with the letter of the better answer, in its own layout.

    The layout is that of RLHFlow's pair-preference models; `--template` gives another.
    """

    template = "pair_preference.jinja"

    def __init__(self, model: LanguageModel) -> None:
        super().__init__(model, "read=letters")

    def rank(self, views: Sequence[ListView]) -> Iterator[tuple[int, tuple[Outcome, ...]]]:
        """Score the answers of each list by their mean margin over all others, both ways round."""
        return rank_by_comparisons(self, views)


class DigitRater(_LogitReader):
    """Rates by the expectation of the digits 1 to 5 as the first token of the reply."""

    mode = "rate"

    def __init__(self, model: LanguageModel) -> None:
        super().__init__(model, Template.load(model.options.template, "rate", "judge_digits.jinja"))
        self._digits = model.reply_tokens(("1", "2", "3", "4", "5"))

    def render(self, view: AnswerView) -> Prompt:
        """Posts, plan, question and the answer as one user turn."""
        return Prompt(judged_conversation(self._template, view))

    def rate(self, views: Sequence[AnswerView]) -> Iterator[tuple[int, Outcome]]:
        """Rate each view from 1 to 5."""
        return self._read([self.render(view) for view in views])

    def _requests(self, prompt: Prompt) -> tuple[LogitRequest, ...]:
        return (_reply_request(self._model, prompt, self._digits),)

    def _outcome(self, values: list[tuple[float, ...]], usage: dict[str, float]) -> Outcome:
        return Outcome.scored(_expectation(_log_weights(values[0], self._digits)), **usage)


class YesNoRater(_LogitReader):
    """Rates by the log-odds of Yes against No as the first token of the reply, as generative reward models are read."""

    mode = "yes-no"

    def __init__(self, model: LanguageModel, fragment: str | None = None) -> None:
        super().__init__(model, Template.load(model.options.template, "rate", "judge_yes_no.jinja"), fragment)
        self._words = model.reply_tokens(("Yes", "No"))

    def render(self, view: AnswerView) -> Prompt:
        """Posts, plan, question and the answer as one user turn."""
        return Prompt(judged_conversation(self._template, view))

    def rate(self, views: Sequence[AnswerView]) -> Iterator[tuple[int, Outcome]]:
        """Score each view."""
        return self._read([self.render(view) for view in views])

    def _requests(self, prompt: Prompt) -> tuple[LogitRequest, ...]:
        return (_reply_request(self._model, prompt, self._words),)

    def _outcome(self, values: list[tuple[float, ...]], usage: dict[str, float]) -> Outcome:
        yes, no = _log_weights(values[0], self._words)
        return Outcome.scored(yes - no, **usage)


class LikelihoodRater(_LogitReader):
    """Rates by the mean log-likelihood of the answer's tokens after posts, plan and question."""

    mode: ClassVar[Mode] = "loglik"

    def __init__(self, model: LanguageModel) -> None:
        super().__init__(model, Template.load(model.options.template, "turn", "turn.jinja"))

    def render(self, view: AnswerView) -> Prompt:
        """The user's posts, plan and question as one user turn, the answer as the assistant's turn."""
        return Prompt((*conversation(self._template, view), Message("assistant", view.answer)))

    def rate(self, views: Sequence[AnswerView]) -> Iterator[tuple[int, Outcome]]:
        """Score each view."""
        return self._read([self.render(view) for view in views])

    def _requests(self, prompt: Prompt) -> tuple[LogitRequest, ...]:
        encoding = self._model.encoder.encode_answer(prompt)
        return (log_likelihood(encoding.ids, encoding.answer_start, len(encoding.ids) - self._model.closing_tokens),)

    def _outcome(self, values: list[tuple[float, ...]], usage: dict[str, float]) -> Outcome:
        if not values[0]:
            return Outcome.invalid("the answer has no tokens", **usage)
        return Outcome.scored(math.fsum(values[0]) / len(values[0]), **usage)


class InformationRater(LikelihoodRater):
    """Rates by how much likelier this user's posts and plan make the answer than anybody's: information, per token."""

    mode = "pmi"

    def render(self, view: AnswerView) -> Prompt:
        """As for the likelihood, and the same turn with neutral posts and plan in the place of the user's."""
        anybody = self._template.render(last_turn(as_anybody(view)))
        return Prompt((*super().render(view).messages, Message(ANYBODY, anybody)))

    def _requests(self, prompt: Prompt) -> tuple[LogitRequest, ...]:
        *earlier, turn, answer, anybody = prompt.messages
        if turn.content == anybody.content:
            return ()
        own = Prompt((*earlier, turn, answer))
        neutral = Prompt((*earlier, Message("user", anybody.content), answer))
        return (*super()._requests(own), *super()._requests(neutral))

    def _outcome(self, values: list[tuple[float, ...]], usage: dict[str, float]) -> Outcome:
        if not values:
            return Outcome.scored(0.0, **usage)
        if not all(values):
            return Outcome.invalid("the answer has no tokens", **usage)
        own, neutral = (math.fsum(part) / len(part) for part in values)
        return Outcome.scored(own - neutral, **usage)


def _conversation(prompt: Prompt) -> Prompt:
    return Prompt(tuple(message for message in prompt.messages if message.role != ANYBODY))


def _reply_request(model: LanguageModel, prompt: Prompt, words: Sequence[Sequence[int]]) -> LogitRequest:
    return last_logits(model.encoder.encode(prompt).ids, [token for tokens in words for token in tokens])


def _log_weights(values: Sequence[float], words: Sequence[Sequence[int]]) -> list[float]:
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


def _expectation(log_weights: Sequence[float]) -> float:
    """Mean of 1, 2, 3 … under weights given by their logs.

    Example:
        >>> _expectation([0.0, 0.0, 0.0])
        2.0
    """
    total = log_sum(log_weights)
    return math.fsum(number * math.exp(weight - total) for number, weight in enumerate(log_weights, start=1))
