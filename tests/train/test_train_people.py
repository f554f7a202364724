"""`--people N`: nested subsets of couples by seed, whole couples, the same for every method."""

import inspect

import pytest

from prbench.data import Suite
from prbench.data.portion import Portion
from prbench.errors import ConfigError
from prbench.train.contrast import train_contrast
from prbench.train.cross import train_cross
from prbench.train.planner import train_planner
from prbench.train.train import learned_from, train
from prbench.train.tune import tune
from small_suite import mirrored


@pytest.fixture
def suite():
    pairs = [pair.model_copy(update={"tags": {**pair.tags, "split": "train"}}) for pair in mirrored(couples=8)]
    return Suite.of(pairs)


def test_fewer_people_are_among_more_and_couples_stay_whole(suite):
    parts = [learned_from(suite, "train", Portion(people=people), seed=0) for people in (1, 3, 8)]
    for number, part in zip((1, 3, 8), parts, strict=True):
        assert len({pair.tags["couple"] for pair in part}) == number
        assert len({pair.user for pair in part}) == 2 * number
        assert Suite.of(part).is_mirrored
    ids = [{pair.id for pair in part} for part in parts]
    assert ids[0] < ids[1] < ids[2]
    assert parts[2] == learned_from(suite, "train", Portion(), seed=0) == list(suite)
    draws = {
        frozenset(pair.user for pair in learned_from(suite, "train", Portion(people=3), seed)) for seed in range(8)
    }
    assert len(draws) > 1


def test_more_people_than_there_are(suite):
    with pytest.raises(ConfigError, match="there are 8 couples or users"):
        learned_from(suite, "train", Portion(people=9), seed=0)


@pytest.mark.parametrize("method", [train, train_contrast, train_cross, train_planner, tune])
def test_every_training_takes_a_portion(method):
    assert inspect.signature(method).parameters["portion"].default == Portion()
