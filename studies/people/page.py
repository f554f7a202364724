"""The page of the study: tables from the cells, and between two marks a conclusion that is written by hand and kept."""

import datetime
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from people.cells import Book, Cell
from people.plan import Finding, Plan
from people.worlds import World, describe, write_whole
from prbench.stats import Clusters, Estimate, compare_paired, difference_interval, holm, mean_interval
from prbench.types import Pair

Findings = Mapping[str, tuple[World, Sequence[Finding]]]

_START, _END = "<!-- conclusion: by hand -->", "<!-- end of conclusion -->"
_DECIDED = Path(__file__).with_name("decided.md")


def write(path: Path, plan: Plan, findings: Findings, book: Book) -> Path:
    """Write the page; a conclusion that stands there already is kept."""
    split = "test" if plan.final else "validation"
    parts = ["# Real people: is a person's taste foreseeable from a few judgments?", "", conclusion(path), ""]
    for world, found in findings.values():
        parts += [f"## {world.name[0].upper()}{world.name[1:]}", "", *_counts(world), ""]
        parts += [f"New people (`{split}`), accuracy in % by number of shots:", "", *_curve(world, found, split), ""]
        if world.name.startswith("new arguments"):
            parts += ["The same, only people with as many shots as the last column says:", ""]
            parts += [*_curve(world, found, split, busy=True), ""]
        if plan.final and "seen-users" in world.pairs:
            parts += ["People of train, asked about new items (`seen-users`):", ""]
            parts += [*_curve(world, found, "seen-users"), ""]
    parts += [
        "## Decided beforehand",
        "",
        _DECIDED.read_text(encoding="utf-8"),
        *_settings(findings),
        "",
        *_made(plan, book),
    ]
    write_whole(path, "\n".join(parts) + "\n")
    return path


def conclusion(path: Path) -> str:
    """What was written by hand between two marks of a page, with the marks; a new page says that nothing is."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    kept = text.partition(_START)[2].partition(_END)[0].strip() if _END in text else ""
    return f"{_START}\n{kept or '*No conclusion has been written yet.*'}\n{_END}"


def _counts(world: World) -> Iterator[str]:
    yield "| split | pairs | people | item pairs | median shots at hand |"
    yield "|---|---|---|---|---|"
    for row in describe(world):
        yield f"| {row[0]} | {row[1]:,} | {row[2]:,} | {row[3]:,} | {row[4]:g} |"


def _curve(world: World, found: Sequence[Finding], split: str, *, busy: bool = False) -> Iterator[str]:
    """One row for each candidate, one column for each number of shots."""
    shots = sorted({count for finding in found for count in finding.candidate.shots})
    most = max(shots)
    pairs = world.pairs[split]
    rows = whole_couples(pairs, [not busy or len(world.shots[pair.user]) >= most for pair in pairs])
    asked = [pair for pair, kept in zip(pairs, rows, strict=True) if kept]
    if not asked:
        yield "*Nobody.*"
        return
    clusters = Clusters.of([pair.user for pair in asked], [pair.tags["item_pair"] for pair in asked])
    credits = {f.candidate.name: _credits(f, split, rows) for f in found}
    best = credits.get("factors", {}).get(most)
    corrected = _p_values(credits, most, clusters)
    head = [*map(str, shots), "p", *(["below factors"] if best is not None else [])]
    yield f"| n = {len(asked):,} pairs, {len(set(clusters.users)):,} people | knows | " + " | ".join(head) + " |"
    yield "|---" * (len(head) + 2) + "|"
    for finding in found:
        mine = credits[finding.candidate.name]
        blind = len(finding.candidate.shots) == 1 and 0 in mine
        line = [finding.candidate.name, finding.candidate.knows]
        line += [_number(mine[k], asked, clusters) if k in mine else ("=" if blind else "") for k in shots]
        line.append(corrected.get(finding.candidate.name, ""))
        if best is not None:
            below = most in mine and finding.candidate.name != "factors"
            line.append(_percent(difference_interval(best, mine[most], clusters, _random())) if below else "")
        yield "| " + " | ".join(line) + " |"


def whole_couples(pairs: Sequence[Pair], kept: Sequence[bool]) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Keep a pair only with its other half: half a couple would favour whoever knows what most people like."""
    broken = {pair.tags["mirror"] for pair, stays in zip(pairs, kept, strict=True) if not stays}
    return np.array([pair.tags["mirror"] not in broken for pair in pairs])


