"""Executing a run: claim the folder, write plans, ask what is not known yet, conclude.

Everything goes through a run folder, also an evaluation that keeps nothing (its folder is a temporary one): there is
one path, and it is the one that is tested with `kill -9`.
"""

import shutil
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from prbench import stats
from prbench.config import RunConfig, digest
from prbench.errors import PrbenchError, RunError
from prbench.run.asking import Asker
from prbench.run.calls import CallCache
from prbench.run.credits import PairRow
from prbench.run.engine import Engine, Listener
from prbench.run.plans import QUALITY, make_plans, measure_plans, read_plans, read_quality
from prbench.run.progress import Progress
from prbench.run.replay import Replay, replay_records
from prbench.run.result import BaselineScore, RunFacts, compute_result, distinct_calls
from prbench.run.session import Session
from prbench.run.staff import Staff, hire
from prbench.run.store import Appender, RunFolder, whole_lines
from prbench.run.table import write_parquet
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
    folder: Path | None
    """Where the run is kept; None where it is not."""

    def accuracy(self, context: str) -> dict[str, Any]:
        """Accuracy in a context, as `{"value", "low", "high", "n"}`."""
        found: dict[str, Any] = self.result["result"]["contexts"][context]["accuracy"]
        return found

    def __repr__(self) -> str:
        contexts = self.result["result"]["contexts"]
        values = ", ".join(f"{name}={found['accuracy']['value']}" for name, found in contexts.items())
        return f"Evaluation({self.result['result']['model']['address']!r}: {values}; {len(self.records):,} records)"


def execute(
    session: Session,
    folder: RunFolder,
    *,
    cache: CallCache | None = None,
    listening: Listening | None = None,
    max_cost_usd: float | None = None,
    fresh: bool = False,
    staff: Staff | None = None,
) -> Evaluation:
    """Make every record that is missing, then every aggregate.

    Args:
        session: What to run.
        folder: Where it is kept; a run that is there already is continued, another one is refused.
        cache: Answers of earlier runs.
        listening: Who hears of each record.
        max_cost_usd: Stop, resumably, when this run has cost so much.
        fresh: Ask everything anew; what was there is kept aside.
        staff: Who asks; default: this process.
    """
    asker = hire(staff or Staff(), session.model, session.address, session.config.options)
    new = not folder.path.exists()
    with folder.locked():
        try:
            return _execute(session, folder, asker, cache, listening, max_cost_usd, fresh)
        except PrbenchError:
            if new and not folder.records() and not read_plans(folder):  # a refusal leaves nothing behind
                shutil.rmtree(folder.path, ignore_errors=True)
            raise


def _execute(
    session: Session,
    folder: RunFolder,
    asker: Asker,
    cache: CallCache | None,
    listening: Listening | None,
    max_cost_usd: float | None,
    fresh: bool,
) -> Evaluation:
    claim(session, folder)
    if fresh:
        folder.set_aside(["records.jsonl", "plans.jsonl", QUALITY])
    started = time.perf_counter()
    spent = make_plans(session, folder, cache, max_cost_usd)
    measure_plans(session, folder)
    records = folder.records()
    spent += sum(call.cost_usd for call in distinct_calls(records.values()) if not call.cached)
    with Appender(folder.records_path) as appender:
        keep = _keeper(records, appender)
        engine = Engine(session.model.card, asker, cache, keep, spent_usd=spent, max_cost_usd=max_cost_usd)
        _make_records(session, engine, records, listening)
    elapsed_s = time.perf_counter() - started
    result = recompute(folder, records.values())
    timing = _timing(session, records.values(), engine, elapsed_s)
    if not engine.asked and (before := _finished_before(folder)):
        timing["finished"] = before
    result["result"]["timing"] = timing
    folder.write_json("result.json", result)
    write_parquet(folder.path / "records.parquet", records.values())
    return Evaluation(result, tuple(records.values()), folder.path)


def check_claim(session: Session, folder: RunFolder) -> None:
    """Refuse a folder that holds another run."""
    if (folder.path / "config.toml").is_file() and folder.read_config().get("digest") != digest(session.identity):
        raise RunError(
            f"{str(folder.path)!r} holds another run (its configuration, suite or model differs)",
            hint="give this run its own folder with -o, or leave -o out",
        )


def claim(session: Session, folder: RunFolder) -> None:
    """Write what this run is, or find that it is this run already."""
    check_claim(session, folder)
    folder.write_lines("pairs.jsonl", session.rows)
    folder.write_lines("baselines.jsonl", session.baselines())
    folder.write_json("run.json", session.facts.model_dump(mode="json"))
    folder.write_json("dataset.json", session.suite.record.model_dump(mode="json"))
    # Last: a folder with a configuration is a run.
    folder.write_config({"digest": digest(session.identity), **session.config.model_dump(mode="json")})


def read_settings(folder: RunFolder) -> RunConfig:
    """The configuration of a run that is there."""
    return RunConfig.model_validate({key: value for key, value in folder.read_config().items() if key != "digest"})


def recompute(folder: RunFolder, records: Iterable[Record] | None = None) -> Json:
    """All aggregates of a run from the files in its folder."""
    return compute_result(
        read_settings(folder),
        RunFacts.model_validate(folder.read_json("run.json")),
        [PairRow.model_validate_json(line) for _, line in whole_lines(folder.path / "pairs.jsonl")],
        folder.records().values() if records is None else records,
        [BaselineScore.model_validate_json(line) for _, line in whole_lines(folder.path / "baselines.jsonl")],
        read_plans(folder).values(),
        read_quality(folder),
    )


def _keeper(records: dict[Slot, Record], appender: Appender) -> Callable[[Record], None]:
    def keep(record: Record) -> None:
        records[record.slot] = record
        appender.append(record)

    return keep


def _make_records(session: Session, engine: Engine, records: dict[Slot, Record], listening: Listening | None) -> None:
    model = session.model
    if isinstance(model, Replay):
        for record in list(replay_records(model, session.suite, session.contexts, records)):
            engine.keep(record)
        return
    work = session.work(records)
    engine.listener = None if listening is None else listening(work, len(records))
    if isinstance(engine.listener, Progress):
        engine.listener.watch(engine.asker)
    engine.execute(work)


def _timing(session: Session, records: Iterable[Record], engine: Engine, elapsed_s: float) -> Json:
    """Measured, not computed: left out when a run is verified."""
    latencies = [record.latency_ms for record in records if record.status == "ok" and record.latency_ms > 0]
    return {
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "elapsed_s": round(elapsed_s, 3),
        "calls_asked": engine.asked,
        "spent_usd": engine.spent_usd,
        "tokens_per_s": round(engine.tokens / elapsed_s, 1) if engine.tokens else None,
        "note": engine.asker.note if engine.asked else None,
        **_effort(engine.asker),
        "latency_ms_p50": stats.quantile(latencies, 0.5).to_json() if latencies else None,
        "latency_ms_p95": stats.quantile(latencies, 0.95).to_json() if latencies else None,
    }


def _finished_before(folder: RunFolder) -> str | None:
    """When an earlier command finished this run; a damaged result is about to be replaced and says nothing."""
    try:
        return str(folder.read_json("result.json")["result"]["timing"]["finished"])
    except (RunError, LookupError, TypeError):
        return None


def _effort(asker: Asker) -> Json:
    """What a local model computed, and how fast for this machine; null where nobody counts."""
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
