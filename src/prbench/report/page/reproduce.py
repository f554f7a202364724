"""Origin of each number of a page, and the commands that get it again."""

import shlex
from typing import NamedTuple

import tomli_w

from prbench.report.command import reproduction
from prbench.report.page.evidence import ReportedRun, ReportEvidence
from prbench.show import Table
from prbench.show.page import Section, fill

_SOURCES = [
    ["Ranking: accuracy, users covered, couples", "result.contexts.CONTEXT.accuracy, .coverage, .couple_coverage"],
    ["Ranking: rank and group", "paired tests over the records of all runs: prbench compare RUN…"],
    ["Contexts, gain, specificity, reversal", "result.contexts.CONTEXT.accuracy, result.effects"],
    ["Groups: category", "result.contexts.CONTEXT.categories"],
    ["Groups: axis", "from the records, when this page is made"],
    ["Users", "result.contexts.CONTEXT.coverage"],
    ["Mirror consistency", "result.contexts.CONTEXT.mirror_consistency"],
    ["Length and position", "result.contexts.CONTEXT.length, .position"],
    ["Calibration", "result.contexts.CONTEXT.calibration"],
    ["Cost and latency", "result.usage (from the records), result.timing (measured)"],
    ["Scores of a pair", "records.jsonl, in single precision"],
]


class Manifest(NamedTuple):
    """Facts that identify a run."""

    label: str
    folder: str
    command: str
    verify: str
    facts: list[tuple[str, str]]
    config: str
    warnings: list[str]


def reproduce_section(evidence: ReportEvidence) -> Section:
    """Each run's manifest, and where each number stands."""
    manifests = [_manifest(entry) for entry in evidence.entries]
    table = Table(
        "Where each number comes from", ["on this page", "in result.json of the run"], _SOURCES, first_numeric=9
    )
    remake = shlex.join(["prbench", "report", *(str(entry.path) for entry in evidence.entries), "-o", "report.html"])
    lead = (
        "Every aggregate follows from the records of its run. prbench verify computes all of them again and compares "
        "to the last digit; equal fingerprints mean equal pairs and equal answers."
    )
    body = fill("reproduce.html.jinja", "prbench.report", manifests=manifests, table=table, remake=remake)
    return Section("reproduce", "Reproduce", lead, body, "Reproduce")


def _manifest(entry: ReportedRun) -> Manifest:
    card, dataset = entry.facts.card, entry.facts.dataset
    facts = [
        ("model", card.address),
        ("revision", card.revision or "not known"),
        (
            "suite",
            f"{dataset.name} ({dataset.source}), split {entry.config.split or 'all'}, {dataset.counts.pairs:,} pairs",
        ),
        ("suite revision", dataset.revision),
        ("suite fingerprint", dataset.fingerprint),
        ("records fingerprint", entry.fingerprint),
        ("contexts", ", ".join(entry.facts.contexts)),
        ("not read by the model", ", ".join(entry.facts.unsupported)),
        ("prbench", entry.result.prbench),
        ("notes", "; ".join(dataset.notes)),
    ]
    path = str(entry.path)
    config = entry.config.model_dump(mode="json", exclude_none=True)
    return Manifest(
        label=entry.label,
        folder=path,
        command=f"{reproduction(entry.config)} -o {shlex.quote(path)}",
        verify=shlex.join(["prbench", "verify", path]),
        facts=[(name, value) for name, value in facts if value],
        config=tomli_w.dumps(config),
        warnings=list(entry.result.warnings),
    )
