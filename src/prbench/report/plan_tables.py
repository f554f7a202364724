"""Tables of the quality of plans: of a run that uses them, and of `prbench plan`."""

from prbench.plan import FIGURES, PlanQuality
from prbench.results import Result
from prbench.show import Table, interval, points

_COLUMNS = ["held against", "aspect recall [95 %]", "precision", "F1"]


def plan_table(quality: PlanQuality) -> Table:
    """Aspect recall and precision of plans, beside what they have in common with another user's aspects."""
    rows = [
        ["the user's own aspects", *(interval(quality.own[name]) for name in FIGURES)],
        ["another user's aspects", *(interval(quality.other[name]) for name in FIGURES)],
        ["difference: what is personal", *(points(quality.personal[name]) for name in FIGURES)],
    ]
    if quality.read < quality.plans - quality.without_aspects:
        rows.append(["own, unread plans as misses", *(interval(quality.strict[name]) for name in FIGURES)])
    return Table(f"Plans · {quality.read:,} read of {quality.plans:,}", _COLUMNS, rows, _notes(quality))


def run_plan_tables(result: Result) -> list[Table]:
    """Return the tables of plan quality for a run, where it uses plans and they were measured."""
    quality = result.plans.quality if result.plans else None
    return [plan_table(quality)] if quality else []


def _notes(quality: PlanQuality) -> list[str]:
    lines = quality.lines.value
    notes = [
        "In percent. A line matches an aspect where the cosine of their embeddings "
        f"({quality.matcher}) is at least {quality.threshold:.2f}; one line to one aspect, docs/plan.md.",
    ]
    if lines is not None:
        notes.append(f"{lines:.1f} lines a plan.")
    if quality.unread:
        counts = ", ".join(f"{count:,} {status}" for status, count in quality.unread.items())
        notes.append(f"Without a plan that could be read: {counts}; left out of the first three lines.")
    if quality.without_aspects:
        notes.append(f"{quality.without_aspects:,} plans have no true aspects to be held against.")
    n = quality.other["recall"].n
    if n and quality.other_same_question < n:
        notes.append(f"Another user of the same question was found for {quality.other_same_question:,} of {n:,}.")
    return notes
