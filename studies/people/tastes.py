"""Tastes without training a network: what any reader would try first.

Each gives the margin (chosen minus rejected) of every pair under so many shots. `Habit` and `OwnTaste` know the
person's own shots only; `Factors` and `Neighbours` know what other people think of the same items, so items must be
known.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt

from people.worlds import Ratings, Shot, Shots, World
from prbench.models.personal.reader import Reader
from prbench.models.protocols import Rater
from prbench.models.registry import load_model
from prbench.types import AnswerView, Pair

Numbers = npt.NDArray[np.float64]
Signs = npt.NDArray[np.int8]
_ROUNDS = 30
_PROBIT = 1.7
"""A logistic curve with this slope is within .01 of the normal one."""


class Taste(Protocol):
    """Guesses which of two texts a person prefers."""

    def margins(self, pairs: Sequence[Pair], shots: Shots) -> Numbers:
        """How much more each pair's chosen text should please its user than the rejected one; 0 if nothing is known."""
        ...


class Blind:
    """A content-blind baseline of the package, by its address: it never looks at the person."""

    def __init__(self, address: str) -> None:
        self._rater = cast(Rater, load_model(address))

    def margins(self, pairs: Sequence[Pair], shots: Shots) -> Numbers:
        """Whatever it says of the two texts."""
        return rate_pairs(
            self._rater, [(AnswerView(p.question, p.chosen), AnswerView(p.question, p.rejected)) for p in pairs]
        )


def rate_pairs(rater: Rater, views: Sequence[tuple[AnswerView, AnswerView]]) -> Numbers:
    """Score of the first view of each two less that of the second; a view without a score is an error here."""
    scores = np.full(2 * len(views), np.nan)
    for place, outcome in rater.rate([view for two in views for view in two]):
        scores[place] = outcome.score if outcome.score is not None else np.nan
    margins: Numbers = scores[0::2] - scores[1::2]
    if not np.isfinite(margins).all():
        raise RuntimeError(f"{rater.card.address} left {int((~np.isfinite(margins)).sum())} pairs without a score")
    return margins


class Habit:
    """Length alone: who has preferred longer texts so far will again.

    Args:
        world: For the texts.
    """

    def __init__(self, world: World) -> None:
        self._length = {item: len(text.split()) for item, text in world.texts.items()}

    def margins(self, pairs: Sequence[Pair], shots: Shots) -> Numbers:
        """How often the longer text was preferred, less how often the shorter, times the direction of this pair."""
        habits = {user: sum(self._sign(shot.chosen, shot.rejected) for shot in mine) for user, mine in shots.items()}
        signs = [self._sign(*_items(pair)) for pair in pairs]
        return np.array([habits[pair.user] * sign for pair, sign in zip(pairs, signs, strict=True)], dtype=np.float64)

    def _sign(self, chosen: str, rejected: str) -> int:
        return int(np.sign(self._length[chosen] - self._length[rejected]))


