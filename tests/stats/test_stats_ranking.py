"""Letters and rank intervals: the property that makes them readable, and a case by hand."""

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from prbench.stats import Clusters, significance_groups
from prbench.stats.ranking import letter_display

relations = st.integers(1, 9).flatmap(
    lambda size: st.tuples(st.just(size), st.sets(st.sampled_from(list(combinations(range(size + 1), 2)))))
)


@settings(deadline=None)
@given(relations)
def test_models_share_a_letter_exactly_where_they_are_not_apart(case):
    size, apart = case[0] + 1, case[1]
    letters = [set(own) for own in letter_display(size, sorted(apart))]
    assert all(letters)
    for i, j in combinations(range(size), 2):
        assert (letters[i] & letters[j] == set()) == ((i, j) in apart)


@settings(deadline=None)
@given(relations)
def test_every_letter_is_a_largest_set(case):
    size, apart = case[0] + 1, case[1]
    letters = letter_display(size, sorted(apart))
    groups = [{item for item in range(size) if letter in letters[item]} for letter in sorted(set().union(*letters))]
    for group in groups:
        for outsider in set(range(size)) - group:
            assert any((min(outsider, member), max(outsider, member)) in apart for member in group)
    assert all(not one < other for one in groups for other in groups)


def test_letters_by_hand():
    # 0 and 1 beat 3; the rest cannot be told apart.
    assert letter_display(4, [(0, 3), (1, 3)]) == (("a",), ("a",), ("a", "b"), ("b",))
    assert letter_display(1, []) == (("a",),)
    assert letter_display(30, list(combinations(range(30), 2)))[27] == ("ab",)


def test_a_chain_of_models():
    rng = np.random.default_rng(0)
    luck = rng.random(600)
    credits = {
        name: (luck + rng.normal(0, 0.3, 600) < share).astype(float) for name, share in [("low", 0.4), ("top", 0.8)]
    }
    credits["twin"] = credits["top"].copy()
    credits["twin"][:2] = 1 - credits["twin"][:2]
    standings = significance_groups(credits, Clusters.of([row // 10 for row in range(600)], list(range(600))))
    assert [s.mean for s in standings] == sorted((s.mean for s in standings), reverse=True)
    by_name = {s.name: s for s in standings}
    assert by_name["top"].letters == by_name["twin"].letters == ("a",)
    assert by_name["low"].letters == ("b",)
    assert (by_name["top"].best_rank, by_name["top"].worst_rank) == (1, 2)
    assert (by_name["low"].best_rank, by_name["low"].worst_rank) == (3, 3)


def test_equal_models_share_everything():
    credits = {name: [1, 0] * 20 for name in ("b", "a")}
    first, second = significance_groups(credits, Clusters.of(range(40), range(40)))
    assert (first.name, second.name) == ("a", "b")
    assert first.letters == second.letters == ("a",)
    assert (second.best_rank, second.worst_rank) == (1, 2)


def test_one_cluster_tells_nobody_apart():
    first, second = significance_groups({"all": [1] * 50, "none": [0] * 50}, Clusters.of(["u"] * 50, range(50)))
    assert first.letters == second.letters
    assert significance_groups({}, Clusters.of("ab", "xy")) == ()
    assert significance_groups({"none": []}, Clusters.of([], [])) == ()


def test_a_model_with_few_rows_leaves_the_others_apart():
    clusters = Clusters.of(range(60), range(60))
    credits = {"good": [1] * 55 + [0] * 5, "poor": [0] * 55 + [1] * 5}
    apart = {s.name: s.letters for s in significance_groups(credits, clusters)}
    assert apart == {"good": ("a",), "poor": ("b",)}
    small = significance_groups({**credits, "small": [1, 0, *[None] * 58]}, clusters)
    letters = {s.name: set(s.letters) for s in small}
    assert not letters["good"] & letters["poor"]
    assert letters["small"] & letters["good"]
    assert letters["small"] & letters["poor"]
    assert {s.name: s.mean for s in small}["small"] == 0.5


def test_ranks_follow_the_common_rows_where_they_contradict_the_means():
    # On the 40 rows that both have, "hard" is better throughout; its further rows are hard for everybody.
    clusters = Clusters.of(range(140), range(140))
    credits = {"hard": [1.0] * 38 + [0.0] * 102, "easy": [0.0] * 20 + [1.0] * 20 + [None] * 100}
    places = {s.name: s for s in significance_groups(credits, clusters)}
    assert places["easy"].mean > places["hard"].mean
    assert (places["hard"].best_rank, places["hard"].worst_rank) == (1, 1)
    assert (places["easy"].best_rank, places["easy"].worst_rank) == (2, 2)


def test_a_model_without_a_row_is_left_out_and_without_a_common_row_nothing_is_tested():
    clusters = Clusters.of(range(40), range(40))
    halves = {"one": [1] * 20 + [None] * 20, "two": [None] * 20 + [0] * 20, "none": [None] * 40}
    first, second = significance_groups(halves, clusters)
    assert (first.name, second.name) == ("one", "two")
    assert first.letters == second.letters


def test_many_models_that_are_equal_stay_in_one_group():
    rng = np.random.default_rng(3)
    clusters = Clusters.of(range(200), range(200))
    split = 0
    for _ in range(40):
        standings = significance_groups({f"m{i}": rng.integers(0, 2, 200) for i in range(8)}, clusters)
        split += any(s.letters != ("a",) for s in standings)
    assert split <= 6  # the family-wise level is 5 %
