"""Executing a run: claim the folder, write plans, ask what is not known yet, conclude.

Everything goes through a run folder, also an evaluation that keeps nothing (its folder is a temporary one): there is
one path, and it is the one that is tested with `kill -9`.
"""

import json
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from prbench import stats
from prbench.config import RunConfig, digest
from prbench.errors import RunError
from prbench.plan import Plan
from prbench.run.calls import CallCache
from prbench.run.credits import PairRow
from prbench.run.engine import Engine, Listener
from prbench.run.replay import Replay, replay_records
from prbench.run.result import BaselineScore, RunFacts, compute_result
from prbench.run.session import Session
from prbench.run.store import RecordWriter, RunFolder, whole_lines
from prbench.run.work import Slot, Work
from prbench.types import Record

Json = dict[str, Any]
Listening = Callable[[Work, int], Listener | None]
"""Given the open work and the number of records there already, returns who hears of each new record."""


class Evaluation(NamedTuple):
    """What an evaluation leaves behind."""

    result: Json
    """`{"result": …, "baselines": …}`, as in `result.json`."""
    records: tuple[Record, ...]
    folder: Path


def execute(
    session: Session,
    folder: RunFolder,
    *,
    cache: CallCache | None = None,
    listening: Listening | None = None,
    max_cost_usd: float | None = None,
) -> Evaluation:
    """Make every record that is missing, then every aggregate.

    Args:
        session: What to run.
        folder: Where it is kept; a run that is there already is continued, another one is refused.
        cache: Answers of earlier runs.
        listening: Who hears of each record.
        max_cost_usd: Stop, resumably, before more than this is spent.
    """
    with folder.open_for_writing() as writer:
        claim(session, folder)
        started = time.perf_counter()
        _make_plans(session, folder)
        records = folder.records()
        engine = _make_records(session, writer, records, cache, listening, max_cost_usd)
        elapsed_s = time.perf_counter() - started
        result = recompute(folder, records.values())
        result["result"]["timing"] = _timing(records.values(), engine, elapsed_s)
        folder.write_json("result.json", result)
        write_parquet(folder.path / "records.parquet", records.values())
    return Evaluation(result, tuple(records.values()), folder.path)


def claim(session: Session, folder: RunFolder) -> None:
    """Write what this run is, or find that it is this run already."""
    mark = digest(session.identity)
    if (folder.path / "config.toml").is_file():
        found = folder.read_config().get("digest")
        if found != mark:
            raise RunError(
                f"{str(folder.path)!r} holds another run (its configuration, suite or model differs)",
                hint="give this run its own folder with -o, or leave -o out",
            )
    config = session.config.model_dump(mode="json")
    folder.write_lines("pairs.jsonl", session.rows)
    folder.write_lines("baselines.jsonl", session.baselines())
    folder.write_json("run.json", session.facts.model_dump(mode="json"))
    folder.write_json("dataset.json", session.suite.record.model_dump(mode="json"))
    folder.write_config({"digest": mark, **config})  # last: a folder with a configuration is a run


def recompute(folder: RunFolder, records: Iterable[Record] | None = None) -> Json:
    """All aggregates of a run from the files in its folder."""
    config = RunConfig.model_validate({k: v for k, v in folder.read_config().items() if k != "digest"})
    return compute_result(
        config,
        RunFacts.model_validate(folder.read_json("run.json")),
        [PairRow.model_validate_json(line) for _, line in whole_lines(folder.path / "pairs.jsonl")],
        folder.records().values() if records is None else records,
        [BaselineScore.model_validate_json(line) for _, line in whole_lines(folder.path / "baselines.jsonl")],
    )


def _make_plans(session: Session, folder: RunFolder) -> None:
    """Write the plans that are missing, one line each as they come."""
    planner = session.planner
    if planner is None:
        return
    path = folder.path / "plans.jsonl"
    for _, line in whole_lines(path):
        plan = Plan.model_validate_json(line)
        session.plans[plan.key] = plan
    missing = [
        pair
        for pair in session.suite
        if (known := session.plans.get(planner.key(pair))) is None or known.status == "failed"
    ]
    with path.open("a", encoding="utf-8") as handle:
        for plan in planner.plan(missing):
            session.plans[plan.key] = plan
            handle.write(plan.model_dump_json() + "\n")
            handle.flush()


def _make_records(
    session: Session,
    writer: RecordWriter,
    records: dict[Slot, Record],
    cache: CallCache | None,
    listening: Listening | None,
    max_cost_usd: float | None,
) -> Engine:
    counted = {key for record in records.values() if record.status != "failed" for key in record.calls}

    def keep(record: Record) -> None:
        records[record.slot] = record
        writer.append(record)

    engine = Engine(session.model, cache, keep, counted=counted, max_cost_usd=max_cost_usd)
    if isinstance(session.model, Replay):
        done = dict(records)
        for record in replay_records(session.model, session.suite, session.contexts, session.config.repeats, done):
            keep(record)
        return engine
    work = session.work(records)
    engine.listener = None if listening is None else listening(work, len(records))
    if work.calls and hasattr(session.model, "prepare"):
        session.model.prepare()
    engine.execute(work)
    return engine


def _timing(records: Iterable[Record], engine: Engine, elapsed_s: float) -> Json:
    """Measured, not computed: left out when a run is verified."""
    latencies = [record.latency_ms for record in records if record.status == "ok" and record.latency_ms > 0]
    return {
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "elapsed_s": round(elapsed_s, 3),
        "calls_asked": engine.asked,
        "spent_usd": engine.spent_usd,
        "tokens_per_s": round(engine.tokens / elapsed_s, 1) if engine.tokens else None,
        "latency_ms_p50": stats.quantile(latencies, 0.5).to_json() if latencies else None,
        "latency_ms_p95": stats.quantile(latencies, 0.95).to_json() if latencies else None,
    }


def write_parquet(path: Path, records: Iterable[Record]) -> None:
    """The records as one table, for other tools."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    rows = [json.loads(record.model_dump_json()) for record in records]
    columns = {name: [row[name] for row in rows] for name in Record.model_fields}
    partial = path.with_suffix(".partial")
    parquet.write_table(arrow.table({name: _column(name, values) for name, values in columns.items()}), partial)
    partial.replace(path)


def _column(name: str, values: list[Any]) -> Any:
    import pyarrow as arrow

    floats = ("chosen_score", "rejected_score", "margin", "latency_ms", "cost_usd")
    lists = ("dropped", "raw", "calls")
    integers = ("repeat", "posts", "tokens_in", "tokens_out")
    if name in floats:
        return arrow.array(values, arrow.float64())
    if name in lists:
        return arrow.array(values, arrow.list_(arrow.string()))
    return arrow.array(values, arrow.int64() if name in integers else arrow.string())
