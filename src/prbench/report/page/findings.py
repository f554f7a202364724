"""The first lines of a report: what was found, in sentences whose every number has its interval."""

from collections.abc import Sequence
from typing import NamedTuple

from prbench.report.page.evidence import ReportedRun, ReportEvidence
from prbench.results import GAIN, SPECIFICITY, verdict
from prbench.show import count, interval, percent, points
from prbench.show.page import context_words
from prbench.stats import Estimate


class Tile(NamedTuple):
    """A figure with its name and what it means."""

    value: str
    name: str
    ends: str
    """Ends of its interval."""
    meaning: str


class PageFindings(NamedTuple):
    """Findings that stand on top of a page."""

    title: str
    scope: str
    sentences: tuple[str, ...]
    best: str
    """Name of the model whose figures the tiles are."""
    tiles: tuple[Tile, ...]


def findings(evidence: ReportEvidence) -> PageFindings:
    """Sum a report up."""
    widest = evidence.widest
    dataset = widest.facts.dataset
    users = len(set(evidence.rows.column("user")))
    questions = len(set(evidence.rows.column("question")))
    models = len(evidence.entries)
    parts = (count(len(evidence.rows), "pair"), count(users, "user"), count(questions, "question"))
    scope = " · ".join((dataset.name, *parts, count(models, "model")))
    judged = [entry for entry in evidence.entries if _accuracy(entry).value is not None]
    best = max(judged, key=lambda entry: _accuracy(entry).value or 0.0, default=None)
    title = "Does the model know what this user wants?"
    if best is None:
        return PageFindings(title, scope, ("No run has a verdict yet.",), "", ())
    return PageFindings(title, scope, tuple(_sentences(best, judged)), _whose(best), tuple(_tiles(best)))


def _whose(best: ReportedRun) -> str:
    return f"{best.label}, shown {context_words(str(best.headline))}"


def _accuracy(entry: ReportedRun) -> Estimate:
    if entry.headline is None:
        return Estimate.undefined()
    return entry.result.contexts[entry.headline].accuracy


def _sentences(best: ReportedRun, judged: Sequence[ReportedRun]) -> list[str]:
    told = [verdict(best.result).sentence]
    specific = [found for entry in judged if (found := entry.result.effects.specificity) is not None]
    if specific:
        sure = [effect for effect in specific if effect.low is not None and effect.low > 0]
        told.append(
            f"{len(sure)} of {len(specific)} models do better with the user's own posts than with another user's, "
            "beyond what chance would give."
        )
    return told


def _tiles(best: ReportedRun) -> list[Tile]:
    context = best.result.contexts[str(best.headline)]
    tiles = [Tile(f"{percent(context.accuracy.value)} %", "accuracy", _range(context.accuracy), "chance is 50")]
    for effect in (GAIN, SPECIFICITY):
        found = best.result.effects.of(effect)
        if found is not None and found.value is not None:
            value, _, ends = points(found).partition(" ")
            tiles.append(Tile(value, effect.name, ends, f"points over {context_words(effect.control)}"))
    if couples := context.couple_coverage:
        tiles.append(
            Tile(
                f"{percent(couples.value)} %", "couples covered", _range(couples), "0 for a model that ignores the user"
            )
        )
    return tiles


def _range(estimate: Estimate) -> str:
    """Return the interval alone."""
    return interval(estimate).partition(" ")[2] or "no interval"
