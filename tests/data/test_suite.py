"""Suites: immutable, counted, fingerprinted; couples stay whole."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import prbench.data
from pair_factory import make_pair
from prbench.data import Suite, fingerprint
from prbench.errors import DataError
from prbench.types import Post


def pair(name, *, user="ann", question="Tea?", chosen="Green.", rejected="Black.", **tags):
    return make_pair(
        id=name, user=user, question=question, chosen=chosen, rejected=rejected, tags={"split": "test", **tags}
    )


def couple(number, **tags):
    question = f"Question {number}?"
    one = pair(f"{number}a", user="ann", question=question, mirror=str(number), **tags)
    two = pair(
        f"{number}b", user="bob", question=question, chosen="Black.", rejected="Green.", mirror=str(number), **tags
    )
    return [one, two]


def mirrored(couples):
    return Suite.of(half for number in range(couples) for half in couple(number))


def test_the_door_is_pinned():
    assert prbench.data.__all__ == sorted(prbench.data.__all__)
    assert all(hasattr(prbench.data, name) for name in prbench.data.__all__)


def test_a_suite_is_a_sequence_that_does_not_change():
    suite = mirrored(3)
    assert (len(suite), suite[0].id, suite[-1].id) == (6, "0a", "2b")
    assert [item.id for item in suite[1:3]] == ["0b", "1a"]
    assert suite[0] in suite
    assert [item.id for item in suite] == ["0a", "0b", "1a", "1b", "2a", "2b"]
    with pytest.raises(TypeError):
        suite[0] = suite[1]
    with pytest.raises(AttributeError):
        suite.record = None


def test_the_record_counts():
    pairs = [pair("1"), pair("2", user="bob", split="train"), pair("3", question="Coffee?")]
    record = Suite.of(pairs, name="tea").record
    assert record.counts.model_dump() == {"pairs": 3, "users": 2, "questions": 2, "categories": 0}
    assert record.splits == {"test": 2, "train": 1}


def test_doubled_ids_and_pairs_without_a_split():
    with pytest.raises(DataError, match="1 ids stand more than once, '1' first"):
        Suite.of([pair("1"), pair("2"), pair("1")])
    assert Suite.of([pair("1", split="")]).record.splits == {}


def test_by_user_keeps_every_pair():
    groups = mirrored(3).by_user()
    assert {user: [item.id for item in items] for user, items in groups.items()} == {
        "ann": ["0a", "1a", "2a"],
        "bob": ["0b", "1b", "2b"],
    }


def test_filter_describes_the_part():
    suite = mirrored(3)
    part = suite.filter(lambda item: item.user == "ann", note="only ann")
    assert len(part) == part.record.counts.pairs == 3
    assert part.record.fingerprint == fingerprint(part) != suite.record.fingerprint
    assert part.record.notes == ("only ann",)
    assert not part.is_mirrored


@given(couples=st.integers(1, 30), singles=st.integers(0, 10), n=st.integers(2, 80), seed=st.integers(0, 5))
def test_limit_keeps_whole_couples(couples, singles, n, seed):
    suite = Suite.of([*mirrored(couples), *(pair(f"s{number}") for number in range(singles))])
    part = suite.limit(n, seed)
    assert len(part) == len(suite) if n >= len(suite) else n - 1 <= len(part) <= n
    names = [item.id for item in part]
    assert names == [item.id for item in suite if item.id in set(names)]
    halves = [name[:-1] for name in names if not name.startswith("s")]
    assert all(halves.count(half) == 2 for half in halves)


def test_limit_is_nested_seeded_and_not_the_first_n():
    suite = mirrored(50)
    small, large = ({item.id for item in suite.limit(n, seed=1)} for n in (10, 40))
    assert small < large
    assert small == {item.id for item in suite.limit(10, seed=1)}
    assert small != {item.id for item in suite.limit(10, seed=2)}
    assert small != {item.id for item in suite[:10]}
    assert suite.limit(11, seed=1).is_mirrored
    assert suite.limit(100) is suite
    assert suite.limit(10, seed=1).record.notes == ("limited to 10, seed 1",)


def test_limit_is_spread_over_the_embedded_suite():
    whole = prbench.data.load_pairs("mirror", split="test")
    part = whole.limit(60)
    assert part.is_mirrored
    categories = Counter(item.category for item in part)
    assert len(categories) == 12
    assert max(categories.values()) <= 8
    assert len({item.tags["axis"] for item in part}) >= 15


@pytest.mark.parametrize("n", [1, 0, -3])
def test_a_limit_that_leaves_nothing(n):
    with pytest.raises(DataError, match=f"limit of {n} leaves no pair"):
        mirrored(2).limit(n)


def test_mirrored():
    assert mirrored(2).is_mirrored
    assert not Suite.of([pair("1"), pair("2")]).is_mirrored
    assert not Suite.of([*mirrored(2), pair("x")]).is_mirrored
    assert not Suite.of([]).is_mirrored


@pytest.mark.parametrize(
    "broken",
    [
        [pair("x1", mirror="m"), pair("x2", mirror="m")],
        [couple(1)[0], couple(1)[1].model_copy(update={"question": "Other?"})],
        [*couple(1), couple(1)[0].model_copy(update={"id": "3"})],
        [couple(1, split="test")[0], couple(1, split="train")[1]],
    ],
)
def test_a_broken_mirror_tag_names_the_ids(broken):
    with pytest.raises(DataError, match="mirror tag") as caught:
        Suite.of(broken).is_mirrored  # noqa: B018
    for item in broken:
        assert repr(item.id) in caught.value.message


FIELDS = ["id", "user", "question", "narrative", "category", "chosen", "rejected"]


@pytest.mark.parametrize("field", FIELDS)
def test_every_text_is_in_the_fingerprint(field):
    one = pair("1")
    assert fingerprint([one]) != fingerprint([one.model_copy(update={field: getattr(one, field) + "x"})])


def test_posts_tags_and_their_order_in_the_fingerprint():
    posts = (Post(id="1", text="a"), Post(id="2", text="b"))
    one = pair("1", axis="x", pole="y").model_copy(update={"profile": posts})
    turned = one.model_copy(update={"profile": posts[::-1]})
    retagged = one.model_copy(update={"tags": dict(reversed(one.tags.items()))})
    assert fingerprint([one]) != fingerprint([turned])
    assert fingerprint([one]) == fingerprint([retagged])
    assert fingerprint([one]) != fingerprint([one.model_copy(update={"tags": {"axis": "x"}})])
