"""Columns that the pair browser reads, made from runs and texts.

What lists and filters need is one small block, each model's records are a block of their own, texts lie in pools.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from prbench.report.page.evidence import ReportedRun, ReportEvidence
from prbench.report.page.pools import Pools, written_size
from prbench.report.page.texts import Reconstruction, Reconstructions, Texts, dropped_positions
from prbench.report.payload import Array, Block, BlockWriter, floats, smallest
from prbench.results import MadeRecord, PairRow
from prbench.types import Context

NO_VERDICT, NOT_ASKED = 255, 254
"""Codes beside credits, which go from 0 to 200."""
_VERDICTS = {"first": 0, "second": 1, "tie": 2}
_STATUSES = {"invalid": 3, "failed": 4}
_NO_RECORD = 5

Json = dict[str, Any]
Slot = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Payload:
    """Everything of a page that the browser unpacks."""

    index: Json
    blocks: tuple[Block, ...]
    notes: tuple[str, ...]


def pack(evidence: ReportEvidence, texts: Texts, *, room: int) -> Payload:
    """Pack runs and texts; texts get what is left of so many bytes."""
    pools = Pools()
    core = _core(evidence, texts, pools)
    rebuilt = Reconstructions(texts)
    models = [
        _model(number, entry, evidence, rebuilt.of(entry), texts, pools)
        for number, entry in enumerate(evidence.entries)
    ]
    people = BlockWriter("people")
    people.json("profiles", pools.profiles)
    people.json("post_ids", pools.post_ids)
    people.array("post_texts", smallest(pools.post_texts))
    fixed = [core, people.pack(), *(block for _, block in models)]
    fitted = pools.fit(room - written_size({"fixed": fixed}))
    blocks = [*fixed, *(block for found in fitted.blocks.values() for block in found)]
    index = {
        "pairs": len(evidence.shown),
        "texts": bool(texts.pairs),
        "contexts": [{"name": name, "leaks": Context.parse(name).leaks} for name in evidence.contexts],
        "models": [facts for facts, _ in models],
        "pools": {name: [block.id for block in found] for name, found in fitted.blocks.items()},
        "blocks": {block.id: block.parts for block in blocks},
    }
    return Payload(index, tuple(blocks), (*_sampled(evidence), *fitted.notes))


def _sampled(evidence: ReportEvidence) -> Iterator[str]:
    """Say what the list holds where it does not hold all."""
    if len(evidence.shown) < len(evidence.rows):
        yield (
            f"The list holds {len(evidence.shown):,} of {len(evidence.rows):,} pairs, a sample with categories and "
            "axes in proportion, couples whole. Every number of the other sections rests on all pairs."
        )


def _core(evidence: ReportEvidence, texts: Texts, pools: Pools) -> Block:
    """Return the block that the list, the filters and a pair's own texts need."""
    rows = evidence.shown
    writer = BlockWriter("core")
    writer.json("ids", [row.id for row in rows])
    for name, labels in _labels(rows):
        words = sorted(set(labels))
        place = {word: number for number, word in enumerate(words)}
        writer.json(f"{name}_words", words)
        writer.array(name, smallest(place[label] for label in labels))
    writer.array("twin", smallest(_twins(rows)))
    pairs = [texts.pairs.get(row.id) for row in rows]
    writer.array("question", smallest(pools.questions.add(pair.question) if pair else 0 for pair in pairs))
    writer.array("chosen", smallest(pools.answers.add(pair.chosen) if pair else 0 for pair in pairs))
    writer.array("rejected", smallest(pools.answers.add(pair.rejected) if pair else 0 for pair in pairs))
    writer.array("rubric", smallest(pools.rubric(pair) if pair else 0 for pair in pairs))
    writer.array("profile", smallest(pools.profile(pair.profile) if pair else 0 for pair in pairs))
    for number, entry in enumerate(evidence.entries):
        for context in entry.facts.contexts:
            writer.array(f"credit.{number}.{context}", _credits(entry, context, rows))
    return writer.pack()


def _labels(rows: Sequence[PairRow]) -> Iterator[tuple[str, list[str]]]:
    yield "user", [row.user for row in rows]
    yield "category", [row.category for row in rows]
    for tag in ("axis", "pole", "split"):
        yield tag, [row.tags.get(tag, "") for row in rows]


def _twins(rows: Sequence[PairRow]) -> list[int]:
    """Return for each pair one more than the number of the pair with the same answers swapped; 0 for none."""
    halves: dict[str, list[int]] = {}
    for number, row in enumerate(rows):
        if mirror := row.tags.get("mirror"):
            halves.setdefault(mirror, []).append(number)
    twins = [0] * len(rows)
    for group in halves.values():
        if len(group) == 2:
            one, two = group
            twins[one], twins[two] = two + 1, one + 1
    return twins


