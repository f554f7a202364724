"""Scores of published benchmarks by their own formulas, from a run's pairs.

RewardBench 2 (arXiv 2506.01937): share of prompts whose right answer scores above three wrong ones, an answer that ties
for the first place earning its share; the subset Ties by a weighted sum of its own. RM-Bench (arXiv 2410.16184): easy,
normal and hard by the styles of the two answers. JudgeBench (arXiv 2410.12784): both orders must not contradict the
label. RMGAP (github.com/nanzhi84/RMGAP): pairs, best of four and rankings that paraphrases leave alone. Any other suite
with several answers in a row gets its best-of-N accuracy. Ties earn nothing but where a formula says otherwise; a row
of which a verdict is missing is left out, and counted.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import NamedTuple

from numpy.typing import ArrayLike

from prbench.results.credits import Credit, Credits
from prbench.results.rows import PairRow, PairRows
from prbench.stats import Estimate
from prbench.types import CHOSEN_ANSWER, ITEM, REJECTED_ANSWER, Frozen

Mean = Callable[[str, Sequence[Credit], ArrayLike], Estimate]
"""Takes a name that seeds resampling, a credit for each row (for its clusters) and values; returns their mean."""

_STYLES = ("concise", "detailed", "markdown")
_NO_SCORES = "needs a score for each answer; this model compares two"


class PublishedScores(Frozen):
    """Scores by a benchmark's own formula."""

    benchmark: str
    formula: str
    scores: Mapping[str, Estimate]
    not_computed: Mapping[str, str] = {}
    """Scores that these records do not give, and why."""
    left_out: int = 0
    """Rows of which some pair has no verdict, or that lack what the benchmark's formula needs."""


class _Item(NamedTuple):
    """The pairs of one row with several answers."""

    name: str
    credits: tuple[Credit, ...]

    @property
    def first(self) -> Credit:
        return self.credits[0]

    @property
    def category(self) -> str:
        return self.first.row.category

    @property
    def best(self) -> float:
        """1 where the chosen answer beats all others, its share where it ties for the first place, else 0."""
        if any(one.credit < 0.5 for one in self.credits):
            return 0.0
        return 1.0 / (1 + sum(one.credit == 0.5 for one in self.credits))

    @property
    def scores(self) -> tuple[dict[str, float], dict[str, float]] | None:
        """Scores of the right and of the wrong answers, by their names; None where a model gives none."""
        right: dict[str, list[float]] = defaultdict(list)
        wrong: dict[str, list[float]] = defaultdict(list)
        for credit in self.credits:
            for record in credit.records:
                if record.chosen_score is None or record.rejected_score is None:
                    return None
                right[credit.row.tags[CHOSEN_ANSWER]].append(record.chosen_score)
                wrong[credit.row.tags[REJECTED_ANSWER]].append(record.rejected_score)
        return {name: fmean(found) for name, found in right.items()}, {n: fmean(f) for n, f in wrong.items()}


def published_scores(suite: str, rows: PairRows, credits: Credits, name: str, mean: Mean) -> PublishedScores | None:
    """The scores of the benchmark that a suite is, or best-of-N where rows have several answers; else None.

    Args:
        suite: Name of the suite.
        rows: All pairs of the run.
        credits: Credits that the model earned.
        name: Of the context, to seed resampling.
        mean: Computes a mean with its interval.
    """
    if suite == "judgebench":
        return _judgebench(credits, name, mean)
    items, left_out = _items(rows, credits)
    if not items and not left_out:
        return None
    formulas = {"rewardbench-2": _rewardbench, "rm-bench": _rm_bench, "rmgap": _rmgap}
    formula, fitting = formulas.get(suite, _best_of_n), [item for item in items if _fits(suite, item)]
    if items and not fitting:  # a suite that only has the name of the benchmark
        formula, fitting = _best_of_n, items
    found = formula(fitting, lambda part, some, values: mean(f"{name} {part}", some, values))
    left_out += len(items) - len(fitting)
    return None if found is None else found.model_copy(update={"left_out": left_out})


