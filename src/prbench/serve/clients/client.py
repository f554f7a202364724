"""The plain client: items in, scores out, in their order."""

import math
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from types import TracebackType
from typing import Any, Literal, Self, TypeGuard

from prbench.errors import MissingExtraError
from prbench.serve.config import read_token
from prbench.serve.items import ScoreItem

try:
    import httpx
except ImportError as missing:
    raise MissingExtraError("a client of the reward server", "api") from missing

_LATER = frozenset({408, 429, 502, 503, 504})
"""Statuses after which the same request may succeed."""
_FIRST_WAIT_S = 0.25
_LONGEST_ERROR = 500
"""Characters of an error that are shown."""
_SCORES = frozenset({200, 207})
"""Statuses whose entries may be scores."""
_ERRORS_ONLY = frozenset({413, 422, 500})
"""Statuses whose body may say, item by item, why there is no score."""


class RewardError(RuntimeError):
    """There is no reward: the server could not be asked, refused the request, or could not score an item."""


@dataclass
class Tally:
    """Counts of what became of all items so far."""

    asked: int = 0
    scored: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    """Items without a score, by the kind of error."""
    retries: int = 0


class RewardClient:
    """Asks a reward server; may be shared by threads.

    Args:
        url: Address of the server.
        token_env: The environment variable with the bearer token, where the server wants one.
        on_error: What an item without a score does: `raise`, or `drop` (None in its place, counted in `tally`). A
            server that cannot be asked, or that refuses a request as such, always raises.
        timeout_s: The most that one request may take.
        retries: How often a request is sent again that met an overloaded or unreachable server.
        max_wait_s: The longest pause before that, whatever the server asks for.
        batch: The most items in a request, as far as questions can be kept whole.

    Example:
        >>> client = RewardClient("http://127.0.0.1:8000", on_error="drop")
        >>> client.tally.asked
        0
    """

    def __init__(
        self,
        url: str,
        *,
        token_env: str | None = None,
        on_error: Literal["raise", "drop"] = "raise",
        timeout_s: float = 120.0,
        retries: int = 8,
        max_wait_s: float = 30.0,
        batch: int = 256,
    ) -> None:
        if on_error not in ("raise", "drop"):
            raise ValueError(f"on_error is {on_error!r}; it should be 'raise' or 'drop'")
        self.url = url.rstrip("/")
        self.on_error = on_error
        self.tally = Tally()
        """Counts of what became of all items so far."""
        self._lock = threading.Lock()
        self._retries = retries
        self._max_wait_s = max_wait_s
        self._batch = batch
        self._token = read_token(token_env)
        headers = {"Prefer": f"wait={max(1, int(timeout_s))}"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
        self._http = httpx.Client(base_url=self.url, headers=headers, timeout=timeout_s, limits=limits)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections to the server."""
        self._http.close()

    def score(self, items: Sequence[ScoreItem | Mapping[str, Any]]) -> list[float | None]:
        """Score items, in their order; None only where an item was dropped.

        Raises:
            RewardError: If the server cannot be asked or refuses; with `on_error="raise"` also for any item.
        """
        bodies = [_body(item) for item in items]
        with self._lock:
            self.tally.asked += len(bodies)
        found: list[float | None] = []
        for request in _requests(bodies, self._batch):
            found += self._score(request)
        return found

    def rank(
        self,
        question: str,
        answers: Sequence[str],
        *,
        user: str | None = None,
        posts: Sequence[Any] | None = None,
        plan: Sequence[str] = (),
    ) -> list[float | None]:
        """Score two or more answers to one question together, in their order; None only where one was dropped.

        Raises:
            RewardError: If the server cannot be asked or refuses; with `on_error="raise"` also without a score.
        """
        if len(answers) < 2:
            raise RewardError(f"there is {len(answers)} answer to {question[:60]!r}, and nothing to rank")
        body = _body({"question": question, "answers": list(answers), "user": user, "posts": posts})
        with self._lock:
            self.tally.asked += len(answers)
        return self._scores("/rank", {**body, **({"plan": list(plan)} if plan else {})}, len(answers))

    def health(self) -> dict[str, Any]:
        """Return the server's description of its model and state."""
        response = self._send("GET", "/health", None)
        return dict(_json(response)) if response.is_success else self._refuse(response)

    def judge(self, user: str, question: str, chosen: str, rejected: str) -> int:
        """Tell the server what a user prefers; returns how many judgments it has of them."""
        path = f"/users/{_quoted(user)}/feedback"
        response = self._send("POST", path, {"question": question, "chosen": chosen, "rejected": rejected})
        return int(_json(response)["count"]) if response.is_success else self._refuse(response)

    def forget(self, user: str) -> int:
        """Have the server forget what a user has judged; returns how many judgments that were."""
        response = self._send("DELETE", f"/users/{_quoted(user)}/feedback", None)
        return int(_json(response)["forgotten"]) if response.is_success else self._refuse(response)

    def _score(self, bodies: Sequence[dict[str, Any]]) -> list[float | None]:
        return self._scores("/score", {"items": list(bodies)}, len(bodies))

    def _scores(self, path: str, body: dict[str, Any], count: int) -> list[float | None]:
        response = self._send("POST", path, body)
        entries = _json(response).get("items") if response.status_code in _SCORES | _ERRORS_ONLY else None
        if entries is None:
            self._refuse(response)
        if not isinstance(entries, list) or len(entries) != count:
            raise RewardError(f"{self.url} did not answer with one entry for each of {count} items")
        if response.status_code in _ERRORS_ONLY and not all(map(_is_error, entries)):
            self._refuse(response)
        return [self._read(place, entry) for place, entry in enumerate(entries)]

    def _read(self, place: int, entry: Any) -> float | None:
        score = entry.get("score") if isinstance(entry, dict) and not _is_error(entry) else None
        if _is_number(score):
            with self._lock:
                self.tally.scored += 1
            return float(score)
        error = entry.get("error") if isinstance(entry, dict) else None
        kind, message = (
            (error.get("kind"), error.get("message")) if isinstance(error, dict) else ("invalid", repr(entry))
        )
        with self._lock:
            self.tally.dropped[str(kind)] += 1
        if self.on_error == "drop":
            return None
        raise self._error(f"{self.url} has no score for item {place}: {message} ({kind})")

    def _send(self, method: str, path: str, body: Any) -> httpx.Response:
        """Ask until there is an answer that another try would not change."""
        reason = ""
        for attempt in range(self._retries + 1):
            wait_s = _FIRST_WAIT_S * 2**attempt
            try:
                response = self._http.request(method, path, json=body)
            except httpx.TransportError as error:
                reason = f"{type(error).__name__}: {error}"
            else:
                if response.status_code not in _LATER:
                    return response
                reason = _said(response)
                wait_s = _retry_after_s(response) or wait_s
            if attempt < self._retries:
                with self._lock:
                    self.tally.retries += 1
                time.sleep(min(wait_s, self._max_wait_s))
        raise self._error(f"{self.url} could not be asked in {self._retries + 1} tries; last: {reason}")

    def _refuse(self, response: httpx.Response) -> Any:
        raise self._error(f"{self.url} refused: {_said(response)}")

    def _error(self, said: str) -> RewardError:
        """An error in the server's words: not all of them, and without the token, which a server may echo."""
        return RewardError((said.replace(self._token, "***") if self._token else said)[:_LONGEST_ERROR])


def _body(item: ScoreItem | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(item, ScoreItem):
        return item.model_dump(mode="json", exclude_defaults=True)
    return {name: value for name, value in item.items() if value is not None}


def _requests(bodies: Sequence[dict[str, Any]], batch: int) -> Iterator[list[dict[str, Any]]]:
    """Cut a list between questions, so that answers that are held against each other are shown the same posts.

    Example:
        >>> items = [{"question": name} for name in "aabbb"]
        >>> [len(part) for part in _requests(items, 4)]
        [2, 3]
    """
    part: list[dict[str, Any]] = []
    for _, run in groupby(bodies, key=lambda body: (body.get("user"), body.get("question"))):
        together = list(run)
        if part and len(part) + len(together) > batch:
            yield part
            part = []
        part += together
    if part:
        yield part


def _is_number(score: Any) -> TypeGuard[float]:
    """Whether a score is a finite number; a whole one of hundreds of digits is none."""
    try:
        return isinstance(score, int | float) and not isinstance(score, bool) and math.isfinite(score)
    except OverflowError:
        return False


def _is_error(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("error"), dict)


def _json(response: httpx.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except ValueError:
        body = None
    return body if isinstance(body, dict) else {}


def _said(response: httpx.Response) -> str:
    error = _json(response).get("error")
    message = error.get("message") if isinstance(error, dict) else response.text
    return f"HTTP {response.status_code}: {message}"


def _retry_after_s(response: httpx.Response) -> float | None:
    value = response.headers.get("Retry-After", "").strip()
    return float(value) if value.isascii() and value.isdigit() else None


def _quoted(user: str) -> str:
    from urllib.parse import quote

    return quote(user, safe="").replace(".", "%2E")  # "." and ".." alone would be taken for steps of the path
