"""Replies: requests go to a model that writes, what it replies is read strictly and kept in a journal.

A reply that cannot be read is asked for again with another seed, up to a number of tries; after that it is a rejection
with its reason. A request that was not answered is neither: the journal keeps what came, and the same command goes on
from there. Equal requests are sent once. What is in the journal costs nothing, so a finished build can be repeated.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, NamedTuple, Self, TypeVar

from pydantic import Field

from prbench.build.written.cleaning import clean
from prbench.build.written.journal import ReplyLine, total
from prbench.calls import Budget, Journal, ProgressLine, in_chunks
from prbench.config import digest
from prbench.errors import ModelError
from prbench.models import Generator, Windowed
from prbench.prompts import UnreadableReply
from prbench.types import Frozen, Outcome, Prompt

T = TypeVar("T")
_DEAD = 20
"""Number of requests in a row without an answer after which the server is gone, and nothing more is asked of it."""
_RETRY_TEMPERATURE = 0.7


class Decoding(Frozen):
    """Settings for asking for texts."""

    max_tokens: int = Field(default=1024, ge=1)
    temperature: float = Field(default=0.0, ge=0)
    """Temperature of the first try; later tries sample at 0.7 at least, or a model would say the same again."""
    seed: int = 0
    """Seed of the first try; later tries count up from it."""
    tries: int = Field(default=3, ge=1)

    def attempt(self, number: int) -> dict[str, Any]:
        """The parameters of one try."""
        temperature = max(self.temperature, _RETRY_TEMPERATURE) if number else self.temperature
        return {"max_tokens": self.max_tokens, "temperature": temperature, "seed": self.seed + number}


class WritingRequest(NamedTuple, Generic[T]):
    """Request to a model, and the way its reply is read."""

    prompt: Prompt
    read: Callable[[str], T | UnreadableReply]


class Rejection(NamedTuple):
    """A request without a usable reply, and why."""

    reason: str
    raw: str = ""
    """The last reply, where there was one."""


class SpendingLimits(Frozen):
    """Limits at which a build stops."""

    max_cost_usd: float | None = None
    skip_failed: bool = False
    """Whether a request that was not answered becomes a rejection; else the build stops and can be continued."""


class Replies:
    """The replies of one model to the requests of a build: asked for where they are missing. Use in a `with` block.

    Args:
        generator: Model that writes.
        journal: Append-only JSONL of all replies.
        decoding: Settings for asking for texts.
        skip_failed: Whether a request that was not answered becomes a rejection.
        say: Told now and then how far it is.
    """

    def __init__(
        self,
        generator: Generator,
        journal: Path,
        decoding: Decoding,
        *,
        skip_failed: bool = False,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._generator = generator
        self._journal = Journal(journal, ReplyLine, lambda line: line.key, shared=True)
        self._decoding = decoding
        self._skip_failed = skip_failed
        self.budget = Budget()
        """Counts what is spent, and stops at its limit."""
        self._say = say
        self._used: dict[str, ReplyLine] = {}
        self._failures: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._journal.__exit__(kind, error, trace)

    @property
    def cost_usd(self) -> float:
        """Return the cost of all replies that are kept, in this start and in earlier ones."""
        return total(self._calls.values()).cost_usd

    @property
    def _calls(self) -> Mapping[str, ReplyLine]:
        return self._journal.answers

    @property
    def used(self) -> dict[str, ReplyLine]:
        """The replies that this build rests on, wherever they came from; in the order of their keys."""
        return dict(sorted(self._used.items()))

    def lines(self) -> list[str]:
        """The whole journal, in the order of the keys: the same replies give the same lines, whenever they came."""
        return self._journal.lines()

    def room(self, prompt: Prompt) -> int | None:
        """Tokens left in the model's window once prompt and reply are in it; None where there is no known window."""
        model = self._generator
        if not isinstance(model, Windowed) or model.window is None:
            return None
        return model.window - model.length(prompt) - self._decoding.max_tokens

    def ask(self, what: str, requests: Mapping[str, WritingRequest[T]]) -> dict[str, T | Rejection]:
        """Get every request answered, or rejected with a reason.

        Raises:
            ModelError: If requests were not answered at all; what was answered is kept.
            BudgetError: If as much as allowed is spent; what was answered is kept.
        """
        found: dict[str, T | Rejection] = {}
        left = dict(requests)
        for attempt in range(self._decoding.tries):
            self._fetch(what, left, attempt)
            for name, request in list(left.items()):
                result = self._read(request, attempt)
                unanswered = self._key(request.prompt, attempt) not in self._calls
                if not isinstance(result, Rejection) or unanswered or attempt + 1 == self._decoding.tries:
                    found[name] = result
                    del left[name]
        return {name: found[name] for name in requests}

    def missing(self, requests: Mapping[str, WritingRequest[Any]]) -> list[Prompt]:
        """The first tries that are not in the journal yet: what a forecast counts."""
        keyed = {self._key(request.prompt, 0): request.prompt for request in requests.values()}
        return [prompt for key, prompt in keyed.items() if key not in self._calls]

    def known(self, requests: Mapping[str, WritingRequest[T]]) -> dict[str, T | Rejection]:
        """Return what `ask` would find without asking: requests that the journal answers, or has rejected for good."""
        found: dict[str, T | Rejection] = {}
        for name, request in requests.items():
            for attempt in range(self._decoding.tries):
                if self._key(request.prompt, attempt) not in self._calls:
                    break
                result = self._read(request, attempt)
                if not isinstance(result, Rejection) or attempt + 1 == self._decoding.tries:
                    found[name] = result
                    break
        return found

    def _read(self, request: WritingRequest[T], attempt: int) -> T | Rejection:
        key = self._key(request.prompt, attempt)
        call = self._calls.get(key)
        if call is None:
            return Rejection(f"no answer: {self._failures.get(key, 'not asked')}")
        self._used[key] = call
        if call.status != "ok" or call.reason:
            return Rejection(call.reason or call.status, call.text)
        value = request.read(clean(call.text))
        return Rejection(value.reason, call.text) if isinstance(value, UnreadableReply) else value

    def _key(self, prompt: Prompt, attempt: int) -> str:
        who = list(self._generator.card.identity.values())
        return digest([who, self._decoding.attempt(attempt), prompt.messages])[:32]

    def _fetch(self, what: str, requests: Mapping[str, WritingRequest[Any]], attempt: int) -> None:
        keyed = {self._key(request.prompt, attempt): request.prompt for request in requests.values()}
        asked = {key: prompt for key, prompt in keyed.items() if key not in self._calls}
        if not asked:
            return
        self._say(f"{what}: {len(asked):,} requests{_again(attempt)}")
        self._journal.open()
        self._failures = {}
        with self.budget.metering(what):
            gone = self._take(what, asked, attempt)
        self._check_failures(what, len(asked), gone)

    def _take(self, what: str, asked: Mapping[str, Prompt], attempt: int) -> bool:
        """Keep the replies as they come; returns whether the server is gone."""
        in_a_row, line = 0, ProgressLine(f"{what}{_again(attempt)}", self._say)
        for heard, (key, outcome) in enumerate(self._replies(asked, attempt), start=1):
            in_a_row = in_a_row + 1 if outcome.status == "failed" else 0
            if outcome.status == "failed":
                self._failures[key] = outcome.reason
            else:
                self._journal.keep(ReplyLine.of(key, outcome))
            self.budget.take(outcome.cost_usd, more=heard < len(asked))
            if in_a_row >= _DEAD:
                return True
            line.at(heard, len(asked), f"{len(self._failures):,} unanswered")
        return False

    def _replies(self, asked: Mapping[str, Prompt], attempt: int) -> Iterator[tuple[str, Outcome]]:
        def ask(prompts: Sequence[Prompt]) -> Iterator[tuple[int, Outcome]]:
            for index, (outcome, *_) in self._generator.generate(prompts, n=1, **self._decoding.attempt(attempt)):
                yield index, outcome

        return in_chunks(asked, ask)

    def _check_failures(self, what: str, asked: int, gone: bool) -> None:
        if not self._failures or (self._skip_failed and not gone):
            return
        reason = next(iter(self._failures.values()))
        answered = asked - len(self._failures)
        stopped = "the server is gone, so the rest was not asked" if gone else "the build stopped"
        raise ModelError(
            f"{what}: {len(self._failures):,} of {asked:,} requests were not answered ({reason}); {stopped}",
            hint=f"{self._journal.path.name} keeps what was answered: the same command goes on from there"
            + ("" if gone or not answered else ", and --skip-failed counts them as rejects instead"),
        )


def _again(attempt: int) -> str:
    return f", try {attempt + 1}" if attempt else ""