def _fits(suite: str, item: _Item) -> bool:
    """Whether a row has what the formula of a benchmark needs."""
    tags = [credit.row.tags for credit in item.credits]
    if suite == "rm-bench":
        styles = {(one[CHOSEN_ANSWER], one.get(REJECTED_ANSWER)) for one in tags}
        return styles == {(i, j) for i in "012" for j in "012"}
    needed = {"rewardbench-2": (REJECTED_ANSWER,), "rmgap": (REJECTED_ANSWER, "preference")}.get(suite, ())
    return all(tag in one for one in tags for tag in needed)


def _items(rows: PairRows, credits: Credits) -> tuple[list[_Item], int]:
    if not any(CHOSEN_ANSWER in keys for keys, _ in rows.column("tags")):
        return [], 0
    earned = {credit.row.id: credit for credit in credits.rows}
    grouped: dict[str, list[PairRow]] = defaultdict(list)
    for row in rows:
        if ITEM in row.tags and CHOSEN_ANSWER in row.tags:
            grouped[row.tags[ITEM]].append(row)
    whole = {item: found for item, found in grouped.items() if all(row.id in earned for row in found)}
    items = [_Item(item, tuple(earned[row.id] for row in found)) for item, found in whole.items()]
    return items, len(grouped) - len(whole)


def _best_of_n(items: Sequence[_Item], mean: Mean) -> PublishedScores | None:
    listed = [item for item in items if _chosen(item) == 1 and len(item.credits) > 1]
    if not listed:
        return None
    sizes = sorted({len(item.credits) + 1 for item in listed})
    label = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]}–{sizes[-1]}"
    return PublishedScores(
        benchmark=f"best of {label}",
        formula="share of rows whose chosen answer beats all others; a tie for the first place earns its share",
        scores={"overall": _mean_of(f"best of {label}", listed, mean, lambda item: item.best)},
    )


def _chosen(item: _Item) -> int:
    return len({credit.row.tags[CHOSEN_ANSWER] for credit in item.credits})


def _mean_of(name: str, items: Sequence[_Item], mean: Mean, value: Callable[[_Item], float]) -> Estimate:
    return mean(name, [item.first for item in items], [value(item) for item in items])


def _rewardbench(items: Sequence[_Item], mean: Mean) -> PublishedScores:
    subsets: dict[str, list[_Item]] = defaultdict(list)
    for item in items:
        subsets[item.category].append(item)
    scores: dict[str, Estimate] = {}
    missing: dict[str, str] = {}
    for subset, found in sorted(subsets.items()):
        if subset.lower() != "ties":
            scores[subset] = _mean_of(subset, found, mean, lambda item: item.best)
        elif isinstance(ties := _ties(subset, found, mean), str):
            missing[subset] = ties
        else:
            scores[subset] = ties
    if missing:
        missing["overall"] = f"the mean of all subsets needs {', '.join(missing)}"
    overall = {} if missing else {"overall": _average(list(scores.values()))}
    return PublishedScores(
        benchmark="RewardBench 2",
        formula="best of 4 per subset, a tie for the first place earning its share; Ties: 0.3 (all right answers above "
        "the best wrong one, with several right) + 0.3 (the same, with one) + 0.2 (that gap above the spread of the "
        "right ones) + 0.2 (so too the smaller of both gaps) + 0.01 tanh(that gap ÷ spread − 1); overall: mean of the "
        "subsets",
        scores={**overall, **scores},
        not_computed=missing,
    )


class _Gap(NamedTuple):
    """Distance between a prompt's right and wrong answers."""

    gap: float
    """Distance from the worst right answer down to the best wrong one."""
    spread: float
    """Distance from the best right answer to the worst right one."""


