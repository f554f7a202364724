"""Parquet and CSV: one row for each record, joined with what is known of its pair; every column flat."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prbench.data import load_pairs
from prbench.errors import DataError
from prbench.files import replacing
from prbench.report.finished import Finished
from prbench.results import PairRows, Records
from prbench.results.records import Use

Columns = dict[str, Sequence[Any]]
_INTEGERS = frozenset(
    {"chosen_words", "rejected_words", "repeat", "posts", "posts_dropped", "calls", "tokens_in", "tokens_out"}
)
_FLOATS = frozenset({"credit", "chosen_score", "rejected_score", "margin", "latency_ms", "cost_usd"})
_SUMMED = ("tokens_in", "tokens_out", "latency_ms", "cost_usd")
_AS_KEPT = ("context", "order", "repeat", "status", "reason", "verdict")


def write_parquet(run: Finished, out: Path, *, texts: bool = False) -> None:
    """Write the rows as a Parquet file."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    columns = flat_columns(run, texts=texts)
    with replacing(out) as partial:
        found = {name: arrow.array(column, _type(name)) for name, column in columns.items()}
        parquet.write_table(arrow.table(found), partial)


def write_csv(run: Finished, out: Path, *, texts: bool = False) -> None:
    """Write the rows as CSV; what is not known is an empty cell."""
    columns = flat_columns(run, texts=texts)
    with replacing(out) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def flat_columns(run: Finished, *, texts: bool = False) -> Columns:
    """All records by column, in a fixed order, whatever the order in which they were made; none where there are none.

    Args:
        run: Run to write.
        texts: Whether question and answers stand in each row; they come from the suite, which must be the same still.
    """
    slots = list(run.records.slots())
    order = sorted(range(len(slots)), key=slots.__getitem__)
    if not order:
        return {}
    places = [run.rows.place[slots[number][0]] for number in order]
    words = _texts(run) if texts else {}
    of_pairs = {**_pairs(run.rows), **words}
    return {
        **{name: [value] * len(order) for name, value in _whole(run).items()},
        **{name: [column[place] for place in places] for name, column in of_pairs.items()},
        **{name: [column[number] for number in order] for name, column in _records(run.records).items()},
    }


def _texts(run: Finished) -> Columns:
    config = run.loaded.config
    suite = load_pairs(config.suite, columns=config.columns or None, revision=config.revision)
    place = {id: at for at, id in enumerate(suite.column("id"))}
    now = PairRows.of_suite(suite).column("answers")
    there = [place.get(id, -1) for id in run.rows.column("id")]
    for id, at, answers in zip(run.rows.column("id"), there, run.rows.column("answers"), strict=True):
        if at < 0 or now[at] != answers:
            raise DataError(
                f"pair {id!r} is another one in {config.suite!r} now than when the run was made",
                hint="bring back the suite as it was, or leave --texts out",
            )
    return {name: [suite.column(name)[at] for at in there] for name in ("question", "chosen", "rejected")}


def _whole(run: Finished) -> dict[str, str | None]:
    facts = run.loaded.facts
    return {
        "suite": facts.dataset.name,
        "suite_fingerprint": facts.dataset.fingerprint,
        "model": facts.card.address,
        "model_revision": facts.card.revision,
    }


def _pairs(rows: PairRows) -> Columns:
    tags = sorted({tag for keys in {keys for keys, _ in rows.column("tags")} for tag in keys})
    return {
        "pair": rows.column("id"),
        "user": rows.column("user"),
        "question_hash": rows.column("question"),
        "answers_hash": rows.column("answers"),
        "category": rows.column("category"),
        **{f"tag_{tag}": rows.tag(tag) for tag in tags},
        "chosen_words": rows.column("chosen_words"),
        "rejected_words": rows.column("rejected_words"),
    }


def _records(records: Records) -> Columns:
    uses = [[Use(*taken) for _, taken in calls] for calls in records.column("calls")]
    scores = {name: _known(records.column(name)) for name in ("chosen_score", "rejected_score", "margin")}
    summed = {name: [sum(getattr(use, name) for use in one) for one in uses] for name in _SUMMED}
    return {
        **{name: records.column(name) for name in _AS_KEPT},
        "credit": _known(records.earned.tolist()),
        **scores,
        "shown_user": records.column("shown_user"),
        "posts": records.column("posts"),
        "posts_dropped": list(map(len, records.column("dropped"))),
        "raw": ["\n\n".join(raw) for raw in records.column("raw")],
        "calls": list(map(len, uses)),
        **summed,
    }


def _known(column: Sequence[float]) -> list[float | None]:
    """Numbers with None in place of NaN."""
    return [None if value != value else value for value in column]


def _type(name: str) -> Any:
    import pyarrow as arrow

    if name in _FLOATS:
        return arrow.float64()
    return arrow.int64() if name in _INTEGERS else arrow.string()
