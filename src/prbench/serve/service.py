"""A served model: what it scores, what it has learned of users, and who it says it is."""

import logging
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, cast

from prbench.config import digest
from prbench.data import Suite, load_pairs
from prbench.errors import ConfigError, ModelError, PrbenchError
from prbench.models import (
    Adaptive,
    Forgetful,
    Model,
    ModelCard,
    Preparable,
    Ranker,
    Rater,
    as_ranker,
    can_rate,
    is_adaptive,
    is_ranker,
    load_encoder,
    load_model,
)
from prbench.rank import BM25, Dense
from prbench.serve.batching import Batcher, QueueLimits
from prbench.serve.config import ServeConfig
from prbench.serve.feedback import FeedbackFile
from prbench.serve.items import FloorScore, ItemBounds, ItemError, Scored, ScoreItem, TooManyError
from prbench.serve.judged import JudgedTexts, left_s, length_of
from prbench.serve.lint import check_served
from prbench.serve.lists import RankRequest, rank_list, sound_places, with_floor
from prbench.serve.metrics import Metrics
from prbench.serve.pace import foreseen_rates
from prbench.serve.views import Views
from prbench.texts import is_degenerate
from prbench.types import AnswerView, Context, Judgment

Json = dict[str, Any]
_LOG = logging.getLogger(__name__)
_SOUND = 32
"""Sound answers that are scored to find the floor."""
_LAST_BATCH_S = 5.0
"""Seconds that the batch under way may take once everything else is over."""


class NotAdaptiveError(Exception):
    """The model has no `fit_user`."""


class UnusedFeedbackError(Exception):
    """The context shows the model no user, so that no judgment could change a score."""


class RefusedJudgmentError(Exception):
    """A judgment that the model does not take; says nothing of the model's own words."""


class TooLargeError(Exception):
    """A judgment beyond what the server takes."""


class ListsOnlyError(Exception):
    """The model ranks lists and has no reward for one answer."""


class ScoredReply(NamedTuple):
    """Scores of a request's items, with the revision of the server that gave them."""

    scored: list[Scored]
    revision: str
    """Revision of the server while it scored them; empty where it changed meanwhile, or cannot be told."""


