"""Findings of a PPO study, typed: `study.json` as the tables and the page read it."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import field_serializer

from prbench.stats import Estimate
from prbench.studies.ppo.config import PPOStudyConfig
from prbench.studies.study import Judge, Labels
from prbench.types import Frozen


class SeedOutcome(Frozen):
    """Result of one training."""

    score: float | None
    """Mean over its graded items; None where there is none."""
    steps: int
    reward_first: float | None
    """Mean of the first steps that have a reward."""
    reward_last: float | None
    kl: float
    """KL divergence from the base model, of a whole answer, in the last step."""
    dropped: int
    seconds: float
    answers: int
    empty: int
    degenerate: int = 0
    """Answers to held-out items that say nothing: empty, white space or punctuation alone."""
    words: float
    folder: str


class PolicyDetails(Frozen):
    """Details of how a reward model's policy came to its score."""

    gain: Estimate
    """Gain over the untrained policy, paired on the same items."""
    behind: Estimate | None = None
    """Points that the best ranked model's policy is ahead by, paired on the same items; None for that one itself."""
    seeds: Mapping[str, SeedOutcome]


class PolicyOutcome(Frozen):
    """Outcome of training with one reward model."""

    address: str
    context: str
    revision: str
    score: Estimate
    items: Mapping[str, float]
    apart: bool = False
    details: PolicyDetails


class Untrained(Frozen):
    """The policy as it was."""

    score: Estimate
    items: Mapping[str, float]


class PPODetails(Frozen):
    """Details of how a PPO study was made."""

    prbench: str
    settings: PPOStudyConfig
    fingerprint: str
    ungraded: Mapping[str, int]
    taught_alike: Mapping[str, str] = {}
    left_out: Mapping[str, Mapping[str, SeedOutcome]] = {}
    """Reward models whose seeds have no graded item in common."""
    untrained: Untrained

    @field_serializer("settings")
    def _whole(self, settings: PPOStudyConfig) -> dict[str, Any]:
        return settings.model_dump(mode="json")  # with the fields that have their default


class PPOStudy(Frozen):
    """A PPO study: every reward model used in the same way, judged by the same judge."""

    kind: Literal["ppo"]
    suite: str
    policy: str
    endpoint: str
    judge: Judge
    items: Mapping[str, Labels]
    models: Mapping[str, PolicyOutcome]
    details: PPODetails

    @field_serializer("judge")
    def _whole(self, judge: Judge) -> dict[str, Any]:
        return judge.model_dump(mode="json")

    def to_json(self) -> dict[str, Any]:
        """Return the content of `study.json`."""
        return self.model_dump(mode="json", exclude_unset=True)
