"""A written suite on disk: pairs as Parquet and JSONL, data card, gate report, rejects, and every reply behind them.

The folder is made beside its place and moved there at the end, so it is there whole or not at all. Nothing in it
depends on when or in how many starts it was made.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from prbench._version import __version__
from prbench.build.card import Exactness, prove_exact
from prbench.build.gates import GateCount, GateReport
from prbench.build.written.card import AspectsCard, Spent, Writer, count_reasons, without_place
from prbench.build.written.journal import CallTotals
from prbench.build.written.replies import Rejection
from prbench.data import Suite, write_pairs
from prbench.errors import ConfigError, DataError
from prbench.files import read_model, replacing_folder, write_whole
from prbench.types import Frozen, Question

ANSWERS, GATE_CALLS = "answers.jsonl", "gate_calls.jsonl"
CARD, GATES, PAIRS, README, REJECTS = "card.json", "gates.json", "pairs.parquet", "README.md", "rejects.jsonl"


class PairsCard(Frozen):
    """`card.json` of a written suite."""

    title: str
    license: str
    pairs: int
    users: int
    questions: int
    """Number of questions that were read; each is a pair or a reject."""
    splits: Mapping[str, int]
    mirrored: Mapping[str, int]
    """Pairs that are halves of a couple, by where the other half comes from: `user` or `written`."""
    mirrored_share: float
    exactness: Exactness | None
    """Exactness of the mirrored pairs; None where there are none."""
    rejected: Mapping[str, Mapping[str, int]]
    """Counts by stage (`answers` or the name of a gate) and reason."""
    gates: tuple[GateCount, ...]
    gates_left_out: tuple[str, ...]
    """Gates that did not look."""
    options: Mapping[str, Any]
    writer: Writer
    spent: Spent
    """Tokens and money spent on writing."""
    spent_on_gates: Spent
    aspects: AspectsCard | None = None
    """Card of the aspects, where that is known."""
    fingerprint: str
    version: str

    @property
    def mirrored_pairs(self) -> int:
        """Pairs that are halves of a couple."""
        return sum(self.mirrored.values())


class Publication(NamedTuple):
    """All that goes into the folder."""

    report: GateReport
    rejects: tuple[tuple[Question, Rejection], ...]
    questions: int
    options: Mapping[str, Any]
    writer: Writer
    spent: CallTotals
    spent_on_gates: CallTotals
    gates_left_out: tuple[str, ...]
    journal: tuple[str, ...]
    gate_calls: tuple[str, ...]
    card: PairsCard | None = None

    @property
    def rejected(self) -> dict[str, dict[str, int]]:
        """Return the count of each reason, by stage."""
        stages: dict[str, list[str]] = {"answers": [why.reason for _, why in self.rejects]}
        for reject in self.report.rejects:
            stages.setdefault(reject.gate, []).append(reject.reason)
        return {stage: count_reasons(reasons) for stage, reasons in stages.items() if reasons}

    @property
    def lost(self) -> str:
        """Return where the questions went, in a few words."""
        parts = [f"{sum(reasons.values()):,} at {stage}" for stage, reasons in self.rejected.items()]
        return ", ".join(parts) or "nothing was written"


def refuse_foreign(folder: Path) -> None:
    """Refuse to use a folder that is neither empty nor made by an earlier start of a build."""
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"--out {str(folder)!r} is a file", hint="name a folder")
    ours = any((folder / name).is_file() for name in (ANSWERS, f".{ANSWERS}.lock", GATE_CALLS))
    if folder.is_dir() and any(folder.iterdir()) and not ours:
        raise ConfigError(
            f"--out {str(folder)!r} holds files of something else", hint="name a new folder, or empty this one"
        )


def publish_nothing(folder: Path, publication: Publication) -> Path:
    """Say why there is no suite: rejects and gate report beside the replies; an earlier suite stays as it is."""
    there = (folder / CARD).is_file()
    rejects = folder / ("rejects.failed.jsonl" if there else REJECTS)
    write_whole(rejects, _lines(_reject_rows(publication)))
    if not there:
        write_whole(folder / GATES, _gate_report(publication))
    return rejects


def publish(folder: Path, publication: Publication, aspects: str | Path) -> Publication:
    """Write the folder whole."""
    from prbench.build.written.readme import readme

    suite = Suite.of((draft.pair() for draft in publication.report.kept), name=folder.resolve().name, source="written")
    card = _card(suite, publication, _aspects_card(Path(aspects)))
    with replacing_folder(folder) as made:
        files = _write_data(made, suite, card)
        write_whole(made / README, readme(card, files))
        write_whole(made / CARD, card.model_dump_json(indent=2) + "\n")
        write_whole(made / GATES, _gate_report(publication))
        write_whole(made / REJECTS, _lines(_reject_rows(publication)))
        write_whole(made / ANSWERS, "".join(f"{line}\n" for line in publication.journal))
        write_whole(made / GATE_CALLS, "".join(f"{line}\n" for line in publication.gate_calls))
    return publication._replace(card=card)


def _write_data(folder: Path, suite: Suite, card: PairsCard) -> dict[str, str]:
    """Parquet and JSONL of everything, and one Parquet file for each split where there are several."""
    write_pairs(suite, folder / PAIRS)
    write_pairs(suite, folder / "pairs.jsonl")
    if len(card.splits) == 1:
        return {next(iter(card.splits)): PAIRS}
    files = {split: f"data/{split}.parquet" for split in card.splits}
    for split, file in files.items():
        write_pairs((pair for pair in suite if pair.tags["split"] == split), folder / file)
    return files


def _card(suite: Suite, publication: Publication, aspects: AspectsCard | None) -> PairsCard:
    halves = Suite.of(pair for pair in suite if "mirror" in pair.tags)
    exactness = prove_exact(halves) if len(halves) else None
    if exactness is not None and not exactness.exact:  # impossible by construction, and must never be written
        raise RuntimeError(f"the mirrored pairs are not exact: {exactness}")
    options = dict(publication.options)
    return PairsCard(
        title=options.pop("title") or suite.record.name,
        license=options.pop("license"),
        pairs=len(suite),
        users=suite.record.counts.users,
        questions=publication.questions,
        splits=suite.record.splits,
        mirrored=dict(sorted(Counter(pair.tags["opposite"] for pair in halves).items())),
        mirrored_share=round(len(halves) / len(suite), 6),
        exactness=exactness,
        rejected=publication.rejected,
        gates=tuple(
            count.model_copy(update={"rule": without_place(count.rule)}) for count in publication.report.counts
        ),
        gates_left_out=publication.gates_left_out,
        options=options,
        writer=publication.writer,
        spent=Spent.of(publication.spent),
        spent_on_gates=Spent.of(publication.spent_on_gates),
        aspects=aspects,
        fingerprint=suite.record.fingerprint,
        version=__version__,
    )


def _aspects_card(aspects: Path) -> AspectsCard | None:
    if not aspects.name:  # `.`, a suite that is built upon where one stands
        return None
    path = aspects.with_name(f"{aspects.name.removesuffix('.jsonl')}.card.json")
    return read_model(path, AspectsCard, raises=DataError, hint="build the aspects again") if path.exists() else None


def _reject_rows(publication: Publication) -> Iterable[dict[str, Any]]:
    for question, why in publication.rejects:
        what = {"id": question.id, "user": question.user, "question": question.question}
        yield {**what, "stage": "answers", "reason": why.reason, "raw": why.raw}
    for reject in publication.report.rejects:
        draft = reject.draft.model_dump(mode="json", include={"id", "user", "question", "chosen", "rejected", "tags"})
        yield {**draft, "stage": reject.gate, "reason": reject.reason}


def _gate_report(publication: Publication) -> str:
    report = {
        "gates": [_gate_row(count) for count in publication.report.counts],
        "left_out": publication.gates_left_out,
        "rejected": publication.rejected,
    }
    return json.dumps(report, ensure_ascii=False, indent=2) + "\n"


def _gate_row(count: GateCount) -> dict[str, Any]:
    return {**count.model_dump(), "rule": without_place(count.rule), "passed": count.passed}


def _lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
