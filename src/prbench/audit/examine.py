"""All checks in order, and their sum."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, Protocol

from prbench.audit.config import AuditConfig, default_settings
from prbench.audit.corpus import Corpus
from prbench.audit.duplicates import RepeatedTexts, SharedSentences
from prbench.audit.evidence import ProfileLengths, StanceEvidence
from prbench.audit.histories import Histories
from prbench.audit.leaks import ProfileLeaks, StandardLeaks
from prbench.audit.mirror import MirrorBalance, UserBlindAccuracy
from prbench.audit.names import Names
from prbench.audit.people import DemographicAssociation, People, StanceBalance
from prbench.audit.poles import PolePreference, PoleProbe
from prbench.audit.raters import Opinion, consult
from prbench.audit.result import CheckVerdict, Figure, Finding, worst
from prbench.audit.splits import DisjointSplits
from prbench.audit.style import ReadingLevel, StyleBalance
from prbench.data import Suite
from prbench.errors import ConfigError, did_you_mean
from prbench.models import BASELINES
from prbench.types import Frozen, Pair


class Check(Protocol):
    """One question put to a suite."""

    @property
    def name(self) -> str:
        """Name of the check in tables and JSON."""
        ...

    def examine(self, corpus: Corpus) -> Finding:
        """Examine a corpus and return the finding."""
        ...


class Audit(Frozen):
    """Findings of all checks on one suite."""

    suite: str
    fingerprint: str
    counts: Mapping[str, int]
    """Pairs, users, questions, distinct answers and posts."""
    settings: AuditConfig
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> CheckVerdict:
        """Gravest verdict of all findings."""
        return worst(finding.verdict for finding in self.findings)

    @property
    def failed(self) -> bool:
        """Whether any check failed."""
        return self.verdict is CheckVerdict.FAIL

    def finding(self, check: str) -> Finding:
        """Return the finding of one check.

        Example:
            >>> pair = Pair(id="1", user="ann", question="Tea?", chosen="Green.", rejected="Black.")
            >>> str(audit([pair]).finding("mirror").verdict)
            'not applicable'
        """
        return next(finding for finding in self.findings if finding.check == check)

    def to_json(self, examples: int = 5) -> dict[str, Any]:
        """Everything, with at most so many examples for each figure."""
        return {
            "suite": self.suite,
            "fingerprint": self.fingerprint,
            "counts": dict(self.counts),
            "verdict": str(self.verdict),
            "checks": [_finding(finding, examples) for finding in self.findings],
            "settings": self.settings.model_dump(mode="json"),
        }


_PLAIN = (
    PoleProbe,
    StyleBalance,
    ReadingLevel,
    RepeatedTexts,
    SharedSentences,
    StandardLeaks,
    ProfileLeaks,
    Names,
    StanceEvidence,
    ProfileLengths,
    Histories,
    DisjointSplits,
    StanceBalance,
)
"""Checks that need nothing but settings."""


def audit(
    pairs: Suite | Sequence[Pair],
    *,
    settings: AuditConfig | None = None,
    people: People | None = None,
    raters: Sequence[str] = (),
    checks: Sequence[str] = (),
) -> Audit:
    """Put every check to a suite.

    Args:
        pairs: The suite.
        settings: Thresholds and exemptions; default: those that ship with the package.
        people: Attributes of users, for the check of demographic association (see `load_people`).
        raters: Addresses of further models to ask without showing the user, beside the content-blind baselines.
        checks: Names of the checks to make; default: all.

    Raises:
        ConfigError: If a check is unknown.

    Example:
        >>> found = audit([Pair(id="1", user="ann", question="Tea?", chosen="Green tea.", rejected="Black tea.")])
        >>> found.failed, len(found.findings)
        (False, 17)
    """
    suite = pairs if isinstance(pairs, Suite) else Suite.of(pairs)
    settings = settings or default_settings()
    corpus = Corpus(tuple(suite))
    counts = suite.record.counts
    return Audit(
        suite=suite.record.name,
        fingerprint=suite.record.fingerprint,
        counts={
            "pairs": counts.pairs,
            "users": counts.users,
            "questions": counts.questions,
            "answers": len(corpus.answers),
            "posts": len(corpus.posts),
        },
        settings=settings,
        findings=tuple(
            make().examine(corpus) for make in _chosen(_all_checks(corpus, settings, people or {}, raters), checks)
        ),
    )


def _chosen(known: Mapping[str, Callable[[], Check]], names: Sequence[str]) -> list[Callable[[], Check]]:
    for name in names:
        if name not in known:
            raise ConfigError(f"unknown check {name!r}", hint=did_you_mean(name, known))
    return [make for name, make in known.items() if not names or name in names]


def _all_checks(
    corpus: Corpus, settings: AuditConfig, people: People, raters: Sequence[str]
) -> Mapping[str, Callable[[], Check]]:
    """Every check by name, not yet made: raters are asked only if a check wants to know."""

    @cache
    def opinions() -> list[Opinion]:
        return [consult(address, corpus) for address in dict.fromkeys((*BASELINES, *raters))]

    checks: list[tuple[str, Callable[[], Check]]] = [
        (MirrorBalance.name, MirrorBalance),
        (UserBlindAccuracy.name, lambda: UserBlindAccuracy(settings, opinions())),
        (PolePreference.name, lambda: PolePreference(settings, opinions())),
        *((check.name, partial(check, settings)) for check in _PLAIN),
        (DemographicAssociation.name, lambda: DemographicAssociation(settings, people)),
    ]
    return dict(checks)


def _finding(finding: Finding, examples: int) -> dict[str, Any]:
    shown = finding.model_dump(mode="json", exclude={"figures"})
    return {**shown, "figures": [_figure(figure, examples) for figure in finding.figures]}


def _figure(figure: Figure, examples: int) -> dict[str, Any]:
    shown = figure.model_dump(mode="json", exclude={"examples"})
    offences = [example.model_dump(mode="json") for example in figure.examples[:examples]]
    return {**shown, "examples": offences, "examples_left_off": max(len(figure.examples) - examples, 0)}
