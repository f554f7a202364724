"""An audit as tables: every check in a line, then what warns or fails, then where to look."""

from prbench.audit.examine import Audit
from prbench.audit.result import CheckVerdict, Figure, Finding
from prbench.show import Number, Table, count

_WRONG = (CheckVerdict.WARN, CheckVerdict.FAIL)


def audit_tables(found: Audit, examples: int = 3) -> list[Table]:
    """Everything that is printed of an audit.

    Args:
        found: The audit.
        examples: At most so many for each figure that warns or fails.
    """
    wrong = [(finding, figure) for finding in found.findings for figure in finding.figures if figure.verdict in _WRONG]
    tables = [_summary(found)]
    if wrong:
        tables.append(_figures(wrong))
    if examples and any(figure.examples for _, figure in wrong):
        tables.append(_examples(wrong, examples))
    return tables


def _summary(found: Audit) -> Table:
    counts = ", ".join(f"{count:,} {what}" for what, count in found.counts.items())
    rows = [[finding.check, str(finding.verdict), _tally(finding), finding.threshold] for finding in found.findings]
    title = f"Audit of {found.suite} · {counts} · {found.verdict}"
    return Table(title, ["check", "verdict", "figures", "threshold"], rows, first_numeric=4)


def _tally(finding: Finding) -> str:
    """Return the number of figures, and of those that are wrong."""
    if finding.verdict is CheckVerdict.NOT_APPLICABLE:
        return "–"
    wrong = [
        f"{count} {verdict}" for verdict in _WRONG if (count := sum(f.verdict is verdict for f in finding.figures))
    ]
    return ", ".join([*wrong, f"{len(finding.figures)} in all"])


def _figures(wrong: list[tuple[Finding, Figure]]) -> Table:
    rows = [
        [finding.check, str(figure.verdict), figure.name, _value(figure), count(figure.n)] for finding, figure in wrong
    ]
    return Table("What warns or fails", ["check", "verdict", "figure", "value [95 %]", "n"], rows, first_numeric=3)


def _value(figure: Figure) -> str:
    if figure.value is None:
        return Number("–", None, ranged=True)
    shown = f"{figure.value:,.2f}".removesuffix(".00")
    if figure.low is None or figure.high is None:
        return Number(shown, figure.value, ranged=True)
    return Number(f"{shown} [{figure.low:,.2f}, {figure.high:,.2f}]", figure.value, figure.low, figure.high)


def _examples(wrong: list[tuple[Finding, Figure]], most: int) -> Table:
    rows = [
        [finding.check, figure.name.split(" (")[0], " | ".join(example.ids), example.detail]
        for finding, figure in wrong
        for example in figure.examples[:most]
    ]
    left = sum(max(len(figure.examples) - most, 0) for _, figure in wrong)
    notes = [f"{left:,} more; --examples N shows more of each, --out FILE.json writes them"] if left else []
    return Table("Where to look", ["check", "figure", "ids", "detail"], rows, notes, first_numeric=4)
