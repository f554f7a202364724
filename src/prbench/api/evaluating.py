"""`evaluate` and `compare`: the two calls most users need."""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from prbench.calls import Workers
from prbench.config import ModelOptions, RunConfig
from prbench.data import Suite
from prbench.models import Model, load_model
from prbench.models.python import wrap
from prbench.results import RunFolder, Versus, load_run, versus
from prbench.run import Evaluation, Running, Session, evaluate_session
from prbench.types import Pair


def evaluate(
    model: Any,
    suite: str | Path | Suite | Iterable[Pair] = "mirror",
    *,
    contexts: str | Sequence[str] = ("none", "profile", "other"),
    split: str | None = "test",
    limit: int | None = None,
    by: Sequence[str] = (),
    seed: int = 0,
    repeats: int = 1,
    both_orders: bool = True,
    planner: str | None = None,
    plans: str | Path | None = None,
    ranker: str = "bm25",
    columns: Mapping[str, str] | None = None,
    resamples: int = 2000,
    out: str | Path | None = None,
    fresh: bool = False,
    cache: bool = True,
    max_cost_usd: float | None = None,
    progress: bool = False,
    allow_unfit: bool = False,
    options: ModelOptions | None = None,
    workers: int | str | None = None,
    engine: str = "local",
) -> Evaluation:
    """Evaluate a reward model or judge on personal pairs.

    Args:
        model: An address (`"hf:DIR"`, `"longer"` …), a Rater, a Comparer, or a function of `(question, answer)`,
            `(question, answer, posts)` or `(question, first, second, posts)`.
        suite: A suite's name, a file, a loaded suite, or pairs.
        contexts: What of the user the model is shown; one that it does not read is listed as unsupported.
        split: Part of the suite; None for all of it.
        limit: At most so many pairs; of a mirrored suite whole couples.
        by: Tags to report groups by, besides the category.
        seed: Of resampling, of `limit` and of the wrong users shown under `other`.
        repeats: How often each question is asked.
        both_orders: Whether a Comparer is shown the answers in both orders.
        planner: Address of the model that writes plans, for the contexts that need them; default: the model itself.
        plans: A file of `prbench plan`, in place of a planner.
        ranker: Who chooses posts: `bm25`, or the address of an encoder.
        columns: Field → column, where your file has other names.
        resamples: Bootstrap resamples behind each interval.
        out: A run folder to keep, continue and compare; None keeps nothing.
        fresh: Ask anew what the run folder and the cache hold already; old records are kept aside.
        cache: Whether to take answers of earlier runs from the cache, and to keep new ones there.
        max_cost_usd: Refuse to start, or stop resumably, where the run would cost more.
        progress: Whether to show progress on standard error.
        allow_unfit: Count pairs that cannot be shown as invalid instead of refusing to start.
        options: Window, template, dtype, concurrency and the like.
        workers: Processes that hold a copy of a model given by address, or `"auto"`; default 1, on Ray `"auto"`.
        engine: `"local"`, or `"ray"` for the actors of a Ray cluster.

    Returns:
        The result (`found.contexts["profile"].accuracy.value`), with all records.

    Example:
        >>> pair = Pair(id="1", user="ann", question="Tea?", chosen="Green.", rejected="Black tea, please.")
        >>> def shorter(question, answer):
        ...     return -len(answer)
        >>> evaluate(shorter, [pair], contexts=["none"]).contexts["none"].accuracy.value
        1.0
    """
    shared = Workers.of(engine, workers)
    opened = open_model(model, options)
    given = _suite(suite)
    config = RunConfig.of(
        suite=given.record.name if given is not None else str(suite),
        split=split,
        model=opened.card.address,
        contexts=contexts,
        limit=limit,
        by=tuple(by),
        seed=seed,
        repeats=repeats,
        orders="both" if both_orders else "first",
        planner=planner,
        plans=plans,
        ranker=ranker,
        columns=columns or {},
        resamples=resamples,
        allow_unfit=allow_unfit,
        options=options or ModelOptions(),
    )
    session = Session(config, model=opened, suite=given, address=model if isinstance(model, str) else None)
    running = Running(shared, cache, fresh, max_cost_usd, quiet=not progress)
    if out is not None:
        return evaluate_session(session, RunFolder(Path(out)), running)
    with tempfile.TemporaryDirectory() as folder:
        found = evaluate_session(session, RunFolder(Path(folder)), running)
    return found.model_copy(update={"folder": None})


def compare(one: str | Path, two: str | Path, context: str | None = None) -> Versus:
    """Compare two finished runs on the pairs both judged: a positive difference favours the first."""
    return versus(load_run(one), load_run(two), context)


def open_model(model: Any, options: ModelOptions | None = None) -> Model:
    """An address, a Rater, a Comparer or a function, as a model."""
    return load_model(model, options) if isinstance(model, str) else wrap(model)


def _suite(suite: str | Path | Suite | Iterable[Pair]) -> Suite | None:
    if isinstance(suite, str | Path):
        return None
    return suite if isinstance(suite, Suite) else Suite.of(suite)
