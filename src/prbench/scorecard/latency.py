"""Latency of one pair, measured: a warm model is asked one pair at a time, with texts that no cache has seen before.

Calls and vectors of known texts are kept in several places (a run's records, the call cache, feature files, memory), so
each text is given a new order of words within its sentences. It is as long as before and in no cache. What is timed is
what a verdict takes: both answers for a Rater, both orders for a Comparer. A judge that writes may write more or less
about such texts than it would.
"""

import random
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from prbench import stats
from prbench.calls import reply
from prbench.contexts import ContextBuilder, Unfit
from prbench.models import Model, Preparable, is_rater
from prbench.scorecard.machine import Machine, load_average
from prbench.stats import Estimate
from prbench.types import AnswerView, Context, Frozen, Pair, PairView

WARM_UP = 2
"""Pairs asked before the clock counts: weights are loaded and memory is there."""

_SENTENCE = re.compile(r"[^.!?\n]+")


class Latency(Frozen):
    """Latency of one pair, in milliseconds."""

    p50: Estimate
    p95: Estimate
    known_user_p50: Estimate
    """The same where the user's posts were read for the pair before, and only question and answers are new."""
    known_user_p95: Estimate
    cpu_p50: Estimate
    """Processor time of all threads; far below `p50` where the machine had other things to do."""
    known_user_cpu_p50: Estimate
    pairs: int
    """Pairs asked after the warm-up."""
    unanswered: int
    """Pairs without an answer; not timed."""
    load: float | None
    """Load average of the machine when it was measured."""
    machine: Machine


def measure_latency(
    model: Model, pairs: Sequence[Pair], builder: ContextBuilder, context: Context, *, seed: int | None = None
) -> Latency:
    """Time a model on pairs, after a warm-up on the first of them.

    Args:
        model: Who is asked, here and now.
        pairs: What about; the first two are asked untimed.
        builder: Shows the pairs' users to the model.
        context: Context in which they are shown.
        seed: Of the words' order; default: another one each time, so that no earlier measurement left anything.
    """
    draw = random.Random(time.time_ns() if seed is None else seed)  # noqa: S311 - order of words, no secret
    if isinstance(model, Preparable):
        model.prepare()
    shown = [view for view in (_view(builder, pair, context) for pair in pairs) if view is not None]
    times = [_stranger_and_met_again(model, view, draw) for view in shown][WARM_UP:]
    answered = [(one, two) for one, two in times if one is not None and two is not None]
    fresh, known = [one for one, _ in answered], [two for _, two in answered]
    return Latency(
        p50=stats.quantile([took.wall_ms for took in fresh], 0.5),
        p95=stats.quantile([took.wall_ms for took in fresh], 0.95),
        known_user_p50=stats.quantile([took.wall_ms for took in known], 0.5),
        known_user_p95=stats.quantile([took.wall_ms for took in known], 0.95),
        cpu_p50=stats.quantile([took.cpu_ms for took in fresh], 0.5),
        known_user_cpu_p50=stats.quantile([took.cpu_ms for took in known], 0.5),
        pairs=len(times),
        unanswered=len(times) - len(answered),
        load=load_average(),
        machine=Machine.here(),
    )


class Took(NamedTuple):
    """Time of one pair."""

    wall_ms: float
    cpu_ms: float


def timed(model: Model, view: PairView) -> Took | None:
    """Return the time from asking to the last answer; None where one is missing."""
    asked: Sequence[AnswerView | PairView] = view.answers() if is_rater(model) else (view, view.swap())
    wall, cpu = time.perf_counter(), time.process_time()
    outcomes = [outcome for _, outcome in reply(model, asked)]
    took = Took(1000 * (time.perf_counter() - wall), 1000 * (time.process_time() - cpu))
    return took if len(outcomes) == 2 and all(outcome.status == "ok" for outcome in outcomes) else None


def _stranger_and_met_again(model: Model, view: PairView, draw: random.Random) -> tuple[Took | None, Took | None]:
    stranger = scrambled(view, draw)
    met_again = replace(scrambled(view, draw), posts=stranger.posts, plan=stranger.plan)
    return timed(model, stranger), timed(model, met_again)


def scrambled(view: PairView, draw: random.Random) -> PairView:
    """Return the view with every sentence's words in another order: as long as before, and new to every cache.

    Example:
        >>> view = scrambled(PairView("Which tea is good?", "The green one is.", "No."), random.Random(0))
        >>> view.question, view.second
        ('is Which tea good?', 'No.')
    """
    return replace(
        view,
        question=_mixed(view.question, draw),
        first=_mixed(view.first, draw),
        second=_mixed(view.second, draw),
        posts=tuple(post.model_copy(update={"text": _mixed(post.text, draw)}) for post in view.posts),
        plan=tuple(_mixed(line, draw) for line in view.plan),
    )


def _mixed(text: str, draw: random.Random) -> str:
    return "".join(_parts(text, draw))


def _parts(text: str, draw: random.Random) -> Iterator[str]:
    """Sentences with their words shuffled, and what stands between them as it is."""
    end = 0
    for match in _SENTENCE.finditer(text):
        yield text[end : match.start()]
        sentence, end = match[0], match.end()
        words = sentence.split()
        draw.shuffle(words)
        lead = " " if sentence[:1].isspace() and words else ""
        yield lead + " ".join(words)
    yield text[end:]


def _view(builder: ContextBuilder, pair: Pair, context: Context) -> PairView | None:
    shown = builder.show(pair, context)
    return None if isinstance(shown, Unfit) else shown.view
