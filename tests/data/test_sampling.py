"""A stratified order: every beginning looks like the whole, and a seed is all that changes it."""

from hypothesis import given
from hypothesis import strategies as st

from prbench.data.sampling import stratified_order

SIZES = st.lists(st.tuples(st.integers(1, 20), st.integers(0, 12)), min_size=2, max_size=6)


def strata_of(sizes):
    """Categories with so many keys of a common and of a rare axis."""
    return {
        f"{number}-{axis}-{place}": (f"category {number}", axis)
        for number, counts in enumerate(sizes)
        for axis, count in zip(("common", "rare"), counts, strict=True)
        for place in range(count)
    }


@given(sizes=SIZES, share=st.floats(0.05, 0.95), seed=st.integers(0, 9))
def test_every_beginning_holds_strata_in_proportion(sizes, share, seed):
    strata = strata_of(sizes)
    order = stratified_order(strata, seed)
    assert sorted(order) == sorted(strata)
    part = order[: round(share * len(order))]
    for number, (common, rare) in enumerate(sizes):
        taken = [key for key in part if strata[key][0] == f"category {number}"]
        assert abs(len(taken) - len(part) / len(order) * (common + rare)) <= 2
        assert abs(sum(strata[key][1] == "rare" for key in taken) - len(taken) * rare / (common + rare)) <= 2


@given(sizes=SIZES)
def test_the_order_of_keys_changes_nothing(sizes):
    strata = strata_of(sizes)
    assert stratified_order(strata, 1) == stratified_order(dict(reversed(strata.items())), 1)


def test_another_seed_is_another_order():
    strata = strata_of([(20, 10)] * 3)
    assert stratified_order(strata, 1)[:20] != stratified_order(strata, 2)[:20]