def _credits(entry: ReportedRun, context: str, rows: Sequence[PairRow]) -> Array:
    found = entry.credits[context].rows
    codes = np.full(len(entry.rows) + 1, NO_VERDICT, dtype=np.uint8)
    codes[found.places] = np.rint(200 * found.credit).astype(np.uint8)
    codes[-1] = NOT_ASKED
    place = entry.rows.place
    shown: Array = codes[[place.get(row.id, -1) for row in rows]]
    return shown


def _model(
    number: int,
    entry: ReportedRun,
    evidence: ReportEvidence,
    rebuilt: Reconstruction | None,
    texts: Texts,
    pools: Pools,
) -> tuple[Json, Block]:
    """A model's records, context by context, and what the index says of them."""
    writer = BlockWriter(f"model-{number}")
    reasons: dict[str, int] = {"": 0}
    slots: dict[str, list[list[Any]]] = {}
    shown = {row.id for row in evidence.shown}
    for context in entry.facts.contexts:
        records = entry.records_of(context, shown)
        groups = [records.get(row.id, ()) for row in evidence.shown]
        slots[context] = []
        for order, repeat in _slots(groups):
            key = f"{context}.{order}.{repeat}"
            _write_records(writer, key, [_pick(group, order, repeat) for group in groups], reasons, pools)
            slots[context].append([order, repeat, key])
        if rebuilt is not None:
            _write_shown(writer, context, groups, evidence.shown, rebuilt, texts, pools)
    writer.json("reasons", list(reasons))
    card = entry.facts.card
    facts = {"label": entry.label, "revision": card.revision, "unsupported": list(entry.facts.unsupported)}
    return {**facts, "contexts": list(entry.facts.contexts), "slots": slots}, writer.pack()


def _slots(groups: Sequence[Sequence[MadeRecord]]) -> list[Slot]:
    found = {(record.order, record.repeat) for group in groups for record in group}
    return sorted(found, key=lambda slot: (slot[1], slot[0]))


def _pick(group: Sequence[MadeRecord], order: str, repeat: int) -> MadeRecord | None:
    return next((record for record in group if record.order == order and record.repeat == repeat), None)


def _write_records(
    writer: BlockWriter, key: str, records: Sequence[MadeRecord | None], reasons: dict[str, int], pools: Pools
) -> None:
    writer.array(f"{key}.verdict", np.array([_verdict(record) for record in records], dtype=np.uint8))
    for name in ("chosen_score", "rejected_score", "margin"):
        values = [getattr(record, name) if record else None for record in records]
        if any(value is not None for value in values):
            writer.array(f"{key}.{name}", floats(values))
    words = [pools.reply(record.raw) if record else 0 for record in records]
    if any(words):
        writer.array(f"{key}.words", smallest(words))
    why = [reasons.setdefault(record.reason, len(reasons)) if record else 0 for record in records]
    if any(why):
        writer.array(f"{key}.reason", smallest(why))


def _verdict(record: MadeRecord | None) -> int:
    if record is None:
        return _NO_RECORD
    if record.status != "ok" or record.verdict is None:
        return _STATUSES.get(record.status, _NO_RECORD)
    return _VERDICTS[record.verdict]


def _write_shown(
    writer: BlockWriter,
    context: str,
    groups: Sequence[Sequence[MadeRecord]],
    rows: Sequence[PairRow],
    rebuilt: Reconstruction,
    texts: Texts,
    pools: Pools,
) -> None:
    """Write which posts stood to choose from (their number plus 1, 0 if not known), whose, and which were left out."""
    users: dict[str, int] = {"": 0}
    gone: dict[tuple[int, ...], int] = {(): 0}
    shown, who, dropped = [0] * len(rows), [0] * len(rows), [0] * len(rows)
    for number, (row, group) in enumerate(zip(rows, groups, strict=True)):
        pair = texts.pairs.get(row.id)
        found = rebuilt.shown(pair, group[0]) if pair and group else None
        if found is not None:
            shown[number] = 1 + pools.profile(found.posts)
            who[number] = users.setdefault(found.user or "", len(users))
            left_out = tuple(dropped_positions(found.posts, group[0].dropped)) if group[0].dropped else ()
            dropped[number] = gone.setdefault(left_out, len(gone))
    writer.array(f"{context}.shown", smallest(shown))
    writer.array(f"{context}.who", smallest(who))
    writer.array(f"{context}.dropped", smallest(dropped))
    writer.json(f"{context}.users", list(users))
    writer.json(f"{context}.gone", [list(positions) for positions in gone])
