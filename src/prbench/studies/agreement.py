"""Result of a correlation, typed: how far a benchmark and downstream studies agree on reward models."""

from collections.abc import Mapping
from typing import Any

from pydantic import field_serializer

from prbench.stats import Estimate
from prbench.stats.correlation import (
    Coefficient,
    LineageAgreement,
    LineageDifference,
    Partial,
    PermutationTest,
    Rivalry,
)
from prbench.studies.study import Judge
from prbench.types import Frozen


class CorrectedVerdict(Frozen):
    """Verdict on a correlation, corrected for how many were looked at."""

    significant: bool
    sentence: str
    p_corrected: float | None


class LeftOneOut(Frozen):
    """A coefficient without each of the models in turn."""

    values: Mapping[str, float | None]
    """Values by the model that is left out."""
    low: float | None
    high: float | None
    error: float | None
    leaning: str | None
    """The model that the coefficient leans on most."""


class Agreement(Frozen):
    """One coefficient, with its uncertainty over models and over items."""

    over_models: Estimate
    over_items: Estimate | None
    permutation: PermutationTest
    fisher: Estimate | None = None
    jackknife: LeftOneOut
    lineages: LineageAgreement | None = None
    """Agreement between and within lineages, where the models come in some."""


class CorrelatedModel(Frozen):
    """One reward model's two scores."""

    name: str
    address: str
    context: str
    benchmark: float
    downstream: float


class Readers(Frozen):
    """The agreement over the models that are shown the user."""

    n: int
    names: tuple[str, ...]
    coefficients: Mapping[Coefficient, Agreement]


class CoefficientGap(Frozen):
    """A coefficient of the benchmark and of a rival."""

    benchmark: float | None
    rival: float | None
    difference: float | None


class RivalAgreement(Frozen):
    """Agreement of the same models and outcome with another benchmark in the place of ours."""

    suite: str
    split: str
    fingerprints: tuple[str, ...]
    contexts: tuple[str, ...]
    models: Mapping[str, float]
    missing: tuple[str, ...]
    everybody: Mapping[Coefficient, CoefficientGap]
    """Gaps over all models that the rival has runs of."""
    n: int
    """Models that `coefficients` and `partial` are over."""
    coefficients: Mapping[Coefficient, Rivalry]
    partial: Mapping[str, Partial]
    lineages: LineageDifference | None = None
    """Difference of Spearman's ρ, lineages and couples drawn anew; where models come in lineages and studies have
    items."""
    verdict: CorrectedVerdict | None = None


class StudyAgreement(Frozen):
    """The agreement with one downstream study."""

    study: str
    kind: str
    suite: str
    policy: str
    endpoint: str
    judge: Judge
    n: int
    models: tuple[CorrelatedModel, ...]
    apart: Mapping[str, float]
    unmatched: tuple[str, ...]
    pairs: int
    pairs_left_out: int
    items: int
    items_left_out: int
    coefficients: Mapping[Coefficient, Agreement]
    held_in_place: int
    """Models that are tied by construction, because they are not shown the user."""
    shown_the_user: Readers | None
    rivals: tuple[RivalAgreement, ...]
    verdict: CorrectedVerdict | None = None

    @field_serializer("judge")
    def _whole(self, judge: Judge) -> dict[str, Any]:
        return judge.model_dump(mode="json")  # with the fields that have their default


class BenchmarkTold(Frozen):
    """Runs that the ranking is of."""

    suite: str
    split: str
    fingerprints: tuple[str, ...]


class Correlated(Frozen):
    """Result of `prbench study correlate`."""

    prbench: str
    benchmark: BenchmarkTold
    primary: Coefficient
    options: Mapping[str, Any]
    studies: tuple[StudyAgreement, ...]
    models_needed: Mapping[str, int]
    """Number of models needed for 80 % power, by the true ρ."""

    def to_json(self) -> dict[str, Any]:
        """Return the result as it is printed and written."""
        return self.model_dump(mode="json", exclude_unset=True)
