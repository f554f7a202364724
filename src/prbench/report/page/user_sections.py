"""Sections on the user: accuracy from context to context, over users, over groups, on mirrored answers."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from prbench.report.page.evidence import ReportedRun, ReportEvidence
from prbench.results import DIFFERENCES, HEADROOM, HIGH_STAKES, HIGH_STAKES_TOGETHER, SOUNDNESS
from prbench.show import Table, interval, points
from prbench.show.charts import (
    ContextPoint,
    figure,
    html_table,
    interval_mark,
    slope,
    small_multiples,
    user_histogram,
)
from prbench.show.page import Section, context_label, fill
from prbench.stats import Coverage
from prbench.types import Context

_NO_CATEGORY = "(none)"


def context_section(evidence: ReportEvidence) -> Section | None:
    """Accuracy per context as lines: a model that uses the user rises with the own posts and falls with others'."""
    if len(evidence.contexts) < 2:
        return None
    lines = {entry.label: _points(entry, evidence.contexts) for entry in evidence.entries}
    drawings = [
        slope(label, line, [other for name, other in lines.items() if name != label]) for label, line in lines.items()
    ]
    rows = [[label, *(interval(point.accuracy) for point in line)] for label, line in lines.items()]
    table = Table("Accuracy by context, in percent", ["model", *map(context_label, evidence.contexts)], rows)
    caption = (
        "Percent of pairs right; whiskers are 95 % intervals, the dashed line is chance, the other models stand behind "
        "in grey. own: the user's own posts; other: another user's; opposite: of the user who wants the opposite; "
        "rubric*: the true standard, which leaks the answer and shows only how much could be gained."
    )
    body = figure(small_multiples(drawings), table, caption) + _effects(evidence)
    lead = (
        "The same pairs, shown without posts, with the user's own, another user's and the true rubric. A model "
        "that knows this user rises from none to own and falls back with other; one that only likes good answers "
        "stays flat."
    )
    return Section("contexts", "Does it use the user?", lead, body, "Contexts")


def _points(entry: ReportedRun, contexts: Sequence[str]) -> list[ContextPoint]:
    found = entry.result.contexts
    return [
        ContextPoint(name, found[name].accuracy if name in found else None, Context.parse(name).leaks)
        for name in contexts
    ]


def _effects(evidence: ReportEvidence) -> Markup:
    """Return what the own posts add, against no posts, another user's and the opposite user's."""
    rows = []
    for entry in evidence.entries:
        effects = entry.result.effects
        if effects.model_fields_set - {SOUNDNESS.key}:
            found = [points(effects.of(effect)) for effect in DIFFERENCES]
            rows.append([entry.label, *found, interval(effects.headroom_closed)])
    if not rows:
        return Markup("")
    names = [effect.title for effect in DIFFERENCES]
    notes = [
        f"In percentage points; {HEADROOM.name} is {HEADROOM.formula} in percent and leans on the leaking context."
    ]
    return html_table(Table("What the user's posts add", ["model", *names, HEADROOM.name], rows, notes))


def soundness_section(evidence: ReportEvidence) -> Section | None:
    """Section on the effect of a user's posts on telling sound answers from flawed ones."""
    found = {entry.label: change for entry in evidence.entries if (change := entry.result.effects.soundness)}
    if not found:
        return None
    parts = (*HIGH_STAKES, HIGH_STAKES_TOGETHER)
    rows = [
        [label, points(change), *(points(change.by.get(part)) for part in parts)] for label, change in found.items()
    ]
    notes = [f"In percentage points, 95 % intervals clustered by question. {SOUNDNESS.name}: {SOUNDNESS.formula}."]
    table = Table("Soundness with posts against without", ["model", "all questions", *parts], rows, notes)
    return Section(
        "soundness", "Does following the user cost soundness?", SOUNDNESS.sentence, html_table(table), "Soundness"
    )


def users_section(evidence: ReportEvidence) -> Section | None:
    """The spread over users."""
    judged = [(entry, context) for entry in evidence.entries if (context := entry.headline)]
    coverage = {entry.label: found for entry, context in judged if (found := entry.result.contexts[context].coverage)}
    if not coverage:
        return None
    drawings = [
        user_histogram(label, [user.mean for user in found.users.values()]) for label, found in coverage.items()
    ]
    rows = [[label, *_spread(found)] for label, found in coverage.items()]
    columns = ["model", "mean of users", "worst decile", "users above ½", "users covered", "users", "not testable"]
    caption = (
        "Users by their accuracy, in steps of five points; outlined in rust: the tenth of users for whom the model "
        "does worst. The dashed line is chance."
    )
    body = figure(small_multiples(drawings), Table("Spread over users, in percent", columns, rows), caption)
    lead = "A mean can hide whom a model fails. Each model in its headline context, user by user."
    return Section("users", "Who is served, who is not", lead, body + _worst_users(coverage), "Users")


def _spread(coverage: Coverage) -> list[str]:
    found = (coverage.mean_of_users, coverage.worst_decile, coverage.above_half, coverage.covered)
    return [*map(interval, found), f"{len(coverage.users):,}", f"{coverage.not_testable:,}"]


def _worst_users(coverage: Mapping[str, Coverage], most: int = 5) -> Markup:
    rows = []
    for label, found in coverage.items():
        worst = sorted(found.users.items(), key=lambda item: (item[1].mean, item[0]))[:most]
        rows.append([label, " · ".join(f"{user} {100 * score.mean:.0f} ({score.n:,})" for user, score in worst)])
    notes = ["Accuracy in percent, pairs in brackets."]
    table = Table(f"The {most} users each model serves worst", ["model", "users"], rows, notes, first_numeric=9)
    return fill("folded.html.jinja", summary=table.title, body=html_table(table))


def mirror_section(evidence: ReportEvidence) -> Section | None:
    """Both halves of a mirrored couple right on the same two answers."""
    rows, everything = [], []
    for entry in evidence.entries:
        for name in sorted(entry.facts.contexts, key=evidence.contexts.index):
            found = entry.result.contexts[name]
            if both := found.mirror_consistency:
                label, couples = context_label(name), interval(found.couple_coverage)
                everything.append([entry.label, label, interval(both), couples])
                if name == entry.headline:
                    rows.append([entry.label, label, interval(both), interval_mark(both, reference=None), couples])
    if not rows:
        return None
    title, columns = (
        "Mirror consistency, in percent",
        ["model", "context", "both right [95 %]", "couples covered [95 %]"],
    )
    drawn = [*columns[:3], "", columns[3]]
    body = fill("marked.html.jinja", title=title, columns=drawn, rows=rows, number=2)
    body += fill(
        "folded.html.jinja",
        summary="In every context",
        body=html_table(Table(title, columns, everything, first_numeric=2)),
    )
    lead = (
        "Two users, the same two answers, opposite wishes: a consistent model is right for both. A model that does "
        "not look at the user prefers the same answer twice and scores 0."
    )
    return Section("mirror", "Mirror consistency", lead, body, "Mirror")
