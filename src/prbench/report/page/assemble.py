"""One self-contained file from runs: findings, sections, the pair browser and its data."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from markupsafe import Markup

from prbench._version import __version__
from prbench.report.page.check_sections import bias_section, calibration_section, cost_section
from prbench.report.page.columns import Payload, pack
from prbench.report.page.evidence import ReportEvidence, read_runs
from prbench.report.page.findings import findings
from prbench.report.page.groups import groups_section
from prbench.report.page.ranking import ranking_section
from prbench.report.page.reproduce import reproduce_section
from prbench.report.page.texts import Texts, load_texts
from prbench.report.page.user_sections import context_section, mirror_section, soundness_section, users_section
from prbench.report.payload import index_html
from prbench.show.page import Section, asset, fill, masthead, shell

_SCRIPTS = ("payload", "data", "filter", "address", "dom", "list", "detail", "controls", "main")
"""Sources of the page's script, in the order in which they build on each other."""
MAX_BYTES = 24_000_000
_PROSE_BYTES = 1_000_000
"""Room kept for what is not data."""

_BEFORE: tuple[Callable[[ReportEvidence], Section | None], ...] = (
    ranking_section,
    context_section,
    soundness_section,
    groups_section,
    users_section,
    mirror_section,
    bias_section,
    calibration_section,
    cost_section,
)


def report_page(
    runs: Sequence[Path | str],
    *,
    sections: Sequence[Section] = (),
    with_texts: bool = True,
    max_bytes: int = MAX_BYTES,
) -> str:
    """Make the report of one or more runs on the same suite.

    Args:
        runs: Run folders, one model each. One that is still going on is shown as far as it is.
        sections: Further sections, such as studies; they stand after those made of the runs.
        with_texts: Whether questions, answers, posts and rubrics go into the page.
        max_bytes: About how large the file may become; long posts and replies are cut, visibly, to keep to it.

    Returns:
        A whole HTML document that needs nothing else.
    """
    evidence = read_runs([Path(run) for run in runs])
    texts = load_texts(evidence) if with_texts else Texts({}, {}, ("Made without texts, as asked.",))
    payload = pack(evidence, texts, room=max_bytes - _PROSE_BYTES)
    shown = [*_sections(evidence), *sections, reproduce_section(evidence)]
    body = _body(evidence, texts, payload, shown)
    title = f"{evidence.widest.facts.dataset.name} · prbench report"
    return shell(title, body, [page_script()], [asset("page/report.css", "prbench.report")])


def page_script() -> str:
    """The page's script: its sources one after another, private to the page."""
    sources = "\n".join(asset(f"page/js/{name}.js", "prbench.report") for name in _SCRIPTS)
    return f'(() => {{\n"use strict";\n{sources}\n}})();\n'


def _sections(evidence: ReportEvidence) -> Iterator[Section]:
    for make in _BEFORE:
        if section := make(evidence):
            yield section


def _body(evidence: ReportEvidence, texts: Texts, payload: Payload, sections: Sequence[Section]) -> Markup:
    links = {f"#{section.id}": section.nav for section in sections if section.nav}
    return fill(
        "report.html.jinja",
        "prbench.report",
        masthead=masthead("#top", {"#pairs": "Pairs", **links}),
        found=findings(evidence),
        notes=list(_notes(evidence)),
        sections=sections,
        text_notes=[*texts.problems, *payload.notes],
        has_texts=bool(texts.pairs),
        leaking=[name for name in evidence.contexts if name == "oracle"],
        index=index_html(payload.index),
        blocks=Markup("").join(block.to_html() for block in payload.blocks),
        version=__version__,
    )


def _notes(evidence: ReportEvidence) -> Iterator[str]:
    """Yield what a reader must know before believing a number."""
    for entry in evidence.entries:
        if not entry.finished:
            done, wanted = entry.result.usage.records, len(entry.rows) * entry.facts.expected
            yield (
                f"{entry.label}: the run is not finished ({done:,} of {wanted * len(entry.facts.contexts):,} records); "
                "its numbers will change."
            )
    said: dict[str, list[str]] = {}
    for entry in evidence.entries:
        for warning in entry.result.warnings:
            said.setdefault(warning, []).append(entry.label)
    for warning, labels in said.items():
        everyone = len(labels) == len(evidence.entries) and len(labels) > 1
        yield warning[:1].upper() + warning[1:] + "." if everyone else f"{', '.join(labels)}: {warning}."
