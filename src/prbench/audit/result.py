"""Findings of an audit: figures, each with its own verdict and the examples that speak against it."""

from collections.abc import Iterable, Sequence
from enum import StrEnum

from prbench.stats import Estimate
from prbench.types import Frozen


class CheckVerdict(StrEnum):
    """Verdict of a check; `not applicable` where the suite has nothing for it to look at."""

    NOT_APPLICABLE = "not applicable"
    PASS = "pass"  # noqa: S105 (a verdict, no password)
    WARN = "warn"
    FAIL = "fail"


def worst(verdicts: Iterable[CheckVerdict]) -> CheckVerdict:
    """The gravest of several verdicts; without any, nothing was applicable.

    Example:
        >>> str(worst([CheckVerdict.PASS, CheckVerdict.WARN, CheckVerdict.NOT_APPLICABLE]))
        'warn'
    """
    order = list(CheckVerdict)
    return max(verdicts, key=order.index, default=CheckVerdict.NOT_APPLICABLE)


class Offence(Frozen):
    """One offence: where to look, and what is seen there."""

    ids: tuple[str, ...]
    """Ids of pairs, posts, users or axes; the answer of a pair is written `PAIR#chosen` or `PAIR#rejected`."""
    detail: str = ""


class Figure(Frozen):
    """A number with its verdict, and everything that speaks against it."""

    name: str
    verdict: CheckVerdict
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int
    """Number of things that were looked at."""
    examples: tuple[Offence, ...] = ()

    @classmethod
    def counted(
        cls, name: str, n: int, offences: Sequence[Offence], otherwise: CheckVerdict = CheckVerdict.FAIL
    ) -> "Figure":
        """Return a figure of how many of `n` things offend: none is a pass, any has the verdict `otherwise`.

        Example:
            >>> str(Figure.counted("halves that lack the other", 12, []).verdict)
            'pass'
        """
        if n == 0 and not offences:
            return cls(name=name, verdict=CheckVerdict.NOT_APPLICABLE, value=None, n=0)
        verdict = otherwise if offences else CheckVerdict.PASS
        return cls(name=name, verdict=verdict, value=len(offences), n=n, examples=tuple(offences))

    @classmethod
    def estimated(
        cls, name: str, estimate: Estimate, verdict: CheckVerdict, examples: Sequence[Offence] = ()
    ) -> "Figure":
        """An estimate with its interval; one that the data do not give is not applicable."""
        if estimate.value is None:
            verdict = CheckVerdict.NOT_APPLICABLE
        return cls(name=name, verdict=verdict, examples=tuple(examples), **estimate.to_json())


class Finding(Frozen):
    """Finding of one check: its verdict is that of its gravest figure."""

    check: str
    verdict: CheckVerdict
    asks: str
    """The question that the check puts to the suite."""
    threshold: str
    """Threshold of the check, in words and numbers."""
    figures: tuple[Figure, ...] = ()

    @classmethod
    def of(cls, check: str, *, asks: str, threshold: str, figures: Sequence[Figure]) -> "Finding":
        """Sum up the figures of a check.

        Example:
            >>> finding = Finding.of("evidence", asks="…", threshold="…", figures=[Figure.counted("gone", 3, [])])
            >>> str(finding.verdict)
            'pass'
        """
        verdict = worst(figure.verdict for figure in figures)
        return cls(check=check, verdict=verdict, asks=asks, threshold=threshold, figures=tuple(figures))
