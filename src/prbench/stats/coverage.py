"""Coverage of users: for how many a model works, not only how well on average.

Users count as independent here. On mirrored suites the two halves of a couple are not, but a user-blind model's halves
are opposed, so intervals over users err on the wide side; couple coverage and mirror consistency count couples.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from prbench.stats.arrays import Codes, Floats, as_floats
from prbench.stats.clusters import Clusters, encode
from prbench.stats.comparison import holm
from prbench.stats.estimate import Estimate, wilson
from prbench.stats.intervals import FEW_CLUSTERS, RESAMPLES, mean_interval, percentiles

_DRAWN = 200_000
"""Draws of users that are held at once."""


@dataclass(frozen=True, slots=True)
class UserScore:
    """Score of a model on one user."""

    mean: float
    n: int
    p: float | None
    """One-sided sign test that the model is right more often than not, Holm-corrected; None if not testable."""
    covered: bool | None


@dataclass(frozen=True, slots=True)
class Coverage:
    """Spread of a model's credit over users."""

    covered: Estimate
    """Share of testable users for whom the model is significantly better than a coin."""
    above_half: Estimate
    """Share of all users with a mean above ½."""
    mean_of_users: Estimate
    """Mean over users of their mean: every user weighs the same."""
    worst_decile: Estimate
    """Mean over the tenth of users with the lowest means, at least one user; no interval below 30 users."""
    not_testable: int
    """Users with too few pairs to be tested; left out of `covered`."""
    users: Mapping[str, UserScore]


def user_coverage(
    credits: ArrayLike,
    users: Sequence[Hashable],
    rng: np.random.Generator,
    *,
    min_pairs: int = 10,
    level: float = 0.05,
    resamples: int = RESAMPLES,
) -> Coverage:
    """Test a model user by user: a one-sided exact sign test against ½, ties dropped, Holm over the testable users.

    Args:
        credits: One credit per row: above ½ right, below ½ wrong, ½ a tie.
        users: The user of each row.
        rng: Where resampling (of the worst decile) takes its draws from.
        min_pairs: Users with fewer rows, ties included, are not testable.
        level: The chance, at most, that any user is wrongly called covered.
        resamples: Number of bootstrap resamples.

    Example:
        >>> users = ["ann"] * 12 + ["bob"] * 12 + ["cy"]
        >>> coverage = user_coverage([1] * 12 + [0, 1] * 6 + [1], users, np.random.default_rng(0))
        >>> coverage.covered.value, coverage.covered.n, coverage.not_testable
        (0.5, 2, 1)
    """
    codes, names = encode(users)
    rows = as_floats("credits", credits, len(codes))
    sizes = np.bincount(codes, minlength=len(names))
    sums = np.bincount(codes, weights=rows, minlength=len(names))
    means = sums / sizes
    testable = sizes >= min_pairs
    p = np.ones(len(names))
    p[testable] = holm(_sign_tests(rows, codes, len(names))[testable])
    covered = testable & (p < level)
    return Coverage(
        covered=wilson(int(covered.sum()), int(testable.sum())),
        above_half=wilson(int((2 * sums > sizes).sum()), len(names)),
        mean_of_users=mean_interval(means, _separate(len(names)), rng, resamples=resamples, bounds=(0.0, 1.0)),
        worst_decile=_worst_decile(means, rng, resamples),
        not_testable=int((~testable).sum()),
        users={
            str(name): _user_score(means[i], sizes[i], p[i], covered[i], testable[i]) for i, name in enumerate(names)
        },
    )


