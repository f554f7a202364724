"""The result of a run: every aggregate, typed, and written as `result.json`.

    found.contexts["profile"].accuracy.value

A number with an interval is an `Estimate` (value, low, high, n). What a run cannot have, such as the calibration of a
model whose scores are no probabilities, is None in Python and left out of the file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from pydantic import field_serializer

from prbench.data import DatasetRecord
from prbench.models import ModelCard
from prbench.plan import PlanQuality
from prbench.results.effects import Effect
from prbench.results.published import PublishedScores
from prbench.stats import AccuracyBounds, Calibration, Coverage, Estimate, LengthBias, PositionBias
from prbench.types import Context, Frozen

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Headroom(Estimate):
    """The share of the headroom that is closed; it leans on a context that leaks, and says so."""

    leaks: bool = True


@dataclass(frozen=True, slots=True)
class Soundness(Estimate):
    """Effect of showing a user's posts on telling sound answers from flawed ones."""

    by: Mapping[str, Estimate] = field(default_factory=dict)
    """The same for the questions of each category with high stakes, and of all these together."""


class WorstGroup(Frozen):
    """The group with the lowest accuracy."""

    group: str
    value: float
    low: float | None
    high: float | None
    n: int


class JuryResult(Frozen):
    """Agreement of the jurors of a jury with each other."""

    agreement: Estimate
    """Share of two jurors' verdicts, on the same pair in the same order, that are equal; mean over pairs."""
    unanimous: Estimate
    """Share of pairs on which all jurors say the same in every order."""
    jurors: Mapping[str, Estimate]
    """Accuracy of each juror alone."""


class ContextResult(Frozen):
    """Result of a model in one context."""

    leaks: bool
    """Whether the context shows the scoring standard itself."""
    accuracy: Estimate
    """Mean credit; ties count ½."""
    strict_accuracy: Estimate
    """Share of pairs with every verdict right, in every order and repeat."""
    ties: Estimate
    pairs: int
    without_verdict: Estimate
    invalid_records: int
    failed_records: int
    reasons: Mapping[str, int]
    """Reasons why records have no verdict, most frequent first."""
    bounds: AccuracyBounds | None
    """Accuracy if every missing verdict were wrong, and if every one were right."""
    categories: Mapping[str, Estimate]
    by: Mapping[str, Mapping[str, Estimate]]
    """Accuracy by tag and its value."""
    length: LengthBias | None
    worst: Mapping[str, WorstGroup]
    coverage: Coverage | None = None
    mirror_consistency: Estimate | None = None
    couple_coverage: Estimate | None = None
    calibration: Calibration | None = None
    position: PositionBias | None = None
    shown_user: Mapping[str, Estimate] | None = None
    """Accuracy by how the user who was shown stands to what decides the pair."""
    jury: JuryResult | None = None
    published: PublishedScores | None = None
    """Scores by the formulas of the benchmark that the suite is, where it is one or its rows have several answers."""
    metrics: Mapping[str, Estimate] = {}
    """Further metrics by name, those that `results.definitions` computes from credits alone."""


class BaselineResult(Frozen):
    """Result of a content-blind baseline under `none`."""

    accuracy: Estimate
    categories: Mapping[str, Estimate]
    by: Mapping[str, Mapping[str, Estimate]]
    coverage: Coverage | None = None
    mirror_consistency: Estimate | None = None
    couple_coverage: Estimate | None = None


class Effects(Frozen):
    """Effects of showing the user; `results.effects` defines each."""

    gain: Estimate | None = None
    specificity: Estimate | None = None
    reversal: Estimate | None = None
    headroom_closed: Headroom | None = None
    soundness: Soundness | None = None

    def of(self, effect: Effect) -> Estimate | None:
        """The estimate of an effect; None where the run has not the contexts for it."""
        found: Estimate | None = getattr(self, effect.key)
        return found


class Usage(Frozen):
    """Tokens, calls and money behind all answers, each distinct call and plan once."""

    records: int
    distinct_calls: int
    calls_without_sharing: int
    plans: int
    tokens_in: int
    tokens_out: int
    tokens_cached: int | None = None
    """Tokens of the prompts that a provider read from its cache; None where there were none."""
    cost_usd: int | float
    posts_dropped: Estimate


class PlansResult(Frozen):
    """The plans of a run."""

    plans: int
    statuses: Mapping[str, int]
    quality: PlanQuality | None
    """Quality of the plans; None where it was not measured."""


class Timing(Frozen):
    """Measurements taken while the run was made; they cannot be computed again."""

    finished: str
    """Time when the run was finished (UTC)."""
    elapsed_s: int | float
    calls_asked: int
    spent_usd: int | float
    """Money spent over all starts of the run; never too little."""
    retries: int | None = None
    """Requests that were sent again after a passing fault."""
    unsettled_calls: int | None = None
    """Requests that were sent and whose cost is not known: no reply was read, or it did not say."""
    unsettled_usd: int | float | None = None
    """The part of `spent_usd` that is an upper bound: what these requests can have cost at most."""
    tokens_per_s: int | float | None = None
    note: str | None = None
    tokens_naive: int | None = None
    tokens_computed: int | None = None
    passes_s: int | float | None = None
    computed_tokens_per_s: int | float | None = None
    flops: int | float | None = None
    flops_per_s: int | float | None = None
    peak_flops_per_s: int | float | None = None
    peak_share: int | float | None = None
    latency_ms_p50: Estimate | None = None
    latency_ms_p95: Estimate | None = None


class Result(Frozen):
    """All aggregates of a run: one model in each of its contexts, and the content-blind baselines on the same pairs."""

    prbench: str
    """The version that computed it."""
    model: ModelCard
    suite: DatasetRecord
    split: str | None
    contexts: Mapping[str, ContextResult]
    unsupported: tuple[str, ...]
    """Contexts that were asked for and that the model does not read."""
    effects: Effects
    usage: Usage
    plans: PlansResult | None = None
    groups: Mapping[str, str]
    """Letters of contexts and baselines: two that share one cannot be told apart on these pairs."""
    warnings: tuple[str, ...]
    timing: Timing | None = None
    baselines: Mapping[str, BaselineResult]

    @property
    def headline(self) -> str | None:
        """The context a model is judged by: the user's own profile where shown, else the first that does not leak."""
        if "profile" in self.contexts:
            return "profile"
        return next((name for name in self.contexts if not Context.parse(name).leaks), None)

    @property
    def finished(self) -> str:
        """Time when the run was finished (UTC); empty where that was not recorded."""
        return "" if self.timing is None else self.timing.finished

    def to_json(self) -> Json:
        """Return the content of `result.json`: the model under `result`, the baselines under `baselines`."""
        data = self.model_dump(mode="json", exclude_unset=True)
        baselines = data.pop("baselines")
        return {"result": data, "baselines": baselines}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_json` gives."""
        return cls.model_validate({**data["result"], "baselines": data["baselines"]})

    @field_serializer("model", "suite")
    def _whole(self, record: ModelCard | DatasetRecord) -> Json:
        return record.model_dump(mode="json")  # with the fields that have their default