def _credits(finding: Finding, split: str, rows: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> dict[int, np.ndarray]:
    cells: dict[int, Cell] = {shots: cell for (where, shots), cell in finding.cells.items() if where == split}
    return {shots: np.array(cell.credits)[rows] for shots, cell in cells.items()}


def _p_values(credits: Mapping[str, Mapping[int, np.ndarray]], most: int, clusters: Clusters) -> dict[str, str]:
    names = [name for name, mine in credits.items() if most in mine]
    half = np.full(clusters.n, 0.5)
    found = [compare_paired(credits[name][most], half, clusters, _random()).clustered_p for name in names]
    corrected = holm([1.0 if p is None else p for p in found]).tolist()
    return {name: "< .001" if p < 0.001 else f"{p:.3f}" for name, p in zip(names, corrected, strict=True)}


def _number(credits: np.ndarray, pairs: Sequence[Pair], clusters: Clusters) -> str:
    if is_exact(credits, [pair.tags["mirror"] for pair in pairs]):
        return "50.0 exactly"
    return _percent(mean_interval(credits, clusters, _random(), bounds=(0, 1)))


def is_exact(credits: Sequence[float] | np.ndarray, mirrors: Sequence[str]) -> bool:
    """Whether every couple earned exactly 1 between its two halves, as whoever ignores the person must.

    Example:
        >>> is_exact([1, 0, 0.5, 0.5], list("aabb")), is_exact([1, 1], list("aa")), is_exact([1, 0, 1], list("aab"))
        (True, False, False)
    """
    _, couple = np.unique(mirrors, return_inverse=True)
    both = np.bincount(couple) == 2
    return bool(both.all()) and bool((np.bincount(couple, np.asarray(credits, dtype=float)) == 1).all())


def _percent(found: Estimate) -> str:
    if found.value is None or found.low is None or found.high is None:
        return "" if found.value is None else f"{100 * found.value:.1f}"
    return f"{100 * found.value:.1f} [{100 * found.low:.1f}, {100 * found.high:.1f}]"


def _settings(findings: Findings) -> Iterator[str]:
    yield "Chosen on validation (accuracy there of each setting that was tried):"
    yield ""
    yield "| world | | chosen | tried |"
    yield "|---|---|---|---|"
    for name, (_, found) in findings.items():
        for finding in found:
            if finding.tried:
                tried = "; ".join(f"{setting}: {100 * value:.1f}" for setting, value in finding.tried.items())
                yield f"| {name} | {finding.candidate.name} | {finding.setting} | {tried} |"


def _made(plan: Plan, book: Book) -> Iterator[str]:
    looks, (clock, processor) = book.looks(), book.spent()
    times = sorted(set(looks.values()))
    yield "## How it was made"
    yield ""
    command = "make real-people" if plan.final else "python studies/real_people.py --quick (or --before-test)"
    yield f"- `{command}`, seed {plan.seed}, {datetime.date.today().isoformat()}."
    yield f"- {platform.system()} {platform.machine()}, {os.cpu_count()} cores shared with other work, Python"
    yield f"  {platform.python_version()}; {clock / 3600:.1f} hours on the clock, {processor / 3600:.1f} of processor"
    yield "  (what was measured or trained; suites and this page come on top)."
    yield f"- Looks at test and seen-users: {sum(looks.values())} cells (method × number of shots × split), each"
    yield f"  measured {' or '.join(map(str, times)) or 'no'} time{'' if times in ([], [1]) else 's'}."
    yield "- Data: UKPConvArg1 (Habernal and Gurevych, ACL 2016, CC BY 4.0) and Jester (Goldberg et al. 2001, research"
    yield "  use). Neither is part of this project; only figures computed from them are printed here."


def _random() -> np.random.Generator:
    return np.random.default_rng(0)