class RewardService:
    """One model behind a queue; made by `open_service`.

    Args:
        model: Model that scores; a Ranker scores lists only.
        views: Makes what it is shown.
        feedback: Judgments of users.
        limits: Limits of batches and queue.
        suite: The name of the suite whose users are known.
        choice: All that decides what is shown, beside the context: part of the revision.
        bounds: How much an item or a judgment may hold.
        floor: The reward of an answer that says nothing: `auto`, `off` or a number.
        together: Who scores lists; default: the model, answer by answer.
    """

    def __init__(
        self,
        model: Rater | Ranker,
        views: Views,
        feedback: FeedbackFile,
        limits: QueueLimits,
        suite: str,
        choice: Sequence[object],
        bounds: ItemBounds,
        floor: str | float = "auto",
        together: Ranker | None = None,
    ) -> None:
        self._model = model
        self._ranker = together or as_ranker(model)
        self._views = views
        self._feedback = feedback
        self._suite = suite
        self._choice = choice
        self.bounds = bounds
        self._floor = self._floor_rule = floor
        self._changes = 0
        self._deadline_s = limits.deadline_s
        self.metrics = Metrics()
        guess = foreseen_rates(cast(Rater, model), views.sample)
        self.batcher = Batcher(cast(Rater, model), self._show, limits, self.metrics, views.cost, guess)
        self._judged_texts = JudgedTexts(self.batcher, feedback.of)
        self.metrics.watch("prbench_queue_items", lambda: self.batcher.depth)
        self.metrics.watch("prbench_users_judged", lambda: len(self._feedback.users))

    @property
    def card(self) -> ModelCard:
        """Description of the model that answers."""
        return self._model.card

    @property
    def adaptive(self) -> bool:
        """Whether judgments change scores: the model learns from them, and is shown whom it scores for."""
        return self._learns and bool(self._views.context.needs)

    async def score(self, items: Sequence[ScoreItem], within_s: float | None = None) -> ScoredReply:
        """Score items, in their order, within the time that the client waits."""
        if not can_rate(self._model):
            raise ListsOnlyError(
                f"{self.card.address!r} ranks answers that it sees together and has no score for one: POST /rank"
            )
        before = self._changes
        known: list[Scored | None] = [
            ItemError("too-large", said) if (said := self.bounds.excess(item)) else None for item in items
        ]
        silent = [place for place, item in enumerate(items) if known[place] is None and is_degenerate(item.answer)]
        if silent and self._floor != "off":
            floor = await self._lowest()
            for place in silent:
                known[place] = floor
        taken = [item for item, found in zip(items, known, strict=True) if found is None]
        until = time.monotonic() + min(self._deadline_s, within_s or math.inf)
        if self.adaptive and isinstance(self._model, Forgetful):
            await self._judged_texts.read(taken, until)
        answered = iter(await self.batcher.score(taken, left_s(until)) if taken else ())
        scored = [next(answered) if found is None else found for found in known]
        return self._reply(scored, before)

    async def rank(self, asked: RankRequest, within_s: float | None = None) -> ScoredReply:
        """Score the answers to one question together, in their order."""
        before, items = self._changes, asked.each()
        most = min(self.batcher.most_together, getattr(self._ranker, "most_answers", None) or len(items))
        if len(items) > most:
            raise TooManyError(f"the list has {len(items)} answers, and {most} can be ranked together (--max-batch)")
        for item in items:
            if said := self.bounds.excess(item):
                raise TooLargeError(said)
        sound = sound_places(items, self._floor_rule)
        shown = [items[place] for place in sound]
        until = time.monotonic() + min(self._deadline_s, within_s or math.inf)
        if shown and self.adaptive and isinstance(self._model, Forgetful):
            await self._judged_texts.read(shown, until)
        work = partial(rank_list, self._ranker, self._views, shown, self._learned, until)
        scored = await self.batcher.call(work) if shown else []
        return self._reply(with_floor(scored, sound, len(items)), before)

    def _reply(self, scored: list[Scored], before: int) -> ScoredReply:
        for result in scored:
            if isinstance(result, ItemError):
                self.metrics.errors.labels(result.kind).inc()
            elif isinstance(result, FloorScore):
                self.metrics.errors.labels("degenerate").inc()
            else:
                self.metrics.items.inc()
        revision = self._revision()  # read before the changes are: the model's thread counts one before it makes it
        return ScoredReply(scored, revision if self._changes == before else "")

    async def _lowest(self) -> Scored:
        """The floor: as far below the lowest of some sound answers as these lie apart; found once."""
        if not isinstance(self._floor, float):
            sound = self._views.sound_items(_SOUND)
            found = await self.batcher.score(sound) if sound else []
            scores = [one for one in found if isinstance(one, float)]
            if len(scores) < 2:
                said = "an answer that says nothing, and the suite has no answers to find its reward from"
                return ItemError("unfit", f"{said}: start the server with --floor VALUE")
            lowest, highest = min(scores), max(scores)
            self._floor = lowest - max(highest - lowest, 1e-3)
        return FloorScore(self._floor)

    def judged(self, user: str) -> tuple[Judgment, ...]:
        """Return the judgments of a user."""
        return self._feedback.of(user)

    async def adapt(self, user: str, judgment: Judgment) -> int:
        """Learn from one more judgment and keep it; returns how many there are."""
        self._must_adapt()
        if said := self.bounds.long_text({"user": user, **judgment.model_dump()}):
            raise TooLargeError(said)
        return await self.batcher.call(lambda: self._adapt(user, judgment))

    async def forget(self, user: str) -> int:
        """Forget a user; returns how many judgments are gone."""
        self._must_adapt()
        return await self.batcher.call(lambda: self._forget(user))

    def replay(self) -> int:
        """Teach the model what was judged before it was started; returns of how many users."""
        if not self.adaptive:
            return 0
        for user, judgments in self._feedback.users.items():
            try:
                self._fit(user, tuple(judgments))
            except Exception as error:
                said = error.message if isinstance(error, PrbenchError) else f"{type(error).__name__}: {error}"
                raise ModelError(
                    f"{self.card.address!r} does not take what {user!r} has judged ({self._feedback.path}): {said}",
                    hint="remove the user's lines from the file, or choose another one with --state",
                ) from error
        return len(self._feedback.users)

    def health(self) -> Json:
        """Return the model's description and state; `http:` models ask for it too."""
        return {
            "status": "stopped" if not self.batcher.alive else "draining" if self.batcher.draining else "ready",
            "model": self.card.address,
            "revision": self._revision(),
            "reads": sorted(self.card.reads) if self._views.context.needs else [],
            "context": str(self._views.context),
            "suite": self._suite,
            "users": self._views.users,
            "adapts": self.adaptive,
        }

    def _revision(self) -> str:
        """Return a text that changes with everything that could change a score; empty, against caching, if unknown."""
        if not self.card.reusable or self._learned:
            return ""
        return digest([self.card.identity, str(self._views.context), *self._choice, self._floor_rule])[:16]

    def _show(self, items: Sequence[ScoreItem]) -> Sequence[AnswerView | ItemError]:
        return self._views.show(items, judged=self._learned)

    @property
    def _learns(self) -> bool:
        return is_adaptive(self._model)

    @property
    def _learned(self) -> Mapping[str, Sequence[Judgment]]:
        """Return the judgments that the model knows; those that another model has left in the file do not count."""
        return self._feedback.users if self.adaptive else {}

    def _must_adapt(self) -> None:
        if not self._learns:
            raise NotAdaptiveError(f"{self.card.address!r} does not learn from judgments: it has no fit_user")
        if not self.adaptive:
            raise UnusedFeedbackError(
                f"context '{self._views.context}' shows the model no user, so that no judgment would change a score; "
                "start the server with --context profile"
            )

    def _fit(self, user: str, judgments: Sequence[Judgment]) -> None:
        cast(Adaptive, self._model).fit_user(user, judgments)

    def _adapt(self, user: str, judgment: Judgment) -> int:
        before = self.judged(user)
        if judgment in before:
            return len(before)
        if len(before) >= self.bounds.judgments:
            most = self.bounds.judgments
            raise TooLargeError(f"{user[:80]!r} has judged {len(before)} pairs, and {most} are kept (--max-judgments)")
        if (length := sum(map(length_of, (*before, judgment)))) > self.bounds.item:
            said = f"what {user[:80]!r} has judged would have {length} characters, and {self.bounds.item} are kept"
            raise TooLargeError(f"{said} (--max-item)")
        self._changes += 1
        try:
            self._fit(user, (*before, judgment))
        except ModelError as error:
            _LOG.warning("the model does not take a judgment", exc_info=error)
            raise RefusedJudgmentError("the model does not take this judgment; the server's log says why") from error
        try:
            self._feedback.add(user, judgment)
        except Exception:
            self._fit(user, before)  # what is not kept must not be known
            raise
        return len(before) + 1

    def _forget(self, user: str) -> int:
        self._changes += 1
        forgotten = self._feedback.forget(user)  # first: what stays on disk would be known again at the next start
        self._fit(user, ())
        self._judged_texts.forget()
        self.batcher.forget()
        if isinstance(self._model, Forgetful):
            self._model.forget()
        self._views.renew()
        return forgotten