def _ties(subset: str, items: Sequence[_Item], mean: Mean) -> Estimate | str:
    """The Ties score, or why there is none.

    Ids are `ref:N` (one right answer) and `tied:N` (several) of prompt N. Where every prompt has both, the score is a
    mean over prompts and so has an interval.
    """
    kinds: dict[str, dict[str, tuple[_Item, _Gap]]] = {"ref": {}, "tied": {}}
    for item in items:
        kind, _, prompt = item.name.partition(":")
        if kind not in kinds or not prompt:
            return f"the id {item.name!r} is neither 'ref:N' nor 'tied:N'"
        if (scores := item.scores) is None:
            return _NO_SCORES
        right, wrong = (list(one.values()) for one in scores)
        kinds[kind][prompt] = item, _Gap(min(right) - max(wrong), max(right) - min(right))
    prompts = sorted(kinds["ref"].keys() & kinds["tied"].keys())
    if not prompts:
        return "no prompt has both a 'ref:N' and a 'tied:N' row"
    parts = [_ties_parts(kinds["ref"][prompt][1], kinds["tied"][prompt][1]) for prompt in prompts]
    found = mean(subset, [kinds["tied"][prompt][0].first for prompt in prompts], [sum(part) for part in parts])
    if len(prompts) == len(kinds["ref"]) == len(kinds["tied"]):
        return found
    accurate = [fmean(one.gap > 0 for _, one in kinds[kind].values()) for kind in ("tied", "ref")]
    value = 0.3 * sum(accurate) + fmean(sum(part[2:]) for part in parts)
    return Estimate(value, None, None, len(prompts))


def _ties_parts(ref: _Gap, tied: _Gap) -> tuple[float, float, float, float, float]:
    """The five terms of one prompt's score."""
    smaller = min(ref.gap, tied.gap)
    lead = smaller / tied.spread - 1 if tied.spread else math.copysign(math.inf, smaller) if smaller else 0.0
    return (
        0.3 * (tied.gap > 0),
        0.3 * (ref.gap > 0),
        0.2 * (tied.gap > tied.spread),
        0.2 * (smaller > tied.spread),
        0.01 * math.tanh(lead),  # nothing where both gap and spread are 0
    )


def _rm_bench(items: Sequence[_Item], mean: Mean) -> PublishedScores:
    domains: dict[str, list[_Item]] = defaultdict(list)
    for item in items:
        domains[item.category.partition("-")[0]].append(item)  # safety-refuse and safety-response are one domain
    scores: dict[str, Estimate] = {}
    levels: dict[str, list[Estimate]] = defaultdict(list)
    cells: dict[str, list[Estimate]] = defaultdict(list)
    for domain, found in sorted(domains.items()):
        scores[domain] = _mean_of(domain, found, mean, lambda item: fmean(_levels(item).values()))
        for level in ("easy", "normal", "hard"):
            levels[level].append(_mean_of(f"{domain} {level}", found, mean, lambda item, at=level: _levels(item)[at]))  # type: ignore[misc]
        for i, j in ((i, j) for i in range(3) for j in range(3)):
            name = f"{_STYLES[i]} over {_STYLES[j]}"
            cells[name].append(_mean_of(f"{domain} {name}", found, mean, lambda item, at=(i, j): _matrix(item)[at]))  # type: ignore[misc]
    averages = {name: _average(found) for name, found in {**levels, **cells}.items()}
    return PublishedScores(
        benchmark="RM-Bench",
        formula="share of pairs with the right answer above the wrong one, ties wrong; easy, normal, hard: the right "
        "one is richer in style, equal, plainer; every score is a mean over the domains",
        scores={"overall": _average(list(scores.values())), **scores, **averages},
    )


def _matrix(item: _Item) -> dict[tuple[int, int], float]:
    """Whether the right answer wins, by the styles of right and wrong answer."""
    return {
        (int(one.row.tags[CHOSEN_ANSWER]), int(one.row.tags[REJECTED_ANSWER])): float(one.credit > 0.5)
        for one in item.credits
    }


