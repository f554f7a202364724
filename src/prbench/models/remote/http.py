"""`http:http://HOST:PORT`: a served reward model; `http:vllm:MODEL@URL`: one on a vLLM server (see `vllm`).

The first kind answers GET /health with who it is (`model`, `revision`, `reads`) and POST /score, `{"items": [...]}`,
with `{"scores": [...]}`, one per item and in their order. An error is a failed outcome, a score that is no finite
number an invalid one; neither is ever a number. Where the reply also has `items`, their errors say why a
score is missing; where it has the `revision`, that must still be the one that was opened.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import httpx
from pydantic import BaseModel, Field, StrictFloat, StrictInt, ValidationError

from prbench.config import ModelOptions
from prbench.errors import ModelError
from prbench.models.protocols import ModelCard
from prbench.models.remote.stream import stream
from prbench.models.remote.vllm import PoolingRater, open_pooling
from prbench.models.remote.wire import PATIENT, Backoff, Fault, StatusRefused, Wire, clean_url
from prbench.types import CONTEXTS, AnswerView, Channel, Message, Outcome, Prompt

__all__ = ["HttpRater", "load"]

_VLLM = "vllm:"

_MOST_BITS = 1000
"""A whole number of more bits has no place among floating-point numbers."""
_LONGEST_REASON = 500
"""Characters that are kept of what a server says of an item."""

_OVER_ONE_ITEM = frozenset({400, 413, 422})
"""Statuses by which a server turns a batch down for what is in it, or for its size."""


class _Health(BaseModel):
    model: str
    revision: str = ""
    reads: frozenset[Channel] = frozenset()
    context: str = ""
    """Context of a reward server of ours: what it shows the model of a user."""


class _Error(BaseModel):
    kind: str
    message: str


class _Entry(BaseModel):
    error: _Error | None = None


class _Scores(BaseModel):
    scores: list[StrictFloat | StrictInt | None] = Field(fail_fast=True)
    items: list[_Entry] | None = Field(default=None, fail_fast=True)
    revision: str | None = None


def load(
    rest: str, options: ModelOptions, *, backoff: Backoff = PATIENT, batch: int = 32
) -> "HttpRater | PoolingRater":
    """Open a served reward model; who it is is asked at once.

    Args:
        rest: The server's URL, to which no key is sent, or `vllm:MODEL@URL`.
        options: Concurrency and patience; for vLLM also the template and the probe's known logit. A price is refused.
        backoff: How long to wait before a request is sent again.
        batch: The most items in one request; vLLM makes its own batches.
    """
    if options.price is not None:  # nothing here counts tokens: no limit would ever act
        raise ModelError(
            "a served reward model has no price here: what it costs is not counted",
            hint="leave out --price and --max-cost; a planner's price belongs to `prbench plan` (then --plans)",
        )
    if rest.startswith(_VLLM):
        return open_pooling(rest.removeprefix(_VLLM), options, backoff)
    url = clean_url(f"http:{rest}" if rest.startswith("//") else rest, f"http:{rest.split('@')[-1]}")
    wire = Wire(url, timeout_s=options.timeout_s, retries=options.retries, backoff=backoff)
    health = _health(wire)
    served = CONTEXTS.get(health.context.partition("@")[0])
    if served is not None and served.picks:  # the server would choose which posts, or whose, the model is shown
        raise ModelError(
            f"{url} serves its model under context '{health.context}', and so would not show it what is sent",
            hint="serve it with --context profile, where every item is shown with the posts and the plan it brings",
        )
    return HttpRater(wire, health, options, batch=batch)


def _health(wire: Wire) -> _Health:
    async def ask(client: httpx.AsyncClient, _: int) -> _Health:
        return (await wire.send(client, "/health", _Health)).body

    try:
        [(_, health)] = stream(1, ask, wire.open, concurrency=1)
    except (Fault, StatusRefused) as error:
        raise ModelError(
            f"{wire.base_url}/health does not say which model is served: {error.reason}",
            hint='it should answer {"model": "NAME", "revision": "…", "reads": ["posts", "plan"]}',
        ) from error
    return health


class HttpRater:
    """A reward model behind a server, asked in batches."""

    def __init__(self, wire: Wire, health: _Health, options: ModelOptions, *, batch: int = 32) -> None:
        self._wire = wire
        self._batch = batch
        self._concurrency = options.concurrency
        self._card = ModelCard(
            address=f"http:{wire.base_url}",
            revision=health.revision,
            reads=health.reads,
            parameters={"model": health.model},
            # Behind the same URL there may be other weights tomorrow.
            reusable=bool(health.revision),
        )

    @property
    def card(self) -> ModelCard:
        """Description of the model, as the server gives it."""
        return self._card

    def render(self, view: AnswerView) -> Prompt:
        """The item that the server receives for this view, as JSON."""
        return Prompt((Message("item", json.dumps(self._item(view), ensure_ascii=False)),))

    def rate(self, views: Sequence[AnswerView]) -> Iterator[tuple[int, Outcome]]:
        """Score each view; closing the iterator early cancels what is under way."""
        starts = range(0, len(views), self._batch)

        async def job(client: httpx.AsyncClient, number: int) -> list[Outcome]:
            start = starts[number]
            return await self._score(client, [self._item(view) for view in views[start : start + self._batch]])

        for number, outcomes in stream(len(starts), job, self._wire.open, self._concurrency):
            yield from enumerate(outcomes, starts[number])

    def _item(self, view: AnswerView) -> dict[str, Any]:
        """Return only what the model reads, so that what it cannot see does not make two calls of one."""
        reads = self._card.reads
        posts = view.posts if Channel.POSTS in reads else ()
        return {
            "question": view.question,
            "answer": view.answer,
            "posts": [{"id": post.id, "text": post.text} for post in posts],
            "plan": list(view.plan) if Channel.PLAN in reads else [],
            "user": view.user if reads else None,
        }

    async def _score(self, client: httpx.AsyncClient, items: list[dict[str, Any]]) -> list[Outcome]:
        try:
            reply = await self._wire.send(client, "/score", _Scores, {"items": items})
        except StatusRefused as error:
            if (told := _told(error, len(items))) is not None:
                return self._outcomes(told, len(items), 0.0)
            if len(items) == 1 or error.status not in _OVER_ONE_ITEM:
                return [Outcome.failed(error.reason)] * len(items)
            # One item that the server will not take must not cost its neighbours their scores.
            half = len(items) // 2
            return await self._score(client, items[:half]) + await self._score(client, items[half:])
        except Fault as error:
            return [Outcome.failed(error.reason)] * len(items)
        return self._outcomes(reply.body, len(items), reply.latency_ms / len(items))

    def _outcomes(self, body: _Scores, count: int, latency_ms: float) -> list[Outcome]:
        loaded = self._card.revision
        if body.revision is not None and body.revision != loaded:
            now = f"is {body.revision!r}" if body.revision else "has none, as after feedback"
            reason = f"another model answers at {self._wire.base_url}: it was revision {loaded!r} and now {now}"
            return [Outcome.failed(reason)] * count
        entries = body.items or [_Entry()] * count
        for name, found in (("scores", len(body.scores)), ("entries", len(entries))):
            if found != count:
                return [Outcome.failed(f"{found} {name} came for {count} items")] * count
        return [_outcome(score, entry.error, latency_ms) for score, entry in zip(body.scores, entries, strict=True)]


def _told(refused: StatusRefused, count: int) -> _Scores | None:
    """Return what a server says of each item where it could score none of them."""
    try:
        body = _Scores.model_validate_json(refused.text)
    except ValidationError:
        return None
    return body if body.items and len(body.items) == count else None


def _outcome(score: float | None, error: _Error | None, latency_ms: float) -> Outcome:
    if error is not None:
        kind = Outcome.failed if error.kind == "failed" else Outcome.invalid
        return kind(error.message[:_LONGEST_REASON], latency_ms=latency_ms)
    if score is None:
        return Outcome.invalid("the server gave no score", latency_ms=latency_ms)
    if isinstance(score, int) and score.bit_length() > _MOST_BITS:
        return Outcome.invalid("score is no finite number", latency_ms=latency_ms)
    return Outcome.scored(score, latency_ms=latency_ms)
