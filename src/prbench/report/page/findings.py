"""The first lines of a report: what was found, in sentences whose every number has its interval."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from prbench.report.numbers import interval, percent, points
from prbench.report.page.evidence import Entry, Evidence
from prbench.report.page.section import context_words

Json = Mapping[str, Any]


class Tile(NamedTuple):
    """A figure with its name and what it means."""

    value: str
    name: str
    ends: str
    """Of its interval."""
    meaning: str


class Findings(NamedTuple):
    """What stands on top of a page."""

    title: str
    scope: str
    sentences: tuple[str, ...]
    best: str
    """Whose figures the tiles are."""
    tiles: tuple[Tile, ...]


def findings(evidence: Evidence) -> Findings:
    """Sum a report up."""
    widest = evidence.widest
    dataset = widest.facts.dataset
    users = len({row.user for row in evidence.rows})
    questions = len({row.question for row in evidence.rows})
    models = len(evidence.entries)
    scope = (
        f"{dataset.name} · {len(evidence.rows):,} pairs · {users:,} users · {questions:,} questions · "
        f"{models} {'model' if models == 1 else 'models'}"
    )
    judged = [entry for entry in evidence.entries if _accuracy(entry) is not None]
    best = max(judged, key=lambda entry: float((_accuracy(entry) or {})["value"]), default=None)
    title = "Does the model know what this user wants?"
    if best is None:
        return Findings(title, scope, ("No run has a verdict yet.",), "", ())
    return Findings(title, scope, tuple(_sentences(best, judged)), _whose(best), tuple(_tiles(best)))


def _whose(best: Entry) -> str:
    return f"{best.label}, shown {context_words(str(best.headline))}"


def _accuracy(entry: Entry) -> Json | None:
    if entry.headline is None:
        return None
    found: Json = entry.result["contexts"][entry.headline]["accuracy"]
    return found if found["value"] is not None else None


def _sentences(best: Entry, judged: Sequence[Entry]) -> list[str]:
    context = str(best.headline)
    told = [
        f"{best.label} prefers what this user wants in {interval(_accuracy(best))} % of pairs when it is shown "
        f"{context_words(context)}."
    ]
    specific = [
        (entry, entry.result["effects"]["specificity"]) for entry in judged if "specificity" in entry.result["effects"]
    ]
    if specific:
        sure = [entry for entry, effect in specific if effect["low"] is not None and effect["low"] > 0]
        told.append(
            f"{len(sure)} of {len(specific)} models do better with the user's own posts than with another user's, "
            "beyond what chance would give."
        )
    return told


def _tiles(best: Entry) -> list[Tile]:
    effects, context = best.result["effects"], best.result["contexts"][str(best.headline)]
    tiles = [
        Tile(f"{percent(context['accuracy']['value'])} %", "accuracy", _range(context["accuracy"]), "chance is 50")
    ]
    for name, meaning in (("gain", "over no posts"), ("specificity", "over another user's posts")):
        if effects.get(name) and effects[name]["value"] is not None:
            value, _, ends = points(effects[name]).partition(" ")
            tiles.append(Tile(value, name, ends, f"points {meaning}"))
    if couples := context.get("couple_coverage"):
        tiles.append(
            Tile(f"{percent(couples['value'])} %", "couples covered", _range(couples), "0 for whoever ignores the user")
        )
    return tiles


def _range(metric: Json) -> str:
    """The interval alone."""
    return interval(metric).partition(" ")[2] or "no interval"