def couple_coverage(credits: ArrayLike, users: Sequence[Hashable], couples: Sequence[Hashable]) -> Estimate:
    """Share of couples of opposite users with the mean of both above ½: 0 for every model that does not see the user.

    A couple of which only one user has rows is left out.

    Example:
        >>> couple_coverage([1, 0, 1, 1], users=["a", "b", "c", "d"], couples=["ab", "ab", "cd", "cd"]).value
        0.5
    """
    rows = as_floats("credits", credits, len(users))
    (couple_codes, names), (user_codes, known) = encode(couples), encode(users)
    labels, halves = np.unique(couple_codes * len(known) + user_codes, return_inverse=True)
    sums, sizes = np.bincount(halves, weights=rows), np.bincount(halves)
    couple_of_half = labels // max(len(known), 1)
    members = np.bincount(couple_of_half, minlength=len(names))
    if (members > 2).any():
        raise ValueError(f"couple {names[int(members.argmax())]!r} has {int(members.max())} users, not 2")
    # Compared as a sum so that a mean of exactly ½ never counts.
    above = np.bincount(couple_of_half, weights=2 * sums > sizes, minlength=len(names))
    return wilson(int((above == 2).sum()), int((members == 2).sum()))


def mirror_consistency(
    credits: ArrayLike,
    mirrors: "Sequence[Hashable] | Codes",
    clusters: Clusters,
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> Estimate:
    """Share of mirrors (the same two answers, asked for two opposite users) with both halves fully right.

    Args:
        credits: One credit per row.
        mirrors: The mirror of each row; one with a single row is left out.
        clusters: Labels of the rows; both rows of a mirror lie in one unit, so pass the couple as the user.
        rng: Where resampling takes its draws from.
        resamples: Number of bootstrap resamples.
        level: Confidence level.

    Example:
        >>> clusters = Clusters.of(users=["ab", "ab", "cd", "cd"], questions=["x", "x", "y", "y"])
        >>> mirror_consistency([1, 0, 1, 1], [1, 1, 2, 2], clusters, np.random.default_rng(0)).value
        0.5
    """
    rows = as_floats("credits", credits, clusters.n)
    codes, names = encode(mirrors)
    if len(codes) != clusters.n:
        raise ValueError(f"{len(codes)} mirrors for {clusters.n} rows")
    sizes = np.bincount(codes, minlength=len(names))
    if (sizes > 2).any():
        raise ValueError(f"mirror {names[int(sizes.argmax())]!r} has {int(sizes.max())} rows, not 2")
    by_mirror = np.argsort(codes, kind="stable")
    first, second = by_mirror[sizes[codes[by_mirror]] == 2].reshape(-1, 2).T
    if (clusters.users[first] != clusters.users[second]).any():
        raise ValueError("the two rows of a mirror lie in different units; pass the couple as the user")
    both = (rows[first] == 1) & (rows[second] == 1)
    return mean_interval(both, clusters.take(first), rng, resamples=resamples, level=level, bounds=(0.0, 1.0))


def _user_score(mean: float, n: int, p: float, covered: bool, testable: bool) -> UserScore:
    if not testable:
        return UserScore(float(mean), int(n), None, None)
    return UserScore(float(mean), int(n), float(p), bool(covered))


def _sign_tests(credits: Floats, codes: Codes, size: int) -> Floats:
    """Per user, the chance of at least so many rows above ½ if above and below were equally likely."""
    from scipy.special import betainc

    wins = np.bincount(codes, weights=credits > 0.5, minlength=size)
    losses = np.bincount(codes, weights=credits < 0.5, minlength=size)
    p: Floats = np.where(wins > 0, betainc(np.maximum(wins, 1), losses + 1, 0.5), 1.0)
    return p


def _worst_decile(means: Floats, rng: np.random.Generator, resamples: int) -> Estimate:
    users = len(means)
    if users == 0:
        return Estimate.undefined()
    tenth = max(1, users // 10)
    value = float(np.sort(means)[:tenth].mean())
    if users < FEW_CLUSTERS:
        return Estimate(value, None, None, users)
    resampled = []
    for start in range(0, resamples, width := max(1, _DRAWN // users)):
        drawn = means[rng.integers(0, users, (min(width, resamples - start), users))]
        drawn.partition(tenth - 1, axis=1)
        resampled.append(drawn[:, :tenth].mean(axis=1))
    low, high = percentiles(np.concatenate(resampled), 0.95)
    return Estimate(value, min(low, value), max(high, value), users)


def _separate(n: int) -> Clusters:
    codes = np.arange(n, dtype=np.int64)
    return Clusters(codes, codes)
