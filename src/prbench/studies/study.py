"""Record of a downstream study: `study.json`, one score per reward model and what it is made of.

Refused here: a score that its own items do not give, and everything from which no ranking of reward models may be made
(a judge at chance, a judge that is itself ranked, best-of-N over the suite's own answers, which *is* the benchmark).
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import FiniteFloat, model_validator

from prbench.errors import StudyError
from prbench.files import disk_errors, exists, read_model
from prbench.types import Context, Frozen, Text

FILE = "study.json"
_SAME = 1e-6  # a score and the mean of its items may differ by rounding in a file


class StudyEstimate(Frozen):
    """A number with its interval, as in every result."""

    value: FiniteFloat
    low: FiniteFloat | None = None
    high: FiniteFloat | None = None
    n: int


class Judge(Frozen):
    """Judge that said what downstream answers are worth."""

    address: Text
    accuracy: StudyEstimate
    """Accuracy on the suite's labelled answers."""
    chance: float = 0.5
    """Accuracy that guessing would give."""

    @property
    def at_chance(self) -> bool:
        """Whether its accuracy cannot be told from guessing; without an interval nothing can."""
        return self.accuracy.low is None or self.accuracy.low <= self.chance

    def told(self, what: str) -> str:
        """Return the judge's accuracy, in words.

        Args:
            what: What it was examined on, `labelled pairs` say.

        Example:
            >>> Judge(address="j", accuracy=StudyEstimate(value=0.75, low=0.7, high=0.8, n=40)).told("labelled pairs")
            'judge j: 75.0 [70.0, 80.0] % of 40 labelled pairs right, guessing gives 50 %'
        """
        found = self.accuracy
        ends = "" if found.low is None or found.high is None else f" [{100 * found.low:.1f}, {100 * found.high:.1f}]"
        shown = f"{100 * found.value:.1f}{ends} % of {found.n:,} {what} right"
        return f"judge {self.address}: {shown}, guessing gives {100 * self.chance:g} %"


class Labels(Frozen):
    """Labels of an item that say which items belong together."""

    unit: Text
    """Unit that is independent of the others: the user, or on mirrored suites the couple."""
    question: Text


class ModelOutcome(Frozen):
    """Outcome of using one reward model."""

    address: str = ""
    """Address of the reward model; empty where the key in `models` is the address."""
    context: str = ""
    """Context in which it was shown the user; empty where the reader says."""
    revision: str = ""
    """Revision of its weights or code; empty where unknown."""
    score: StudyEstimate
    """Score of what was chosen or trained with it, higher = better."""
    items: Mapping[str, FiniteFloat] = {}
    """The score on each item; their mean is `score`."""
    apart: bool = False
    """Shown, but no part of any correlation: a rung of a calibration ladder."""
    lineage: str = ""
    """Method and encoder that it shares with others; empty where it stands for itself."""
    details: Mapping[str, Any] = {}
    """Details that the study keeps besides: curves, seeds."""

    @model_validator(mode="after")
    def _score_follows_from_items(self) -> Self:
        if self.context:
            Context.parse(self.context)
        if self.items:
            mean = math.fsum(self.items.values()) / len(self.items)
            if not abs(mean - self.score.value) <= _SAME * max(1.0, abs(mean)):
                raise ValueError(f"score {self.score.value} is not the mean of its items, {mean}")
        return self


class Study(Frozen):
    """One downstream study: every reward model used in the same way, judged by the same judge."""

    kind: Literal["best-of-n", "ppo"]
    suite: Text
    policy: Text
    judge: Judge
    models: Mapping[Text, ModelOutcome]
    """Outcomes by address, or by any name where one address was used in several contexts."""
    items: Mapping[str, Labels] = {}
    """The labels of the items; without them each item stands for itself."""
    endpoint: str = ""
    """Meaning of the scores: `best of 16, mean aspect score`."""
    candidates: Literal["policy", "suite"] = "policy"
    """Whether the policy wrote what was chosen among, or the suite did."""
    details: Mapping[str, Any] = {}

    @model_validator(mode="after")
    def _items_are_labelled(self) -> Self:
        if self.items:
            for name, outcome in self.models.items():
                if unknown := sorted(set(outcome.items) - set(self.items)):
                    raise ValueError(f"model {name!r} has an item {unknown[0]!r} without labels")
        return self

    def address_of(self, name: str) -> str:
        """The address of the reward model that goes by a name."""
        return self.models[name].address or name


def read_study(path: Path) -> Study:
    """Read a study from its file or its folder, and refuse one that may not rank.

    Raises:
        StudyError: It is not there, not readable, or nothing may be ranked by it.
    """
    with disk_errors(path, "read", raises=StudyError):
        file = path / FILE if path.is_dir() else path
    if not exists(file, raises=StudyError):
        raise StudyError(f"there is no study at {str(path)!r}", hint=f"name a {FILE} or the folder that holds one")
    study = read_model(file, Study, raises=StudyError, hint="the layout is in docs/studies.md")
    refuse_unfit(study, str(path))
    return study


def refuse_unfit(study: Study, name: str) -> None:
    """Refuse a study whose scores say nothing about reward models.

    Args:
        study: The study.
        name: What to call it in the message.
    """
    judge = study.judge
    if judge.at_chance:
        low = "unknown" if judge.accuracy.low is None else f"{judge.accuracy.low:.3f}"
        raise StudyError(
            f"{name}: judge {judge.address!r} is at chance: accuracy {judge.accuracy.value:.3f} with lower "
            f"bound {low}, guessing gives {judge.chance:g}",
            hint="no ranking follows from such a judge; take a better one or more labelled answers to test it on",
        )
    if study.candidates == "suite":
        raise StudyError(
            f"{name}: the candidates are the suite's own answers, so choosing among them is the benchmark itself",
            hint="correlate with candidates that a policy wrote",
        )
    ranked = {study.address_of(name) for name, outcome in study.models.items() if not outcome.apart}
    if judge.address in ranked:
        raise StudyError(
            f"{name}: {judge.address!r} is both judge and ranked reward model", hint="judge with another model"
        )
