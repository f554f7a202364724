"""The scorecard and the curves as tables, and `docs/scorecard.md`; the rule stands below the verdicts it gave."""

from collections.abc import Sequence

from prbench.results import HIGH_STAKES, HIGH_STAKES_TOGETHER, SOUNDNESS
from prbench.scorecard.card import Scorecard
from prbench.scorecard.curves import CurvePoint, Curves, CurveSheet
from prbench.scorecard.row import ScorecardRow
from prbench.show import Number, Table, count, interval, percent, points, render
from prbench.stats import Estimate

_COLUMNS = (
    "model",
    "verdict",
    "personalized [95 %]",
    "gain [95 %]",
    "specificity [95 %]",
    "personas covered",
    "couples covered",
    "generic [95 %]",
    "soundness [95 %]",
    "trained on pairs",
    "ms p50",
    "ms p95",
    "known user, ms p50",
)
_DETAIL_COLUMNS = (
    "model",
    "shown",
    "seen axes [95 %]",
    "unseen axes [95 %]",
    "mirror consistency [95 %]",
    "silent user shown [95 %]",
    "opposite user shown [95 %]",
    "no verdict",
    "pairs",
    "generic pairs",
)


def scorecard_tables(card: Scorecard) -> list[Table]:
    """Return the tables of a scorecard: the row of each model, then what the rows hide."""
    return [_main(card), _details(card), *([found] if (found := _soundness(card)).rows else [])]


def curve_tables(sheet: CurveSheet) -> list[Table]:
    """Return the tables of the curves: one for judged pairs, one for posts."""
    counts = sheet.evaluated.counts
    parts = count(counts.pairs, "pair"), count(counts.users, "user"), count(counts.questions, "question")
    where = f"{parts[0]} of {parts[1]} and {parts[2]}, seed {sheet.seed}"
    tables = [table for table in (_shots_table(sheet.curves, where), _posts_table(sheet.curves, where)) if table.rows]
    failed = [[curves.name, f"failed: {curves.failed}"] for curves in sheet.curves if curves.failed]
    return [*tables, *([Table("Curves that failed", ["model", "why"], failed, first_numeric=2)] if failed else [])]


def _main(card: Scorecard) -> Table:
    limit = card.settings.limit
    title = f"Scorecard · {card.suite.name}, split {card.settings.split}" + (f", limit {limit:,}" if limit else "")
    notes = [*card.rule, _how_measured(card)]
    notes += [f"{row.name} does not win: {'; '.join(row.misses)}." for row in card.rows if row.verdict == "partial"]
    return Table(title, _COLUMNS, [_main_row(row) for row in card.rows], notes, first_numeric=2)


def _main_row(row: ScorecardRow) -> list[str]:
    if row.failed:
        return [row.name, f"failed: {row.failed}", *["–"] * (len(_COLUMNS) - 2)]
    latency = row.latency
    return [
        row.name,
        row.verdict or "(leaks)",
        _share(row.personalized),
        _points(row.gain),
        _points(row.specificity),
        percent(None if row.coverage is None else row.coverage.value),
        percent(None if row.couple_coverage is None else row.couple_coverage.value),
        _share(row.generic),
        _points(row.soundness),
        "–" if row.training_pairs is None else count(row.training_pairs),
        milliseconds(None if latency is None else latency.p50.value),
        milliseconds(None if latency is None else latency.p95.value),
        milliseconds(None if latency is None else latency.known_user_p50.value),
    ]


def _details(card: Scorecard) -> Table:
    notes = [
        "silent: another user is shown who has no stance on what decides the pair, 50 is right; opposite: the couple's "
        "other half is shown, 100 − personalized is right; unseen axes never occur in training.",
        "In percent; ties count ½. docs/metrics.md defines every column.",
    ]
    rows = [_detail_row(row) for row in card.rows if not row.failed]
    return Table("Is it the person?", _DETAIL_COLUMNS, rows, notes, first_numeric=2)


def _detail_row(row: ScorecardRow) -> list[str]:
    return [
        row.name,
        f"{row.shown} (leaks)" if row.leaks else row.shown,
        _share(row.seen_axes),
        _share(row.unseen_axes),
        _share(row.mirror_consistency),
        _share(row.silent),
        _share(row.opposite),
        percent(None if row.without_verdict is None else row.without_verdict.value),
        "–" if row.personalized is None else count(row.personalized.n),
        "–" if row.generic is None else count(row.generic.n),
    ]