class OwnTaste:
    """Ridge regression on the texts' vectors from the person's own shots; nobody else is looked at.

    Args:
        world: For the texts.
        reader: Embeds them.
        ridge: How strongly each person's taste is held to none, against vectors of mean square 1.
    """

    def __init__(self, world: World, reader: Reader, ridge: float) -> None:
        items = list(world.texts)
        vectors = reader.items([("Which?", world.texts[item]) for item in items]).numpy().astype(np.float64)
        self._vectors = dict(zip(items, vectors[:, : vectors.shape[1] // 2], strict=True))
        self._ridge = ridge

    def margins(self, pairs: Sequence[Pair], shots: Shots) -> Numbers:
        """The person's linear taste, applied to how the two texts differ."""
        tastes: dict[str, Numbers] = {}
        for user in {pair.user for pair in pairs}:
            if shots[user]:
                differences = np.stack([self._difference(shot.chosen, shot.rejected) for shot in shots[user]])
                width = differences.shape[1]
                kernel = differences @ differences.T / width + self._ridge * np.eye(len(differences))
                tastes[user] = differences.T @ np.linalg.solve(kernel, np.ones(len(differences))) / width
        known = [self._difference(*_items(pair)) @ tastes[pair.user] if pair.user in tastes else 0.0 for pair in pairs]
        return np.array(known, dtype=np.float64)

    def _difference(self, chosen: str, rejected: str) -> Numbers:
        difference: Numbers = self._vectors[chosen] - self._vectors[rejected]
        return difference


class Table(NamedTuple):
    """Ratings of people of train: rows are people, columns items, NaN where there is none; each row has mean 0."""

    rating_TI: Numbers
    column: dict[str, int]


def tabulate(world: World) -> Table:
    """The ratings of the people of train, each person's brought to the same mean and spread."""
    people = sorted({pair.user for pair in world.pairs["train"]})
    column = {item: number for number, item in enumerate(sorted(world.texts))}
    return Table(standardized(world.ratings, people, column), column)


def standardized(ratings: Ratings, people: Sequence[str], column: dict[str, int]) -> Numbers:
    """A row for each person with mean 0 and spread 1; somebody who rates all alike keeps a small spread."""
    table = np.full((len(people), len(column)), np.nan)
    for row, user in enumerate(people):
        for item, rating in ratings[user].items():
            table[row, column[item]] = rating
    spread = np.nanstd(table, axis=1, keepdims=True)
    centred: Numbers = (table - np.nanmean(table, axis=1, keepdims=True)) / np.maximum(spread, 0.1)
    return centred


@dataclass(frozen=True)
class Factors:
    """Collaborative filtering: rating of i by u = common_i + w_u · v_i + noise, w_u of mean 0 and covariance 1.

    v is learned from people of train by alternating least squares. For a new person w is what the shots say: ridge
    logistic regression, in which a shot that everybody would agree with says little. The common part decides no pair:
    on mirrored pairs it is right half of the time.
    """

    common_I: Numbers
    factors_IK: Numbers
    noise: float
    column: dict[str, int]
    ridge: float

    @classmethod
    def learn(cls, table: Table, rank: int, ridge: float) -> "Factors":
        """Alternating least squares on what is there, then people scaled to covariance 1."""
        common = np.nanmean(table.rating_TI, axis=0)
        rest = table.rating_TI - common
        there = np.isfinite(rest)
        filled = np.where(there, rest, 0.0)
        _, spread, right = np.linalg.svd(filled, full_matrices=False)
        factors = (right[:rank] * spread[:rank, None]).T / np.sqrt(len(rest))
        for _ in range(_ROUNDS):
            people = _solve_rows(filled, there, factors)
            people = people - people.mean(0)
            root = np.linalg.cholesky(people.T @ people / len(people) + 1e-9 * np.eye(rank))
            people = np.linalg.solve(root, people.T).T
            factors = _solve_rows(filled.T, there.T, people)
        error = (filled - people @ factors.T)[there]
        return cls(common, factors, float(error.std()), table.column, ridge)

    def margins(self, pairs: Sequence[Pair], shots: Shots) -> Numbers:
        """The person's own part of the difference."""
        users = sorted({pair.user for pair in pairs})
        row = {user: number for number, user in enumerate(users)}
        return self._margins(pairs, self._from_shots([shots[user] for user in users]), row)

    def margins_by_ratings(self, pairs: Sequence[Pair], ratings: Ratings) -> Numbers:
        """The same, with w from the ratings behind the shots: the most that can be known of a person."""
        users = sorted({pair.user for pair in pairs})
        rest = standardized(ratings, users, self.column) - self.common_I
        there = np.isfinite(rest)
        held = self.ridge * self.noise**2
        weights = _solve_rows(np.where(there, rest, 0.0), there, self.factors_IK, held)
        return self._margins(pairs, weights, {user: number for number, user in enumerate(users)})

    def _margins(self, pairs: Sequence[Pair], weights_UK: Numbers, row: dict[str, int]) -> Numbers:
        chosen, rejected = self._columns([_items(pair) for pair in pairs])
        people = weights_UK[[row[pair.user] for pair in pairs]]
        margins: Numbers = (people * (self.factors_IK[chosen] - self.factors_IK[rejected])).sum(1)
        return margins

    def _from_shots(self, shots: Sequence[Sequence[Shot]]) -> Numbers:
        import torch

        from prbench.models.personal._fewshot import fit_weights

        most = max(map(len, shots), default=0)
        rank = self.factors_IK.shape[1]
        features, known = np.zeros((len(shots), most, rank)), np.zeros((len(shots), most))
        mask = np.zeros((len(shots), most))
        slope = _PROBIT / (self.noise * np.sqrt(2))
        for row, mine in enumerate(shots):
            chosen, rejected = self._columns([(shot.chosen, shot.rejected) for shot in mine])
            features[row, : len(mine)] = slope * (self.factors_IK[chosen] - self.factors_IK[rejected])
            known[row, : len(mine)] = slope * (self.common_I[chosen] - self.common_I[rejected])
            mask[row, : len(mine)] = 1
        tensors = [torch.from_numpy(array) for array in (features, mask, known)]
        weights: Numbers = fit_weights(tensors[0], tensors[1], tensors[2], self.ridge).numpy()
        return weights

    def _columns(self, items: Sequence[tuple[str, str]]) -> tuple[list[int], list[int]]:
        return [self.column[chosen] for chosen, _ in items], [self.column[rejected] for _, rejected in items]


@dataclass(frozen=True)
class RatedFactors:
    """`Factors` that know a person by all ratings behind the shots: how far taste can be foretold at all."""

    factors: Factors
    ratings: Ratings

    def margins(self, pairs: Sequence[Pair], shots: Shots) -> Numbers:
        """The shots are not read: the ratings say more."""
        return self.factors.margins_by_ratings(pairs, self.ratings)


class Neighbours:
    """The people of train who agree most with the shots vote on the pair, against what all of them would say.

    Args:
        table: Ratings of the people of train.
        nearest: How many of them vote.
        caution: Shots on which a neighbour is taken to be undecided, so that one common shot does not make a twin.
    """

    def __init__(self, table: Table, nearest: int, caution: float = 2.0) -> None:
        self._rating_IT = np.ascontiguousarray(table.rating_TI.T)
        self._column = table.column
        self._nearest = min(nearest, len(table.rating_TI))
        self._caution = caution
        self._sides: dict[tuple[str, str], tuple[Signs, Signs]] = {}

    def margins(self, pairs: Sequence[Pair], shots: Shots) -> Numbers:
        """The vote of the neighbours, each weighed by agreement, less the vote of everybody."""
        weights = {user: self._weights(shots[user]) for user in {pair.user for pair in pairs}}
        return np.array([self._vote(pair, weights[pair.user]) for pair in pairs])

    def _weights(self, shots: Sequence[Shot]) -> Numbers:
        """How far each person of train agrees with the shots; 0 for all but the nearest."""
        agreed, known = np.zeros(self._rating_IT.shape[1]), np.full(self._rating_IT.shape[1], self._caution)
        for shot in shots:
            side, there = self._side(shot.chosen, shot.rejected)
            agreed += side
            known += there
        agreement = agreed / known
        bar = np.partition(agreement, -self._nearest)[-self._nearest]
        return np.where(agreement >= max(bar, 1e-9), agreement, 0.0)

    def _vote(self, pair: Pair, weights_T: Numbers) -> float:
        side, there = self._side(*_items(pair))
        total = float(weights_T @ there)
        return float(weights_T @ side) / total - float(side.mean() / there.mean()) if total > 0 else 0.0

    def _side(self, chosen: str, rejected: str) -> tuple[Signs, Signs]:
        """1 where a person of train rated the first higher, −1 where lower, else 0; and 1 where both were rated."""
        if (chosen, rejected) not in self._sides:
            gap = self._rating_IT[self._column[chosen]] - self._rating_IT[self._column[rejected]]
            there = np.isfinite(gap)
            self._sides[chosen, rejected] = np.sign(np.where(there, gap, 0.0)).astype(np.int8), there.astype(np.int8)
        return self._sides[chosen, rejected]


def _solve_rows(values: Numbers, there: npt.NDArray[np.bool_], factors: Numbers, ridge: float = 1.0) -> Numbers:
    """For each row the w that minimises Σ (value − w · factor)² over what is there + ridge ‖w‖²."""
    rank = factors.shape[1]
    outer = (factors[:, :, None] * factors[:, None, :]).reshape(len(factors), rank * rank)
    grams = (there.astype(np.float64) @ outer).reshape(-1, rank, rank) + ridge * np.eye(rank)
    return np.asarray(np.linalg.solve(grams, (values @ factors)[..., None])[..., 0], dtype=np.float64)


def _items(pair: Pair) -> tuple[str, str]:
    return pair.tags["chosen_item"], pair.tags["rejected_item"]
