"""Parquet and CSV: one row for each record, joined with what is known of its pair; every column flat."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from prbench.data import load_pairs
from prbench.errors import DataError
from prbench.files import replacing, write_whole
from prbench.report.finished import Finished
from prbench.results import PairRow
from prbench.types import Record

Row = dict[str, Any]
_INTEGERS = frozenset(
    {"chosen_words", "rejected_words", "repeat", "posts", "posts_dropped", "calls", "tokens_in", "tokens_out"}
)
_FLOATS = frozenset({"credit", "chosen_score", "rejected_score", "margin", "latency_ms", "cost_usd"})


def write_parquet(run: Finished, out: Path, *, texts: bool = False) -> None:
    """Write the rows as a Parquet file."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    rows = flat_rows(run, texts=texts)
    columns = {name: arrow.array([row[name] for row in rows], _type(name)) for name in rows[0]} if rows else {}
    with replacing(out) as partial:
        parquet.write_table(arrow.table(columns), partial)


def write_csv(run: Finished, out: Path, *, texts: bool = False) -> None:
    """Write the rows as CSV; what is not known is an empty cell."""
    rows = flat_rows(run, texts=texts)
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(out, buffer.getvalue())


def flat_rows(run: Finished, *, texts: bool = False) -> list[Row]:
    """All records in a fixed order, whatever the order in which they were made.

    Args:
        run: Run to write.
        texts: Whether question and answers stand in each row; they come from the suite, which must be the same still.
    """
    pairs = {row.id: row for row in run.rows}
    tags = sorted({tag for row in pairs.values() for tag in row.tags})
    whole = _whole(run)
    records = sorted(run.records, key=lambda record: record.slot)
    words = _texts(run, pairs) if texts else {}
    return [
        {**whole, **_pair(pairs[record.pair], tags), **words.get(record.pair, {}), **_record(record)}
        for record in records
    ]


def _texts(run: Finished, rows: Mapping[str, PairRow]) -> dict[str, Row]:
    config = run.loaded.config
    suite = load_pairs(config.suite, columns=config.columns or None, revision=config.revision)
    found = {pair.id: pair for pair in suite if pair.id in rows}
    for row in rows.values():
        pair = found.get(row.id)
        if pair is None or PairRow.of(pair).answers != row.answers:
            raise DataError(
                f"pair {row.id!r} is another one in {config.suite!r} now than when the run was made",
                hint="bring back the suite as it was, or leave --texts out",
            )
    return {
        name: {"question": pair.question, "chosen": pair.chosen, "rejected": pair.rejected}
        for name, pair in found.items()
    }


def _whole(run: Finished) -> Row:
    facts = run.loaded.facts
    return {
        "suite": facts.dataset.name,
        "suite_fingerprint": facts.dataset.fingerprint,
        "model": facts.card.address,
        "model_revision": facts.card.revision,
    }


def _pair(row: PairRow, tags: Sequence[str]) -> Row:
    return {
        "pair": row.id,
        "user": row.user,
        "question_hash": row.question,
        "answers_hash": row.answers,
        "category": row.category,
        **{f"tag_{tag}": row.tags.get(tag) for tag in tags},
        "chosen_words": row.chosen_words,
        "rejected_words": row.rejected_words,
    }


def _record(record: Record) -> Row:
    return {
        "context": record.context,
        "order": record.order,
        "repeat": record.repeat,
        "status": record.status,
        "reason": record.reason,
        "verdict": record.verdict,
        "credit": record.credit,
        "chosen_score": record.chosen_score,
        "rejected_score": record.rejected_score,
        "margin": record.margin,
        "shown_user": record.shown_user,
        "posts": record.posts,
        "posts_dropped": len(record.dropped),
        "raw": "\n\n".join(record.raw),
        "calls": len(record.calls),
        "tokens_in": sum(call.tokens_in for call in record.calls),
        "tokens_out": sum(call.tokens_out for call in record.calls),
        "latency_ms": record.latency_ms,
        "cost_usd": sum(call.cost_usd for call in record.calls),
    }


def _type(name: str) -> Any:
    import pyarrow as arrow

    if name in _FLOATS:
        return arrow.float64()
    return arrow.int64() if name in _INTEGERS else arrow.string()
