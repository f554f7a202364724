"""The steps of a build one by one: splits, couples and bounds."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prbench.build import Preferences, count_mirrored
from prbench.build.config import MirrorConfig
from prbench.build.couples import bound, match, share_out
from prbench.build.splits import NOWHERE, split_users

SHARES = MirrorConfig().shares


def preferences(rows: list[tuple[int, int, int, bool]]) -> Preferences:
    user, low, high, side = (np.array(column) for column in zip(*rows, strict=True))
    return Preferences(user, low, high, side)


def test_mirrored_judgments_are_counted():
    rows = [(user, 0, 1, user < 3) for user in range(5)] + [(user, 1, 2, True) for user in range(4)]
    assert count_mirrored(preferences(rows), items=3) == (2, 1, 4)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.booleans()), min_size=1, max_size=60))
def test_matching_takes_all_of_the_smaller_side_and_nobody_twice(draws: list[tuple[int, int, bool]]):
    rows = [(user, low, low + 1, side) for user, (_, low, side) in enumerate(draws)]
    split = np.array([number % 3 for number, _, _ in draws])
    found = match(preferences(rows), split, 5, np.random.default_rng(0))
    users = [*found.low_user.tolist(), *found.high_user.tolist()]
    assert len(users) == len(set(users))
    sides = Counter((int(split[user]), low, side) for user, low, _, side in rows)
    expected = sum(min(sides[s, low, True], sides[s, low, False]) for s in range(3) for low in range(4))
    assert len(found.low) == expected
    for user in found.low_user.tolist():
        assert rows[user][3]
    for user in found.high_user.tolist():
        assert not rows[user][3]


def test_bounds_spread_over_item_pairs():
    rows = [(user, 2 * pair, 2 * pair + 1, user % 2 == 0) for pair in range(5) for user in range(20)]
    found = match(preferences(rows), np.zeros(100, dtype=np.int64), 10, np.random.default_rng(0))
    dropped: Counter[str] = Counter()
    kept = bound(found, SHARES, None, 20, np.random.default_rng(0), dropped)
    assert Counter(kept.low.tolist()) == {2 * pair: 2 for pair in range(5)}
    assert dropped["preferences beyond --max-pairs"] == 80


@given(
    room=st.integers(0, 200),
    there=st.lists(st.integers(0, 100), min_size=4, max_size=4),
    weights=st.sampled_from([(0.6, 0.2, 0.2, 0.2), (0.0, 0.0, 1.0, 1.0), (1.0, 0.0, 0.0, 0.0)]),
)
def test_room_is_shared_out_in_full(room: int, there: list[int], weights: tuple[float, ...]):
    given_out = share_out(room, there, weights)
    assert sum(given_out) == min(room, sum(there))
    assert all(part <= count for part, count in zip(given_out, there, strict=True))


def test_users_who_are_alike_are_dealt_out_by_the_shares():
    found = split_users(np.tile([30.0, 10.0, 10.0], (500, 1)), SHARES, np.random.default_rng(0))
    assert np.bincount(found).tolist() == [300, 100, 100]


def test_users_follow_their_items_and_those_without_any_go_nowhere():
    weights = np.array([[4.0, 0, 0]] * 6 + [[0, 4.0, 0]] * 2 + [[0, 0, 4.0]] * 2 + [[0, 0, 0]])
    found = split_users(weights, SHARES, np.random.default_rng(0))
    assert found.tolist() == [0] * 6 + [1] * 2 + [2] * 2 + [NOWHERE]


@pytest.mark.parametrize("seed", range(3))
def test_busy_users_are_found_in_every_split(seed: int):
    quiet = np.repeat(np.eye(3) * 4, 100, axis=0)
    busy = np.tile([60.0, 20.0, 20.0], (50, 1))
    found = split_users(np.concatenate([quiet, busy]), SHARES, np.random.default_rng(seed))
    assert np.bincount(found[300:], minlength=3).tolist() == [30, 10, 10]
