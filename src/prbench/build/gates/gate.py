"""Gates, and the way of drafts through several of them.

A gate names the drafts that it refuses, each with a reason that holds the measured value and the line it crossed. What
a gate could not measure is refused as well, and counted apart: it is never a pass. Halves of a mirrored couple stay or
go together, else a model that ignores the user would no longer be right exactly half of the time.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from prbench.build.draft import Draft
from prbench.errors import DataError
from prbench.types import Frozen

_UNMEASURED = "unmeasured: "
ROUNDING = 1e-9
"""Measured values are compared with thresholds that people type: 5/3 − 2/3 is 1, and 8.3 − 6.3 is 2."""


class Gate(Protocol):
    """One question asked of every draft."""

    @property
    def name(self) -> str:
        """Name as typed in `--gate` and printed in the report."""
        ...

    @property
    def rule(self) -> str:
        """Rule of what passes, with the threshold, in a few words."""
        ...

    def check(self, drafts: Sequence[Draft]) -> dict[str, str]:
        """Return why drafts are refused, by id; the others pass. The order of the drafts makes no difference."""
        ...


def unmeasured(reason: str) -> str:
    """Mark a reason: the gate could not look, so it cannot let pass.

    Example:
        >>> is_unmeasured(unmeasured("no reply")), is_unmeasured("ratio 1.8 > 1.5")
        (True, False)
    """
    return _UNMEASURED + reason


def is_unmeasured(reason: str) -> bool:
    """Whether a reason says that nothing could be measured."""
    return reason.startswith(_UNMEASURED)


class Reject(Frozen):
    """A draft that did not pass: one line of `rejects.jsonl`."""

    gate: str
    reason: str
    draft: Draft


class GateCount(Frozen):
    """Counts of one gate. Passed are `checked` less the other three."""

    gate: str
    rule: str
    checked: int
    rejected: int
    """Refused for what was measured."""
    unmeasured: int
    """Refused because nothing could be measured."""
    with_half: int
    """Refused only because the other half of the couple was."""

    @property
    def passed(self) -> int:
        """Drafts that went on to the next gate."""
        return self.checked - self.rejected - self.unmeasured - self.with_half


class GateReport(Frozen):
    """Report of what became of the drafts."""

    kept: tuple[Draft, ...]
    rejects: tuple[Reject, ...]
    counts: tuple[GateCount, ...]

    def table(self) -> list[list[str]]:
        """One row for each gate: name, rule, checked, rejected, unmeasured, with its half, passed."""
        return [
            [count.gate, count.rule]
            + [f"{n:,}" for n in (count.checked, count.rejected, count.unmeasured, count.with_half, count.passed)]
            for count in self.counts
        ]


def run_gates(
    drafts: Sequence[Draft], gates: Sequence[Gate], on_gate: Callable[[GateCount], None] | None = None
) -> GateReport:
    """Send drafts through gates, one gate after the other; each sees only what the earlier ones let pass.

    Put gates that cost nothing first: what they refuse is never sent to a model. Kept drafts and rejects stand in the
    order of the drafts, but which drafts are kept does not depend on it.

    Args:
        drafts: With ids that differ.
        gates: In the order in which they look.
        on_gate: Told after every gate what it did.

    Example:
        >>> from prbench.build.gates import LengthRatio
        >>> draft = Draft(id="1", user="ann", question="Tea?", chosen="Green tea, not boiled.", rejected="Black.")
        >>> report = run_gates([draft], [LengthRatio()])
        >>> report.kept, report.rejects[0].reason
        ((), 'chosen has 4 words, rejected 1: ratio 4.00 > 1.50')
    """
    if repeated := [name for name, count in Counter(draft.id for draft in drafts).items() if count > 1]:
        raise DataError(f"draft id {repeated[0]!r} stands more than once", hint="make ids unique")
    place = {draft.id: index for index, draft in enumerate(drafts)}
    left = sorted(drafts, key=lambda draft: draft.id)
    rejects: list[Reject] = []
    counts = []
    for gate in gates:
        reasons = gate.check(left)
        halves = dict(_other_halves(left, reasons))
        refused = {**reasons, **halves}
        rejects += [Reject(gate=gate.name, reason=refused[d.id], draft=d) for d in left if d.id in refused]
        counts.append(_count(gate, len(left), reasons, halves))
        left = [draft for draft in left if draft.id not in refused]
        if on_gate:
            on_gate(counts[-1])
    return GateReport(
        kept=tuple(sorted(left, key=lambda draft: place[draft.id])),
        rejects=tuple(sorted(rejects, key=lambda reject: place[reject.draft.id])),
        counts=tuple(counts),
    )


def couple(draft: Draft) -> str:
    """Return the key that a draft shares with its other half and with no other draft."""
    mirror = draft.tags.get("mirror")
    return f"mirror\0{mirror}" if mirror else f"id\0{draft.id}"


def by_couple(drafts: Sequence[Draft]) -> dict[str, list[Draft]]:
    """Drafts with their other halves, by id of the first of each."""
    found: dict[str, list[Draft]] = {}
    for draft in sorted(drafts, key=lambda draft: draft.id):
        found.setdefault(couple(draft), []).append(draft)
    return found


def _other_halves(drafts: Sequence[Draft], reasons: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The halves that must go with a refused one, and why."""
    for halves in by_couple(drafts).values():
        refused = [half.id for half in halves if half.id in reasons]
        for half in halves:
            if refused and half.id not in reasons:
                yield half.id, f"its mirrored half {refused[0]!r} was refused: {reasons[refused[0]]}"


def _count(gate: Gate, checked: int, reasons: Mapping[str, str], halves: Mapping[str, str]) -> GateCount:
    blank = sum(map(is_unmeasured, reasons.values()))
    return GateCount(
        gate=gate.name,
        rule=gate.rule,
        checked=checked,
        rejected=len(reasons) - blank,
        unmeasured=blank,
        with_half=len(halves),
    )
