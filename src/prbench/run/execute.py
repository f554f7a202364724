"""Executing a run: claim the folder, write plans, ask what is not known yet, conclude.

Everything goes through a run folder, also an evaluation that keeps nothing (its folder is a temporary one): there is
one path, and it is the one that is tested with `kill -9`.
"""

import shutil
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import Field

from prbench.calls import Asker, Budget, CallCache, InProcess, Spending, Workers, open_asker
from prbench.calls.budget import FILE as SPEND
from prbench.config import digest
from prbench.errors import ConfigError, PrbenchError, RunError
from prbench.files import Appender, exists
from prbench.models import Jury, Replay, is_instant
from prbench.results import (
    QUALITY,
    BaselineScores,
    MadeRecord,
    PairRows,
    Records,
    Result,
    RunFolder,
    Timing,
    contradictions,
    read_plans,
    read_result,
    recompute,
    seal,
)
from prbench.results.measured import latencies, paid_usd, write_measured
from prbench.results.parquet import TABLE, write_parquet
from prbench.run.engine import Engine, RecordListener
from prbench.run.plans import make_plans, measure_plans
from prbench.run.progress import RecordProgress
from prbench.run.replay import replay_records
from prbench.run.session import Session
from prbench.run.work import OpenWork, Planning
from prbench.types import Record

Json = dict[str, Any]
Listening = Callable[[OpenWork, int], RecordListener | None]
"""Given the open work and the number of records there already, returns who hears of each new record."""


class Evaluation(Result):
    """A result, with the records behind it and where it is kept."""

    records: Sequence[Record] = Field(exclude=True)
    """Made one by one as they are looked at."""
    folder: Path | None = Field(exclude=True)
    """Folder where the run is kept; None where it is not."""

    @classmethod
    def of(cls, result: Result, records: Records, folder: Path | None) -> "Evaluation":
        """Put a result and its records together."""
        fields = {name: getattr(result, name) for name in result.model_fields_set}
        # Both were checked when they were made.
        return cls.model_construct(**fields, records=records, folder=folder)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={found.accuracy.value}" for name, found in self.contexts.items())
        return f"Evaluation({self.model.address!r}: {values}; {len(self.records):,} records)"

    __str__ = __repr__


def execute(
    session: Session,
    folder: RunFolder,
    *,
    cache: CallCache | None = None,
    listening: Listening | None = None,
    planning: Planning | None = None,
    max_cost_usd: float | None = None,
    fresh: bool = False,
    workers: Workers | None = None,
) -> Evaluation:
    """Make every record that is missing, then every aggregate.

    Args:
        session: Session to run.
        folder: Where it is kept; a run that is there already is continued, another one is refused.
        cache: Answers of earlier runs.
        listening: Who hears of each record.
        planning: Who hears how far planning is, before the first call.
        max_cost_usd: Stop, resumably, when this run has cost so much.
        fresh: Ask everything anew; what was there is kept aside.
        workers: How many copies of the model answer; default: the one that is open here.
    """
    asker = open_asker(workers or Workers(), session.model, session.address, session.config.options)
    if session.adapts and not isinstance(asker, InProcess):
        raise ConfigError(
            "a model that is fitted to labelled pairs cannot be shared out",
            hint="leave out --workers and --engine, or the context pairs@K",
        )
    new = not exists(folder.path, raises=RunError)
    with folder.locked():
        try:
            return _execute(session, folder, asker, cache, listening, planning, max_cost_usd, fresh)
        except PrbenchError:
            if new and not _has_begun(folder):  # a refusal leaves nothing behind
                shutil.rmtree(folder.path, ignore_errors=True)
            raise


def _execute(
    session: Session,
    folder: RunFolder,
    asker: Asker,
    cache: CallCache | None,
    listening: Listening | None,
    planning: Planning | None,
    max_cost_usd: float | None,
    fresh: bool,
) -> Evaluation:
    claimed = claim(session, folder)
    if fresh:
        folder.set_aside(["records.jsonl", "plans.jsonl", QUALITY, SPEND])
    started = time.perf_counter()
    records = folder.records()
    read = session.model.verdict if isinstance(session.model, Jury) else None
    instant = is_instant(session.model)
    kept = None if instant else cache
    with open_budget(folder, max_cost_usd, records) as budget:
        make_plans(session, folder, cache, budget)
        measure_plans(session, folder)
        with Appender(folder.records_path) as appender:
            engine = Engine(session.model.card, asker, kept, _keeper(records, appender), budget, read, instant)
            _make_records(session, engine, records, listening, planning)
    elapsed_s = time.perf_counter() - started
    timing = _timing(records, engine, elapsed_s)
    if not engine.asked and (before := _finished_before(folder)):
        timing = timing.model_copy(update={"finished": before})
    result = recompute(folder, records, *claimed).model_copy(update={"timing": timing})
    write_measured(folder, timing)
    folder.write_json("result.json", result.to_json())
    write_parquet(folder.path / TABLE, records)
    if not any(contradictions(records)):
        seal(folder)  # computed from these very records by the function that verifies
    return Evaluation.of(result, records, folder.path)


