"""Which lines match which aspects, and how the threshold is chosen."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pair_factory import make_pair
from prbench.data import load_pairs
from prbench.errors import DataError
from prbench.models.local.embed import load_encoder
from prbench.plan import THRESHOLD, Matcher, calibrate
from prbench.plan.matching import assigned, paraphrases
from prbench.types import Aspect
from real_weights import real_model
from word_encoder import WordEncoder

SHAPES = st.tuples(st.integers(1, 4), st.integers(1, 4))


@settings(deadline=None)
@given(arrays(np.float64, SHAPES, elements=st.floats(-1, 1)), st.floats(-1, 1))
def test_no_assignment_has_more_matches(similarities, threshold):
    table = similarities if similarities.shape[0] <= similarities.shape[1] else similarities.T
    rows, columns = table.shape
    most = max(
        sum(table[row, column] >= threshold for row, column in enumerate(order))
        for order in permutations(range(columns), rows)
    )
    assert assigned(similarities, threshold) == most


def test_saying_one_aspect_twice_counts_once_and_each_text_is_embedded_once():
    encoder = WordEncoder()
    matcher = Matcher(encoder, threshold=0.6)
    lines = ["keep the cost down", "keep the cost down please", "short"]
    assert matcher.count(lines, ["keep the cost down", "numbers first"]) == 1
    assert matcher.count(lines, ["keep the cost low down", "short"]) == 2
    assert matcher.count([], ["short"]) == 0
    assert len(encoder.seen) == len(set(encoder.seen)) == 5


def test_the_threshold_lies_between_paraphrases_and_other_aspects():
    def pair(user, aspect):
        return make_pair(
            id=user, user=user, question="Tea?", chosen="a", rejected="b", rubric_aspects=(Aspect(aspect=aspect),)
        )

    train = [pair("ann", "red tea from the shop"), pair("bob", "one green leaf from the wood")]
    known = {"red tea from the shop": "red tea of the shop"}
    found = calibrate(train, WordEncoder(), known)
    assert found.found == 1.0
    assert found.mistaken == 0.0
    assert found.separation == 1.0
    assert found.threshold == pytest.approx(0.8, abs=0.011)  # 4 of 5 words; the other shares one: the highest is taken
    with pytest.raises(DataError, match="none of the paraphrased"):
        calibrate(train, WordEncoder(), {"unknown": "words"})


def test_paraphrases_are_of_the_training_split_alone():
    suite = load_pairs("mirror")
    splits = {
        name: {a.aspect for p in suite if p.tags["split"] == name for a in p.rubric_aspects}
        for name in ("train", "validation", "test")
    }
    assert set(paraphrases()) <= splits["train"]
    assert not set(paraphrases()) & (splits["validation"] | splits["test"])


@pytest.mark.slow
def test_the_stated_threshold_is_what_the_training_split_gives():
    train = [pair for pair in load_pairs("mirror") if pair.tags["split"] == "train"]
    found = calibrate(train, load_encoder(str(real_model("minilm"))))
    assert found.threshold == THRESHOLD
    assert found.found > 0.75
    assert found.mistaken < 0.15
    assert found.separation > 0.9
