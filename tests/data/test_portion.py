"""A portion of the training material: nested and seeded shares, flipped sides, and a reserve that judges alone read."""

from itertools import pairwise
from pathlib import Path

import pytest

from pair_factory import make_pair
from prbench import load_pairs
from prbench.data.passages import load_passages, write_passages
from prbench.data.portion import Portion, couple_of, reserved_pairs, reserved_passages
from prbench.errors import ConfigError
from prbench.files import parquet_rows
from prbench.types import Pair


@pytest.fixture(scope="module")
def train() -> list[Pair]:
    return [pair for pair in load_pairs("mirror") if pair.tags.get("split") == "train"]


def texts(pairs: list[Pair]) -> set[str]:
    found = {text for pair in pairs for text in (pair.question, pair.chosen, pair.rejected, pair.user)}
    return found | {post.text for pair in pairs for post in pair.profile}


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_what_is_reserved_and_what_is_learned_from_share_no_text_and_no_person(train, share):
    kept, left = Portion(reserve=share).pairs(train, seed=3), reserved_pairs(train, share)
    assert kept
    assert left
    assert not texts(kept) & texts(left)
    generic = [pair for pair in load_pairs("generic") if pair.tags.get("split") == "train"]
    sound = Portion(reserve=share).unowned(generic)
    assert 0 < len(sound) < len(generic)
    assert not texts(sound) & texts(left)


def test_passages_are_reserved_by_their_situation(train):
    kept, left = Portion(reserve=0.3).written(load_passages(), seed=1), reserved_passages(load_passages(), 0.3)
    assert len(kept) + len(left) == len(load_passages())
    assert not {one.situation for one in kept} & {one.situation for one in left}
    assert not {one.text for one in kept} & {one.text for one in left}  # one that shows two axes, too


def test_a_smaller_reserve_lies_within_a_larger_one_whatever_the_seed(train):
    small, large = ({pair.id for pair in reserved_pairs(train, share)} for share in (0.2, 0.5))
    assert small < large
    assert len({len(Portion(reserve=0.2).pairs(train, seed)) for seed in range(3)}) == 1


def test_shares_of_passages_are_nested_and_whole_situations(train):
    shares = (0.1, 0.25, 0.5, 1)
    parts = [Portion(passages=share).written(load_passages(), seed=0) for share in shares]
    assert [len(part) / len(load_passages()) for part in parts] == pytest.approx(shares, abs=0.03)
    for small, large in pairwise({passage.text for passage in part} for part in parts):
        assert small < large
    assert Portion(passages=0.5).written(load_passages(), 0) != Portion(passages=0.5).written(load_passages(), 1)


def test_flipped_labels_exchange_the_sides_of_whole_couples_on_an_axis(train):
    flipped = {pair.id: pair for pair in Portion(flipped=0.3).pairs(train, seed=0)}
    fewer = {pair.id: pair for pair in Portion(flipped=0.15).pairs(train, seed=0)}
    turned = [pair for pair in train if pair.id in flipped and flipped[pair.id].chosen == pair.rejected]
    same = {pair.id for pair in train if flipped.get(pair.id) == pair}
    cells = {(couple_of(pair), axis) for pair in train for axis in pair.stances}
    wrong = {(couple_of(pair), axis) for pair in turned for axis in pair.stances}
    assert abs(len(wrong) / len(cells) - 0.3) < 0.02
    for pair in turned:
        told = flipped[pair.id]
        assert told.stances.keys() == pair.stances.keys()
        assert all(told.stances[axis] != pole for axis, pole in pair.stances.items())
        assert told.rejected == pair.chosen
    assert len(turned) + len(same) == len(flipped) <= len(train)
    assert {one for one, pair in fewer.items() if pair.chosen != flipped.get(one, pair).chosen} <= {
        pair.id for pair in turned
    }
    for passage in Portion(flipped=0.5).written(load_passages(), 0)[:3]:
        assert passage.pole in {one.pole for one in load_passages() if one.axis == passage.axis}


def test_labels_without_an_axis_cannot_be_flipped():
    pair = make_pair()
    with pytest.raises(ConfigError, match="no pair says which axis decides it"):
        Portion(flipped=0.2).pairs([pair], seed=0)


def test_wishes_know_whether_they_are_denials_on_disk_too(tmp_path: Path) -> None:
    shipped = [passage for passage in load_passages() if passage.framed]
    assert sum(passage.denied for passage in shipped) == len(shipped) / 2
    assert not any(passage.denied for passage in load_passages() if not passage.framed)
    write_passages(shipped[:9], tmp_path / "some.parquet")
    assert [row["denied"] for row in parquet_rows(tmp_path / "some.parquet")] == [one.denied for one in shipped[:9]]