@contextmanager
def open_service(
    config: ServeConfig, *, model: Model | None = None, suite: Suite | None = None
) -> Iterator[RewardService]:
    """Load model and suite, check that they can be served, and keep them until the block ends.

    Args:
        config: Settings of the server.
        model: In place of the configuration's address.
        suite: In place of the configuration's suite.
    """
    context = Context.parse(config.context)
    opened = model if model is not None else load_model(config.model, config.options)
    served = check_served(opened, context, config.options.template)
    pairs = suite if suite is not None else load_pairs(config.suite)
    _check_suite(pairs, context)
    if isinstance(served, Preparable):
        served.prepare()
    if isinstance(served, Forgetful):
        served.hold_back()
    ranker = BM25() if config.ranker == "bm25" else Dense(load_encoder(config.ranker, config.options))
    together = opened if is_ranker(opened) else as_ranker(served)
    views = Views(pairs, served, context, ranker=ranker, seed=config.seed, together=together)
    limits = QueueLimits(config.max_batch, config.max_wait_ms / 1000, config.max_queue, config.deadline_s)
    with FeedbackFile(config.state) as feedback:
        choice = (ranker.name, pairs.record.fingerprint, config.seed)
        service = RewardService(
            served, views, feedback, limits, pairs.record.name, choice, config.bounds, config.floor, together
        )
        try:
            service.replay()
            yield service
        finally:
            service.batcher.stop(_LAST_BATCH_S if service.batcher.draining else config.drain_s)


def _check_suite(suite: Suite, context: Context) -> None:
    if context.name == "pairs":
        raise ConfigError(
            "a server shows no labelled pairs of a suite", hint="send them as feedback to a model that adapts"
        )
    if context.name == "oracle" and not any(pair.rubric_aspects for pair in suite):
        raise ConfigError(f"suite {suite.record.name!r} has no rubric that 'oracle' could show")
    if context.name == "opposite" and not any("mirror" in pair.tags for pair in suite):
        raise ConfigError(f"suite {suite.record.name!r} is not mirrored: there is no opposite user")
