"""One row of the scorecard: what two runs and a stopwatch say of one model. Every figure has n and an interval."""

from collections.abc import Mapping, Sequence
from typing import Any

from prbench.results import GAIN, SPECIFICITY, Effect, Soundness, load_run, versus
from prbench.results import verdict as verdict_on
from prbench.run import Evaluation
from prbench.scorecard.config import ScorecardModelConfig
from prbench.scorecard.latency import Latency
from prbench.scorecard.rule import Rule, RuleEvidence, Verdict
from prbench.stats import Estimate
from prbench.types import Frozen


class ScorecardRow(Frozen):
    """Figures of one model."""

    name: str
    address: str
    revision: str = ""
    shown: str = ""
    """The context of the personalized figures: the entry's own, or `none` for a model that does not read the user."""
    leaks: bool = False
    failed: str = ""
    """Reason why there are no figures."""
    trace: str = ""
    """Trace of the failure, if that was not a user's mistake."""
    generic: Estimate | None = None
    soundness: Soundness | None = None
    """Effect of showing a user's posts on the generic accuracy."""
    personalized: Estimate | None = None
    seen_axes: Estimate | None = None
    unseen_axes: Estimate | None = None
    gain: Estimate | None = None
    specificity: Estimate | None = None
    coverage: Estimate | None = None
    """Share of users for whom the model beats a coin, by a test for each."""
    couple_coverage: Estimate | None = None
    mirror_consistency: Estimate | None = None
    silent: Estimate | None = None
    """Accuracy where another user is shown who has no stance on what decides the pair: ½ is right."""
    opposite: Estimate | None = None
    """Accuracy where the couple's other half is shown: 1 − accuracy is right."""
    without_verdict: Estimate | None = None
    training_pairs: int | None = None
    """Number of training pairs; None for a model that was not trained by `prbench train`."""
    latency: Latency | None = None
    verdict: Verdict | None = None
    misses: tuple[str, ...] = ()
    """Conditions that keep the verdict from being a better one."""
    sentence: str = ""
    """Verdict of the run on the model, in one sentence."""
    runs: tuple[str, ...] = ()
    """Folders of the runs behind the figures."""


def make_row(
    entry: ScorecardModelConfig, personal: Evaluation, generic: Evaluation | None, latency: Latency | None
) -> ScorecardRow:
    """Read a row off finished runs."""
    contexts = personal.contexts
    own = entry.context if entry.context in contexts else "none"
    found = contexts[own]
    axes = found.by.get("unseen", {})
    training: Mapping[str, Any] = personal.model.parameters.get("training") or {}
    other, opposite = contexts.get("other"), contexts.get("opposite")
    return ScorecardRow(
        name=entry.label,
        address=entry.address,
        revision=personal.model.revision,
        shown=own,
        leaks=found.leaks,
        generic=None if generic is None else generic.contexts["none"].accuracy,
        soundness=None if generic is None else generic.effects.soundness,
        personalized=found.accuracy,
        seen_axes=axes.get("no"),
        unseen_axes=axes.get("yes"),
        gain=_difference(personal, GAIN, own),
        specificity=_difference(personal, SPECIFICITY, own),
        coverage=found.coverage.covered if found.coverage else None,
        couple_coverage=found.couple_coverage,
        mirror_consistency=found.mirror_consistency,
        silent=other.shown_user.get("silent") if other and other.shown_user else None,
        opposite=opposite.accuracy if opposite else None,
        without_verdict=found.without_verdict,
        training_pairs=training.get("pairs"),
        latency=latency,
        sentence="" if found.leaks else verdict_on(personal).sentence,
        runs=tuple(str(run.folder) for run in (personal, generic) if run is not None and run.folder is not None),
    )


def judged(rows: Sequence[ScorecardRow], rule: Rule) -> tuple[ScorecardRow, ...]:
    """The same rows with their verdicts: the rule compares each with the best generic accuracy among them."""
    values = [row.generic.value for row in rows if row.generic is not None and row.generic.value is not None]
    best = max(values, default=None)
    return tuple(row if row.failed or row.leaks else _judge(row, rule, best) for row in rows)


def _judge(row: ScorecardRow, rule: Rule, best_generic: float | None) -> ScorecardRow:
    missing = row.without_verdict.value if row.without_verdict is not None else None
    evidence = RuleEvidence(
        personalized=row.personalized,
        seen_axes=row.seen_axes,
        specificity=row.specificity,
        coverage=row.coverage,
        generic=row.generic,
        best_generic=best_generic,
        without_verdict=1.0 if missing is None else missing,
    )
    verdict, misses = rule.judge(evidence)
    return row.model_copy(update={"verdict": verdict, "misses": misses})


def _difference(run: Evaluation, effect: Effect, own: str) -> Estimate | None:
    """An effect as the run's own result has it, or computed from its records for a context it has none for."""
    if own == effect.control or effect.control not in run.contexts or run.folder is None:
        return None
    if own == "profile" and (found := run.effects.of(effect)) is not None:
        return found
    loaded = load_run(run.folder)
    return versus(loaded, loaded, own, context_two=effect.control).comparison.difference
