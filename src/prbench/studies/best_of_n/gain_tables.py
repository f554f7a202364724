"""A best-of-N study as a table: what each model's choice is worth, against a random one and the best possible."""

from prbench.show import Number, Table, interval
from prbench.stats import Estimate
from prbench.studies.best_of_n.outcome import BestOfCurves, ModelCurve
from prbench.studies.best_of_n.reward_models import taught_alike_notice
from prbench.studies.study import StudyEstimate


def best_of_n_tables(found: BestOfCurves) -> list[Table]:
    """Everything that is printed of a study.

    Args:
        found: What `best_of_n` returns and `curves.json` holds.
    """
    n, k = found.details.n, found.details.k
    shown = [number for number in (1, 4) if number < k]
    columns = [
        "model",
        "context",
        *(f"k = {number}" for number in shown),
        f"k = {k} [95 %]",
        "gain over random [95 %]",
        "% of headroom [95 %]",
        "regret",
        "invalid",
    ]
    ranked, apart = ordered(found)
    rows = [_row(name, found.models[name], shown, k) for name in (*ranked, *apart)]
    return [Table(_title(found, n), columns, rows, _notes(found, k, bool(apart)), first_numeric=2)]


def ordered(found: BestOfCurves) -> tuple[list[str], list[str]]:
    """Ranked models and those apart, each best first."""
    k = found.details.k

    def place(name: str) -> tuple[float, str]:
        value = found.models[name].points[k - 1].true.value
        return (-value if value is not None else float("inf"), name)

    models = found.models
    return (
        sorted((name for name in models if not models[name].apart), key=place),
        sorted((name for name in models if models[name].apart), key=place),
    )


def _row(name: str, model: ModelCurve, shown: list[int], k: int) -> list[str]:
    end = model.points[k - 1]
    marked = f"{name} *" if model.apart else name
    return [
        marked,
        model.context or "–",
        *(_figure(model.points[number - 1].true.value) for number in shown),
        ranged(end.true),
        ranged(end.gain, signed=True),
        interval(_tidied(model.headroom)),
        _figure(end.regret.value),
        Number(f"{sum(model.invalid.values()):,}", sum(model.invalid.values())),
    ]


def _title(found: BestOfCurves, n: int) -> str:
    details = found.details
    return (
        f"Best of {n} on {found.suite} with {found.policy}: true score, 0 to 2 "
        f"({details.items:,} items of {details.questions:,} questions)"
    )


def _notes(found: BestOfCurves, k: int, apart: bool) -> list[str]:
    lines, details = found.lines, found.details
    random, oracle = ranged(lines.random[k - 1]), ranged(lines.oracle[k - 1])
    notes = [
        found.judge.told("labelled pairs"),
        f"a random candidate {random}, the best of {k} by the judge itself {oracle}",
    ]
    if agreed := details.agreed:
        notes.append(f"the judge orders candidates as their instructions do in {interval(Estimate(*_ends(agreed)))} %")
    counts = details.candidates
    notes.append(
        f"candidates: {counts.valid:,} of {counts.distinct:,} valid, {counts.cut:,} cut off and trimmed, "
        f"{counts.drawn_again:,} drawn again, {counts.degenerate:,} degenerate (empty or punctuation alone)"
    )
    if refused := sum(details.items_refused.values()):
        notes.append(f"{refused:,} items that the judge cannot grade are no part of the study")
    if dropped := lines.dropped[k - 1]:
        notes.append(f"{dropped:,} items have fewer than {k} graded candidates and are left out at k = {k}")
    if notice := taught_alike_notice(details.taught_alike):
        notes.append(notice)
    if details.left_out:
        notes.append(f"no item with {k} scored candidates: {', '.join(details.left_out)}")
    if apart:
        notes.append("* apart: shown, but in no ranking and no correlation")
    if found.candidates == "suite":
        notes.append("the candidates are the suite's own answers: a check of the machinery, never a correlation")
    return notes


def ranged(estimate: Estimate, *, signed: bool = False) -> Number:
    """A score with its interval.

    Example:
        >>> ranged(Estimate(1.25, 1.0, 1.5, n=8))
        '1.250 [1.000, 1.500]'
    """
    value, low, high = map(_tidy, (estimate.value, estimate.low, estimate.high))
    if value is None:
        return Number("–", None, ranged=True)
    shape = "+.3f" if signed else ".3f"
    ends = "" if low is None or high is None else f" [{low:{shape}}, {high:{shape}}]"
    return Number(f"{value:{shape}}{ends}", value, low, high, ranged=True)


def _ends(found: StudyEstimate) -> tuple[float, float | None, float | None, int]:
    return found.value, found.low, found.high, found.n


def _tidied(estimate: Estimate | None) -> Estimate | None:
    if estimate is None:
        return None
    return Estimate(_tidy(estimate.value), _tidy(estimate.low), _tidy(estimate.high), estimate.n)


def _tidy(value: float | None) -> float | None:
    """Dust from adding up floats is not shown as a negative zero."""
    return 0.0 if value is not None and abs(value) < 1e-9 else value


def _figure(value: float | None) -> Number:
    return Number("–" if value is None else f"{value:.3f}", value)
