"""The desk: requests go to a model that writes, replies are read strictly and kept in a journal.

A reply that cannot be read is asked for again with another seed, up to a number of tries; after that it is a rejection
with its reason. A request that was not answered is neither: the journal keeps what came, and the same command goes on
from there. Equal requests are sent once. What is in the journal costs nothing, so a finished build can be repeated.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, NamedTuple, Self, TypeVar

from pydantic import Field

from prbench.build.written.cleaning import clean
from prbench.build.written.journal import Call, Usage, read_journal
from prbench.config import digest
from prbench.errors import BudgetError, ModelError, RunError
from prbench.files import Appender, locked
from prbench.models import Generator, Windowed
from prbench.prompts import Unreadable
from prbench.types import Frozen, Outcome, Prompt

T = TypeVar("T")
_CHUNK = 2048
_DEAD = 20
"""So many requests in a row without an answer: the server is gone, and nothing more is asked of it."""
_RETRY_TEMPERATURE = 0.7
_SAY_SECONDS = 10.0


class Decoding(Frozen):
    """How texts are asked for."""

    max_tokens: int = Field(default=1024, ge=1)
    temperature: float = Field(default=0.0, ge=0)
    """Of the first try; later tries sample at 0.7 at least, or a model would say the same again."""
    seed: int = 0
    """Of the first try; later tries count up from it."""
    tries: int = Field(default=3, ge=1)

    def attempt(self, number: int) -> dict[str, Any]:
        """The parameters of one try."""
        temperature = max(self.temperature, _RETRY_TEMPERATURE) if number else self.temperature
        return {"max_tokens": self.max_tokens, "temperature": temperature, "seed": self.seed + number}


class Request(NamedTuple, Generic[T]):
    """What is asked, and how a reply is read."""

    prompt: Prompt
    read: Callable[[str], T | Unreadable]


class Rejection(NamedTuple):
    """A request without a usable reply, and why."""

    reason: str
    raw: str = ""
    """The last reply, where there was one."""


class Limits(Frozen):
    """When to stop."""

    max_cost_usd: float | None = None
    skip_failed: bool = False
    """Whether a request that was not answered becomes a rejection; else the build stops and can be continued."""


class Desk:
    """One model, one journal. Use in a `with` block.

    Args:
        generator: Who writes.
        journal: Append-only JSONL of all replies.
        decoding: How texts are asked for.
        limits: When to stop.
        say: Told now and then how far it is.
    """

    def __init__(
        self,
        generator: Generator,
        journal: Path,
        decoding: Decoding,
        limits: Limits | None = None,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._generator = generator
        self._path = journal
        self._decoding = decoding
        self._limits = limits or Limits()
        self._say = say
        self._calls: dict[str, Call] = {}
        self._used: dict[str, Call] = {}
        self._spent = Usage()
        self._failures: dict[str, str] = {}
        self._open = ExitStack()
        self._appender: Appender | None = None

    def __enter__(self) -> Self:
        self._calls = read_journal(self._path)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    @property
    def spent(self) -> Usage:
        """What was asked and paid since this desk opened."""
        return self._spent

    @property
    def used(self) -> dict[str, Call]:
        """The replies that this build rests on, wherever they came from; in the order of their keys."""
        return dict(sorted(self._used.items()))

    def lines(self) -> list[str]:
        """The whole journal, in the order of the keys: the same replies give the same lines, whenever they came."""
        return [call.model_dump_json(exclude_defaults=True) for _, call in sorted(self._calls.items())]

    def room(self, prompt: Prompt) -> int | None:
        """Tokens left in the model's window once prompt and reply are in it; None where there is no known window."""
        model = self._generator
        if not isinstance(model, Windowed) or model.window is None:
            return None
        return model.window - model.length(prompt) - self._decoding.max_tokens

    def ask(self, what: str, requests: Mapping[str, Request[T]]) -> dict[str, T | Rejection]:
        """Get every request answered, or rejected with a reason.

        Raises:
            ModelError: If requests were not answered at all; what was answered is kept.
            BudgetError: If more was spent than allowed.
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

    def missing(self, requests: Mapping[str, Request[Any]]) -> list[Prompt]:
        """The first tries that are not in the journal yet: what a forecast counts."""
        keyed = {self._key(request.prompt, 0): request.prompt for request in requests.values()}
        return [prompt for key, prompt in keyed.items() if key not in self._calls]

    def known(self, requests: Mapping[str, Request[T]]) -> dict[str, T | Rejection]:
        """What `ask` would find without asking: the requests that the journal answers, or has rejected for good."""
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

    def _read(self, request: Request[T], attempt: int) -> T | Rejection:
        key = self._key(request.prompt, attempt)
        call = self._calls.get(key)
        if call is None:
            return Rejection(f"no answer: {self._failures.get(key, 'not asked')}")
        self._used[key] = call
        if call.status != "ok" or call.reason:
            return Rejection(call.reason or call.status, call.text)
        value = request.read(clean(call.text))
        return Rejection(value.reason, call.text) if isinstance(value, Unreadable) else value

    def _key(self, prompt: Prompt, attempt: int) -> str:
        who = list(self._generator.card.identity.values())
        return digest([who, self._decoding.attempt(attempt), prompt.messages])[:32]

    def _fetch(self, what: str, requests: Mapping[str, Request[Any]], attempt: int) -> None:
        keyed = {self._key(request.prompt, attempt): request.prompt for request in requests.values()}
        asked = {key: prompt for key, prompt in keyed.items() if key not in self._calls}
        if not asked:
            return
        again = f", try {attempt + 1}" if attempt else ""
        self._say(f"{what}: {len(asked):,} requests{again}")
        appender = self._journal()
        self._failures = {}
        in_a_row, said = 0, time.monotonic()
        for heard, (key, outcome) in enumerate(self._replies(asked, attempt), start=1):
            in_a_row = in_a_row + 1 if outcome.status == "failed" else 0
            self._keep(key, outcome, appender)
            if in_a_row >= _DEAD:
                break
            if time.monotonic() - said > _SAY_SECONDS:
                said = time.monotonic()
                self._say(f"{what}: {heard:,}/{len(asked):,}{again}, {len(self._failures):,} unanswered")
        self._check_failures(what, len(asked), in_a_row >= _DEAD)

    def _replies(self, asked: Mapping[str, Prompt], attempt: int) -> Iterator[tuple[str, Outcome]]:
        keys = list(asked)
        for start in range(0, len(keys), _CHUNK):
            chunk = keys[start : start + _CHUNK]
            prompts = [asked[key] for key in chunk]
            with ExitStack() as stack:
                replies = self._generator.generate(prompts, n=1, **self._decoding.attempt(attempt))
                if hasattr(replies, "close"):  # closing a stream early cancels what is under way
                    stack.callback(replies.close)
                for index, (outcome, *_) in replies:
                    yield chunk[index], outcome

    def _journal(self) -> Appender:
        """The journal, opened for writing only once there is something to ask."""
        if self._appender is None:
            busy = RunError(f"another process is writing to {str(self._path)!r}", hint="wait for it")
            self._open.enter_context(locked(self._path.with_name(f".{self._path.name}.lock"), busy))
            self._calls = read_journal(self._path)  # another process may have written since it was first read
            self._appender = self._open.enter_context(Appender(self._path))
        return self._appender

    def _keep(self, key: str, outcome: Outcome, appender: Appender) -> None:
        if outcome.status == "failed":
            self._failures[key] = outcome.reason
            return
        call = Call.of(key, outcome)
        self._calls[key] = call
        appender.append(call)
        self._spent += call.usage
        most = self._limits.max_cost_usd
        if most is not None and self._spent.cost_usd > most:
            raise BudgetError(
                f"${self._spent.cost_usd:.2f} was spent, over --max-cost {most:.2f}",
                hint=f"{self._path.name} keeps all replies: the same command with a higher limit goes on from there",
            )

    def _check_failures(self, what: str, asked: int, gone: bool) -> None:
        if not self._failures or (self._limits.skip_failed and not gone):
            return
        reason = next(iter(self._failures.values()))
        answered = asked - len(self._failures)
        stopped = "the server is gone, so the rest was not asked" if gone else "the build stopped"
        raise ModelError(
            f"{what}: {len(self._failures):,} of {asked:,} requests were not answered ({reason}); {stopped}",
            hint=f"{self._path.name} keeps what was answered: the same command goes on from there"
            + ("" if gone or not answered else ", and --skip-failed counts them as rejects instead"),
        )