def _soundness(card: Scorecard) -> Table:
    parts = (*HIGH_STAKES, HIGH_STAKES_TOGETHER)
    rows = [
        [row.name, _points(found), *(_points(found.by.get(part)) for part in parts), count(found.n)]
        for row in card.rows
        if (found := row.soundness) is not None
    ]
    notes = [
        f"{SOUNDNESS.name} is {SOUNDNESS.formula}, in percentage points, clustered by question. {SOUNDNESS.sentence}"
    ]
    columns = ["model", "all questions [95 %]", *(f"{part} [95 %]" for part in parts), "pairs"]
    return Table("Does following the user cost soundness?", columns, rows, notes)


def _how_measured(card: Scorecard) -> str:
    loads = [row.latency.load for row in card.rows if row.latency is not None and row.latency.load is not None]
    busy = f"; warning: it was busy (load {max(loads):.1f}), times are too long" if _busy(loads, card) else ""
    return (
        "ms: one pair at a time, both answers (a judge: both orders), warm model, on texts that no cache has seen; "
        f"known user: only question and answers are new; {card.settings.latency_pairs} pairs; {card.machine}{busy}."
    )


def _busy(loads: Sequence[float], card: Scorecard) -> bool:
    """Whether more wanted to run than there are cores, beside the model itself."""
    return bool(loads) and max(loads) > card.machine.cores + 0.5


def _shots_table(curves: Sequence[Curves], where: str) -> Table:
    columns = ["model", "posts", "judged pairs", "accuracy [95 %]", "change [95 %]", "given"]
    rows = [
        [model.name, shown, str(point.shots), *_figures(point), Number(f"{point.given:.1f}", point.given)]
        for model in curves
        for shown, points in (("all", model.shots_with_posts), ("none", model.shots_without_posts))
        for point in points
    ]
    notes = [
        "Judged pairs come from one half of each user's questions, all points are evaluated on the other half; both "
        "halves of a couple are shown the same pairs with opposite labels. change: against 0 judged pairs, pair by "
        "pair; given: judged pairs there were, on average.",
    ]
    return Table(f"Few shots · {where}", columns, rows, notes, first_numeric=2)


def _posts_table(curves: Sequence[Curves], where: str) -> Table:
    columns = ["model", "posts", "accuracy [95 %]", "change [95 %]"]
    rows = [
        [model.name, "all" if point.posts is None else str(point.posts), *_figures(point)]
        for model in curves
        for point in model.posts
    ]
    notes = ["Random posts of each user by seed, no judged pairs; 0 is the cold start. change: against 0 posts."]
    return Table(f"Posts · {where}", columns, rows, notes, first_numeric=1)


def _figures(point: CurvePoint) -> list[str]:
    return [_share(point.accuracy), _points(point.change)]


def milliseconds(value: float | None) -> Number:
    """A time as it is printed.

    Example:
        >>> milliseconds(118.34), milliseconds(0.0712), milliseconds(None)
        ('118', '0.071', '–')
    """
    return Number("–" if value is None else f"{value:.0f}" if value >= 10 else f"{value:.2g}", value)


def _share(estimate: Estimate | None) -> Number:
    return interval(estimate)


def _points(estimate: Estimate | None) -> Number:
    return points(estimate)


def document(card: Scorecard, sheet: CurveSheet | None, command: str) -> str:
    """The page, as Markdown."""
    sections = ["# Scorecard", _facts(card, command), _sentences(card), render(scorecard_tables(card), "md")]
    if sheet is not None and (tables := curve_tables(sheet)):
        sections += ["## What must be known of a user", render(tables, "md")]
    return "\n\n".join([*sections, _models(card)]) + "\n"


def _facts(card: Scorecard, command: str) -> str:
    settings = card.settings
    rows = [
        ("made by", f"`{command}`, prbench {card.prbench}"),
        ("made at", f"{card.made} (UTC)"),
        ("machine", str(card.machine)),
        ("seed", str(settings.seed)),
        ("pairs", _suite(card.suite.name, settings.part, card.suite.fingerprint)),
    ]
    if card.generic is not None:
        rows.append(("generic pairs", _suite(card.generic.name, settings.generic_part, card.generic.fingerprint)))
    if settings.limit is not None:
        rows.append(("limit", f"at most {settings.limit:,} pairs of each suite"))
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])


def _suite(name: str, split: str | None, fingerprint: str) -> str:
    return f"`{name}`, {f'split `{split}`' if split else 'all splits'}, fingerprint `{fingerprint[:12]}`"


def _models(card: Scorecard) -> str:
    lines = ["## Models", "", "| row | address | revision |", "|---|---|---|"]
    lines += [f"| {row.name} | `{row.address}` | {_revision(row.revision)} |" for row in card.rows]
    return "\n".join(line.rstrip() for line in lines)


def _revision(revision: str) -> str:
    return f"`{revision[:12]}`" if revision else "–"


def _sentences(card: Scorecard) -> str:
    """The verdict on each model."""
    return "\n".join(f"- {row.sentence}" for row in card.rows if row.sentence)
