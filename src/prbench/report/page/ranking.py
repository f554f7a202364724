"""The ranking: every model in the context it is judged by, baselines above, in groups that the data can tell apart."""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from prbench.report.page.evidence import ReportedRun, ReportEvidence
from prbench.results import BaselineResult, ContextResult, Credits, rank_rows
from prbench.show import interval, percent
from prbench.show.charts import interval_mark, interval_scale
from prbench.show.page import Section, context_label, context_words, fill
from prbench.stats import Standing
from prbench.types import Context


class RankingLine(NamedTuple):
    """One line of a ranking."""

    label: str
    context: str
    scored: ContextResult | BaselineResult
    """Result of this model in this context."""
    credits: Credits
    baseline: bool = False

    @property
    def value(self) -> float:
        """Accuracy for sorting; below all others where there is none."""
        value = self.scored.accuracy.value
        return -1.0 if value is None else value


class RankedLine(NamedTuple):
    """A line as it is shown."""

    rank: str
    label: str
    context: str
    leaks: bool
    baseline: bool
    accuracy: str
    mark: Markup
    letters: str
    covered: str
    couples: str
    missing: str
    pairs: str


def ranking_section(evidence: ReportEvidence) -> Section:
    """The ranking by headline context, and folded below it one for each context."""
    lines = [line for entry in evidence.entries if (line := _line(entry, entry.headline))]
    tables = [_table("Baselines, then models by accuracy", [*_baselines(evidence), *lines])]
    folded = []
    for context in evidence.contexts:
        alike = [line for entry in evidence.entries if (line := _line(entry, context))]
        title = f"Under {context_label(context)}: {context_words(context)}"
        folded.append(_table(title, [*(_baselines(evidence) if context == "none" else []), *alike]))
    body = fill(
        "ranking.html.jinja",
        "prbench.report",
        tables=tables,
        folded=folded,
        scale=interval_scale(),
        notes=_notes(evidence),
    )
    lead = (
        "How often a model prefers the answer that this user wants, each judged in the context that shows it the "
        "user's own posts where it can read them. The dashed line is chance."
    )
    return Section("ranking", "Ranking", lead, body, "Ranking")


def ranked_lines(lines: Sequence[RankingLine]) -> list[RankedLine]:
    """Baselines first, then models from best to worst, with group letters and the ranks that the data leave open."""
    places = _standings(lines)
    ordered = sorted(lines, key=lambda line: (not line.baseline, -line.value, line.label))
    return [_ranked(line, places.get(_name(line))) for line in ordered]


def _table(title: str, lines: Sequence[RankingLine]) -> dict[str, object]:
    return {"title": title, "lines": ranked_lines(lines)}


def _line(entry: ReportedRun, context: str | None) -> RankingLine | None:
    if context is None or context not in entry.credits:
        return None
    return RankingLine(entry.label, context, entry.result.contexts[context], entry.credits[context])


def _baselines(evidence: ReportEvidence) -> list[RankingLine]:
    entry = evidence.widest
    models = {other.facts.card.address for other in evidence.entries}
    return [
        RankingLine(name, "none", entry.result.baselines[name], credits, baseline=True)
        for name, credits in evidence.baseline_credits.items()
        if name not in models
    ]


def _standings(lines: Sequence[RankingLine]) -> dict[str, Standing]:
    places = rank_rows({_name(line): line.credits.rows for line in lines})
    return {place.name: place for place in places} if len(places) > 1 else {}


def _name(line: RankingLine) -> str:
    return f"baseline\0{line.label}" if line.baseline else line.label


def _ranked(line: RankingLine, place: Standing | None) -> RankedLine:
    scored = line.scored
    coverage, couples = scored.coverage, scored.couple_coverage
    missing = scored.without_verdict if isinstance(scored, ContextResult) else None
    return RankedLine(
        rank=_ranks(place),
        label=line.label,
        context=context_label(line.context),
        leaks=Context.parse(line.context).leaks,
        baseline=line.baseline,
        accuracy=interval(scored.accuracy),
        mark=interval_mark(scored.accuracy, quiet=line.baseline),
        letters="".join(place.letters) if place else "",
        covered=percent(coverage.covered.value) if coverage else "–",
        couples=percent(couples.value) if couples else "–",
        missing=percent(missing.value) if missing else "–",
        pairs=f"{scored.accuracy.n:,}",
    )


def _ranks(place: Standing | None) -> str:
    if place is None:
        return ""
    return str(place.best_rank) if place.best_rank == place.worst_rank else f"{place.best_rank}–{place.worst_rank}"


def _notes(evidence: ReportEvidence) -> list[str]:
    notes = [
        "In percent, with 95 % intervals clustered by user and question; ties count ½. Lines that share a letter "
        "cannot be told apart (paired tests, Holm-corrected); the rank is the range left open.",
        "Users covered: better than a coin for so many users, each tested. Couples: both of two opposite users above "
        "½; a model that ignores the user gets 0.",
    ]
    if not evidence.same_pairs:
        notes.append(
            "The runs are not on the same pairs: each accuracy is over the run's own pairs, letters and ranks compare "
            "every two lines on the pairs that both have judged."
        )
    return notes