def _levels(item: _Item) -> dict[str, float]:
    """Share of wins where the right answer is richer in style, of one style with the wrong one, and plainer."""
    found: dict[str, list[float]] = {"easy": [], "normal": [], "hard": []}
    for (i, j), won in _matrix(item).items():
        found["easy" if i > j else "normal" if i == j else "hard"].append(won)
    return {name: fmean(won) for name, won in found.items()}


def _judgebench(credits: Credits, name: str, mean: Mean) -> PublishedScores:
    def right(credit: Credit) -> float:
        return float(fmean(record.credit or 0.0 for record in credit.records) > 0.5)

    kinds: dict[str, list[Credit]] = defaultdict(list)
    for credit in credits.rows:
        kinds[credit.row.category].append(credit)
    parts = {"overall": credits.rows, **dict(sorted(kinds.items()))}
    return PublishedScores(
        benchmark="JudgeBench",
        formula="share of pairs on which the verdicts in both orders together favour the right answer; a verdict that "
        "flips with the order is wrong",
        scores={part: mean(f"{name} {part}", some, list(map(right, some))) for part, some in parts.items()},
        left_out=credits.missing,
    )


def _rmgap(items: Sequence[_Item], mean: Mean) -> PublishedScores:
    domains: dict[str, list[_Item]] = defaultdict(list)
    for item in items:
        domains[item.category].append(item)
    scores: dict[str, list[Estimate]] = defaultdict(list)
    missing: dict[str, str] = {}
    named: dict[str, Estimate] = {}
    for domain, found in sorted(domains.items()):
        pairs = [credit for item in found for credit in item.credits]
        parts = {
            "pairs": mean(f"{domain} pairs", pairs, [float(one.credit > 0.5) for one in pairs]),
            "best of 4": _mean_of(f"{domain} best", found, mean, lambda item: float(item.best == 1.0)),
        }
        if groups := list(_rankings(found)):
            same = [float(len(set(rankings)) == 1) for _, rankings in groups]
            parts["consistency"] = mean(f"{domain} consistency", [first for first, _ in groups], same)
        for part, estimate in parts.items():
            scores[part].append(estimate)
            named[f"{part}: {domain}"] = estimate
    if "consistency" not in scores:
        missing["consistency"] = _NO_SCORES if items and items[0].scores is None else "no preference in three wordings"
    return PublishedScores(
        benchmark="RMGAP",
        formula="pairs: the preferred answer above each other one; best of 4: above all three (25 for a model that "
        "does not read the preference); consistency: the same ranking under all three wordings; means over domains",
        scores={**{part: _average(found) for part, found in scores.items()}, **named},
        not_computed=missing,
    )


def _rankings(items: Sequence[_Item]) -> Iterator[tuple[Credit, list[tuple[str, ...]]]]:
    """Yield the ranking of the answers under each wording of a preference, if all three wordings were scored."""
    groups: dict[str, list[_Item]] = defaultdict(list)
    for item in items:
        groups[item.first.row.tags["preference"]].append(item)
    for found in groups.values():
        scored = [item.scores for item in found]
        if len(found) == 3 and all(one is not None for one in scored):
            both = [{**one[0], **one[1]} for one in scored if one is not None]
            yield found[0].first, [tuple(sorted(one, key=lambda key: (-one[key], key))) for one in both]


def _average(parts: Sequence[Estimate]) -> Estimate:
    """The plain mean of independent estimates; its interval adds their half-widths in quadrature."""
    known = [(part, part.value) for part in parts if part.value is not None]
    if not known:
        return Estimate.undefined()
    value = fmean(number for _, number in known)
    found = Estimate(value, None, None, sum(part.n for part, _ in known))
    if any(part.low is None or part.high is None for part, _ in known):
        return found
    below = math.sqrt(sum((number - (part.low or 0.0)) ** 2 for part, number in known)) / len(known)
    above = math.sqrt(sum(((part.high or 0.0) - number) ** 2 for part, number in known)) / len(known)
    return replace(found, low=max(0.0, value - below), high=max(value, min(1.0, value + above)))
