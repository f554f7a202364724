"""An Inspect AI log (JSON, version 2): a sample for each pair, a scorer for each context.

A pair without a verdict has no score there, and is counted as unscored: Inspect, too, keeps a failure out of the mean.
Texts are not kept in a run, so they are read from the suite again; where that is not possible, or its pairs have
changed, the sample says so in place of the question. The rubric is never written.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prbench._version import __version__
from prbench.data import load_pairs
from prbench.errors import PrbenchError
from prbench.files import write_whole
from prbench.report.command import reproduction
from prbench.report.finished import Finished
from prbench.results import Credit, CreditRows, Credits, PairRow, credits_by_context
from prbench.stats.variance import clustered_error
from prbench.types import Pair

Json = dict[str, Any]
NO_TEXT = "(the text of this pair is not available)"


def write(run: Finished, out: Path) -> None:
    """Write the run as an Inspect log."""
    write_whole(out, json.dumps(inspect_log(run), ensure_ascii=False, indent=1, allow_nan=False) + "\n")


def inspect_log(run: Finished) -> Json:
    """The log as JSON values."""
    facts = run.loaded.facts
    credits = credits_by_context(run.rows, run.records, facts.contexts, facts.expected)
    samples = _samples(run, credits, texts_of(run))
    scored = sum(bool(sample["scores"]) for sample in samples)
    return {
        "version": 2,
        "status": "success",
        "eval": _spec(run),
        "plan": {"name": "prbench", "steps": []},
        "results": {
            "total_samples": len(samples),
            "completed_samples": scored,
            "scores": [_score(run, name, found) for name, found in credits.items()],
        },
        "stats": {"started_at": _finished(run), "completed_at": _finished(run), "model_usage": _usage(run)},
        "samples": samples,
    }


def texts_of(run: Finished) -> Mapping[str, Pair]:
    """The suite's pairs by id, as far as they can be read again and are the very pairs of the run."""
    config = run.loaded.config
    try:
        suite = load_pairs(config.suite, columns=config.columns or None, revision=config.revision)
    except (PrbenchError, OSError):
        return {}
    known = dict(zip(run.rows.column("id"), run.rows.contents, strict=True))
    return {pair.id: pair for pair in suite if known.get(pair.id) == PairRow.of(pair).content}


def _spec(run: Finished) -> Json:
    config, facts = run.loaded.config, run.loaded.facts
    identity = run.records_fingerprint[:22]
    dataset = facts.dataset
    metadata = {
        "command": reproduction(config),
        "records_fingerprint": run.records_fingerprint,
        "suite_fingerprint": dataset.fingerprint,
        "model_revision": facts.card.revision,
        "split": config.split,
    }
    return {
        "eval_id": identity,
        "run_id": identity,
        "task_id": identity,
        "created": _finished(run),
        "task": f"prbench/{dataset.name}",
        "task_version": run.result.prbench,
        "task_args": {"contexts": list(config.contexts), "split": config.split, "seed": config.seed},
        "dataset": {
            "name": dataset.name,
            "location": dataset.source,
            "samples": dataset.counts.pairs,
            "sample_ids": list(run.rows.column("id")),
            "shuffled": False,
        },
        "model": facts.card.address,
        "config": {"limit": config.limit, "epochs": 1},
        "packages": {"personalized-rewardbench": __version__},
        "metadata": metadata,
        "scorers": [{"name": name, "metrics": [{"name": "accuracy"}, {"name": "stderr"}]} for name in facts.contexts],
    }


def _score(run: Finished, name: str, credits: Credits) -> Json:
    context = run.result.contexts[name]
    accuracy = context.accuracy
    metrics = {"accuracy": accuracy.value, "strict_accuracy": context.strict_accuracy.value}
    bounds = {"accuracy_low": accuracy.low, "accuracy_high": accuracy.high}
    values: Json = {**metrics, **bounds, "stderr": _stderr(credits.rows)}
    return {
        "name": name,
        "scorer": name,
        "scored_samples": accuracy.n,
        "unscored_samples": credits.missing,
        "params": {"context": name},
        "metrics": {key: {"name": key, "value": value} for key, value in values.items() if value is not None},
        "metadata": {"leaks": context.leaks, "interval": "95 %, clustered by user and question"},
    }


def _stderr(rows: CreditRows) -> float | None:
    """Standard error of the mean, clustered as the intervals are; None where one cluster is all there is."""
    if not len(rows) or rows.clusters.units < 2:
        return None
    return clustered_error(rows.credit, rows.clusters)


def _samples(run: Finished, credits: Mapping[str, Credits], texts: Mapping[str, Pair]) -> list[Json]:
    earned: dict[str, Json] = {name: {} for name in run.rows.column("id")}
    for name, found in credits.items():
        for credit in found.rows:
            earned[credit.row.id][name] = _sample_score(credit)
    return [_sample(row, earned[row.id], texts.get(row.id)) for row in run.rows]


def _sample(row: PairRow, scores: Json, pair: Pair | None) -> Json:
    return {
        "id": row.id,
        "epoch": 1,
        "input": NO_TEXT if pair is None else pair.question,
        "choices": None if pair is None else [pair.chosen, pair.rejected],
        "target": "A",
        "messages": [],
        "output": {"model": "", "choices": []},
        "scores": scores,
        "metadata": {"user": row.user, "category": row.category, **row.tags},
        "store": {},
        "events": [],
        "model_usage": {},
        "attachments": {},
    }


def _sample_score(credit: Credit) -> Json:
    words = [text for record in credit.records for text in record.raw if text]
    answer = "A" if credit.credit > 0.5 else "B" if credit.credit < 0.5 else "tie"  # of several repeats, the most
    return {
        "value": credit.credit,
        "answer": answer,
        "explanation": "\n\n".join(words) or None,
        "metadata": {"margin": credit.margin, "strict": credit.strict, "posts": credit.records[0].posts},
    }


def _usage(run: Finished) -> Json:
    tokens_in, tokens_out = run.result.usage.tokens_in, run.result.usage.tokens_out
    if not tokens_in and not tokens_out:
        return {}
    total = {"input_tokens": tokens_in, "output_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}
    return {run.loaded.facts.card.address: total}


def _finished(run: Finished) -> str:
    return run.result.finished