def _has_begun(folder: RunFolder) -> bool:
    """Whether a run has anything to keep: records, plans, or money that was spent before the first of them."""
    records = folder.records()
    return bool(len(records) or read_plans(folder) or open_budget(folder, None, records).spent_usd)


def open_budget(folder: RunFolder, max_cost_usd: float | None, records: Records) -> Budget:
    """Open the budget of a run: its cost over all its starts, and its limit."""
    spent = paid_usd(records, read_plans(folder).values())
    return Budget(folder.path / SPEND, max_cost_usd, spent_usd=spent)


def check_claim(session: Session, folder: RunFolder) -> None:
    """Refuse a folder that holds another run."""
    if (folder.path / "config.toml").is_file() and folder.read_config().get("digest") != digest(session.identity):
        raise RunError(
            f"{str(folder.path)!r} holds another run (its configuration, suite or model differs)",
            hint="give this run its own folder with -o, or leave -o out",
        )


def claim(session: Session, folder: RunFolder) -> tuple[PairRows, BaselineScores]:
    """Write what this run is, or find that it is this run already; returns its pairs and what the baselines scored."""
    check_claim(session, folder)
    rows, baselines = session.rows, session.baselines()
    folder.write_lines("pairs.jsonl", rows)
    folder.write_lines("baselines.jsonl", baselines)
    folder.write_json("run.json", session.facts.model_dump(mode="json"))
    folder.write_json("dataset.json", session.suite.record.model_dump(mode="json"))
    # Last: a folder with a configuration is a run.
    folder.write_config({"digest": digest(session.identity), **session.config.model_dump(mode="json")})
    return rows, baselines


def _keeper(records: Records, appender: Appender) -> Callable[[Sequence[MadeRecord]], None]:
    def keep(made: Sequence[MadeRecord]) -> None:
        records.keep(made)
        appender.add(records.written(made), len(made))

    return keep


def _make_records(
    session: Session,
    engine: Engine,
    records: Records,
    listening: Listening | None,
    planning: Planning | None,
) -> None:
    model = session.model
    if isinstance(model, Replay):
        engine.keep([MadeRecord.of(one) for one in replay_records(model, session.suite, session.contexts, records)])
        return
    work = session.work(records, planning)
    engine.listener = None if listening is None else listening(work, len(records))
    if isinstance(engine.listener, RecordProgress):
        engine.listener.watch(engine.asker)
    engine.execute(work)


def _timing(records: Records, engine: Engine, elapsed_s: float) -> Timing:
    """Return the measurements taken while the run was made."""
    spending = engine.budget.spending
    return Timing(
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        elapsed_s=round(elapsed_s, 3),
        calls_asked=engine.asked,
        spent_usd=spending.spent_usd,
        **_marks(spending),
        tokens_per_s=round(engine.tokens / elapsed_s, 1) if engine.tokens else None,
        note=engine.asker.note if engine.asked else None,
        **_effort(engine.asker),
        **latencies(records),
    )


def _marks(spending: Spending) -> Json:
    """Return what else is known of the money, where there is something to say."""
    marks: Json = {"retries": spending.retries} if spending.retries else {}
    if spending.unsettled:
        marks |= {"unsettled_calls": spending.unsettled, "unsettled_usd": spending.unsettled_usd}
    return marks


def _finished_before(folder: RunFolder) -> str | None:
    """Return the time when an earlier command finished this run; a damaged result says nothing."""
    try:
        return read_result(folder).finished
    except RunError:
        return None


def _effort(asker: Asker) -> Json:
    """Return what a local model computed, and its speed for this machine; null where it is not counted."""
    effort = asker.effort
    peak = asker.peak_flops if effort.flops else None
    return {
        "tokens_naive": effort.naive_tokens or None,
        "tokens_computed": effort.computed_tokens or None,
        "passes_s": effort.seconds or None,
        "computed_tokens_per_s": effort.tokens_per_s or None,
        "flops": effort.flops or None,
        "flops_per_s": effort.flops_per_s,
        "peak_flops_per_s": peak,
        "peak_share": effort.share_of(peak),
    }
