"""`lm:NAME`: a local language model whose grades are read from its logits, since small models fail when asked to write.

For each aspect the expectation of 0, 1 and 2 under the weights of these digits as the first token of the reply. With
`#contrast` the digits' log-weights for an answer that says nothing are taken off first: what a model would reply to
any answer is no grade of this one.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise, takewhile
from typing import Literal, NamedTuple, get_args

from prbench.config import ModelOptions
from prbench.errors import AddressError, did_you_mean
from prbench.graders.protocol import Grade, Grading
from prbench.models import ModelCard
from prbench.models.local.lm import LanguageModel, LogitRequest, Reading, last_logits, log_sum, open_named
from prbench.prompts.grades import ONE_ASPECT, ask_grade
from prbench.types import Aspect, Prompt

Mode = Literal["plain", "contrast"]
DIGITS = ("0", "1", "2")
NOTHING = "I cannot say anything about that."
"""The answer that grades are held against under `#contrast`."""
_CHUNK = 128
"""Gradings read together: enough that what they share is computed once, few enough to keep what was read."""


class LogitJudge:
    """Grades by the weights of the digits 0, 1 and 2.

    Args:
        model: The language model; its weights are loaded when it is first asked.
        mode: Whether the digits' weights for an answer that says nothing are taken off.
    """

    def __init__(self, model: LanguageModel, mode: Mode = "plain") -> None:
        self._model = model
        self._mode = mode
        self._digits = model.reply_tokens(DIGITS)

    @classmethod
    def load(cls, rest: str, options: ModelOptions) -> "LogitJudge":
        """Open the model behind `lm:REST`; reads no weights yet."""
        name, mode = _parse(rest)
        return cls(LanguageModel(open_named(name, f"lm:{name}"), options), mode)

    @cached_property
    def card(self) -> ModelCard:
        """Description of the judge, with everything that could change a grade."""
        checkpoint = self._model.checkpoint
        return ModelCard(
            address=f"{checkpoint.address}#{self._mode}",
            revision=checkpoint.revision,
            parameters={"mode": f"grade {self._mode}", "template": ONE_ASPECT.digest[:12], **self._model.parameters},
            reusable=bool(checkpoint.revision),
        )

    def refuses(self, grading: Grading) -> str | None:
        """A rubric without aspects, a prompt longer than the window: nothing is ever cut."""
        return self._unfit(self._requests(grading))

    def forecast(self, gradings: Sequence[Grading]) -> int:
        """Tokens to read: what prompts begin with in common counts once."""
        return _distinct_tokens(request.ids for grading in set(gradings) for request in self._requests(grading))

    def render(self, grading: Grading, aspect: Aspect) -> Prompt:
        """Exactly what the model receives for one aspect."""
        return ask_grade(grading.question, grading.answer, aspect)

    def grade(self, gradings: Sequence[Grading]) -> Iterator[tuple[int, Grade]]:
        """Grade each; what prompts have in common is read once."""
        order = sorted(range(len(gradings)), key=lambda place: (gradings[place].question, str(gradings[place].aspects)))
        for start in range(0, len(order), _CHUNK):
            yield from self._grade_chunk(gradings, order[start : start + _CHUNK])

    def _grade_chunk(self, gradings: Sequence[Grading], places: Sequence[int]) -> Iterator[tuple[int, Grade]]:
        asked: list[tuple[int, LogitRequest]] = []
        for place in places:
            requests = self._requests(gradings[place])
            if reason := self._unfit(requests):
                yield place, Grade.invalid(reason)
            else:
                asked += [(place, request) for request in requests]
        waiting = Counter(place for place, _ in asked)
        found: dict[int, dict[int, Reading]] = defaultdict(dict)
        for reading in self._model.scorer.read([request for _, request in asked]):
            place = asked[reading.request][0]
            found[place][reading.request] = reading
            if len(found[place]) == waiting[place]:
                readings = [reading for _, reading in sorted(found.pop(place).items())]
                yield place, self._grade(readings, sum(len(asked[reading.request][1].ids) for reading in readings))

    def _requests(self, grading: Grading) -> list[LogitRequest]:
        """Return one request per aspect; under `#contrast` those for the answer that says nothing come after them."""
        answers = [grading.answer, *([NOTHING] if self._mode == "contrast" else [])]
        columns = [token for tokens in self._digits for token in tokens]
        shown = [Grading(grading.question, answer, grading.aspects) for answer in answers]
        return [
            last_logits(self._model.encoder.encode(self.render(view, aspect)).ids, columns)
            for view in shown
            for aspect in view.aspects
        ]

    def _unfit(self, requests: Sequence[LogitRequest]) -> str | None:
        size, window = max((len(request.ids) for request in requests), default=0), self._model.window
        if not requests:
            return "the rubric has no aspects"
        return f"prompt of {size} tokens exceeds the window of {window}" if window and size > window else None

    def _grade(self, readings: Sequence[Reading], tokens: int) -> Grade:
        weights = [self._log_weights(reading.values) for reading in readings if reading.values is not None]
        if len(weights) < len(readings):
            return Grade.failed(f"out of memory on prompts of {tokens} tokens", tokens_in=tokens)
        if self._mode == "contrast":
            half = len(weights) // 2
            weights = [_less(own, nothing) for own, nothing in zip(weights[:half], weights[half:], strict=True)]
        values = [_expectation(row) for row in weights]
        usage = {"tokens_in": tokens, "latency_ms": sum(reading.latency_ms for reading in readings)}
        if not all(map(math.isfinite, values)):
            return Grade.invalid(f"the digits' logits give {values}", **usage)
        return Grade.given(values, **usage)

    def _log_weights(self, logits: Sequence[float]) -> list[float]:
        """Per digit, the log of the summed weights of its tokens."""
        remaining = iter(logits)
        return [log_sum([next(remaining) for _ in tokens]) for tokens in self._digits]


class _Address(NamedTuple):
    name: str
    mode: Mode


def _parse(rest: str) -> _Address:
    name, mark, mode = rest.rpartition("#")
    if not mark:
        name, mode = rest, "plain"
    if not name:
        raise AddressError("'lm:' names no model", hint="for example lm:smollm2, lm:DIR or lm:FILE.gguf")
    for known in get_args(Mode):
        if mode == known:
            return _Address(name, known)
    raise AddressError(f"unknown mode {mode!r} of judge 'lm:{rest}'", hint=did_you_mean(mode, get_args(Mode)))


def _less(own: Sequence[float], nothing: Sequence[float]) -> list[float]:
    return [one - other for one, other in zip(own, nothing, strict=True)]


def _expectation(log_weights: Sequence[float]) -> float:
    """Mean of 0, 1, 2 under weights given by their logs.

    Example:
        >>> _expectation([0.0, 0.0, 0.0])
        1.0
    """
    total = log_sum(log_weights)
    mean = math.fsum(number * math.exp(weight - total) for number, weight in enumerate(log_weights))
    return min(max(mean, 0.0), 2.0)


def _distinct_tokens(prompts: Iterable[Sequence[int]]) -> int:
    """Tokens of all prompts, each without what it shares with its neighbour in sorted order.

    Example:
        >>> _distinct_tokens([[1, 2, 3], [1, 2, 4], [1, 2, 3]])
        4
    """
    ordered = sorted(map(tuple, prompts))
    shared = (takewhile(lambda both: both[0] == both[1], zip(*two, strict=False)) for two in pairwise(ordered))
    return sum(map(len, ordered)) - sum(1 for beginning in shared for _ in beginning)
