"""Fluency: told by what follows what, not by what a text is about."""

import random
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from prbench.data import load_pairs
from prbench.data.passages import load_forms, load_passages
from prbench.models.personal.fluency import Fluency, counted, ended

STRANGE = (
    "A covariance kernel is stationary if it depends on the lag alone, and by Bochner's theorem every continuous one "
    "is the Fourier transform of a finite measure.",
    "Grease the tin, fold the whites into the chocolate, and bake the torte until a skewer comes out clean.",
    "The umpire called a no-ball, so the batsman stayed at the crease and the bowler went back to his mark.",
)


@pytest.fixture(scope="module")
def fluency() -> Fluency:
    return Fluency(counted(passage.text for passage in load_passages() if passage.kind == "post"))


def shuffled(text: str) -> str:
    words = text.split()
    random.Random(0).shuffle(words)
    return " ".join(words)


def test_words_in_their_order_are_fluent_on_any_subject(fluency: Fluency) -> None:
    for text in STRANGE:
        letters, words, _ = fluency.signs(text)
        _, mixed, _ = fluency.signs(shuffled(text))
        spelt, _, _ = fluency.signs(" ".join(word[::-1] for word in text.split()))
        assert words > mixed + 0.5
        assert letters > spelt + 0.5


def test_answers_that_were_not_counted_are_more_fluent_than_any_in_another_order(fluency: Fluency) -> None:
    pairs = [pair for pair in load_pairs("mirror") if pair.tags["split"] == "validation"]
    unseen = np.array([fluency.signs(text) for text in sorted({pair.chosen for pair in pairs})])
    mixed = np.array([fluency.signs(shuffled(text)) for text in sorted({pair.chosen for pair in pairs})])
    assert unseen[:, 1].min() > mixed[:, 1].max()


def test_a_text_without_words_has_no_fluency(fluency: Fluency) -> None:
    for text in ("", "\n", "...", "1 2"):
        assert np.isfinite(fluency.signs(text)).all()
    assert fluency.signs("")[0] < fluency.signs("zxqj kvbw")[0] < fluency.signs("42")[0]


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("Take the coach.", True),
        ("Take the", False),
        ("1. Fold it\n2. Cut along the dotted line until you come to the second mark", True),
        ("Have fun 🎉", True),
        ("| a | b |\n|---|---|\n| 1 | 2 |", True),
        ("A haiku:\n\nold pond\na frog jumps", True),
        ("Bring these,", False),
        ("x = {", False),
        ("First line here\nand then you take the", False),
        (
            "First of all\nyou should take the train from the main station and then walk along the river until the",
            False,
        ),
    ],
)
def test_texts_end_in_many_ways(text: str, whole: bool) -> None:
    assert ended(text) is whole


def test_what_is_kept_gives_the_same_signs_and_is_small(tmp_path: Path) -> None:
    one = counted(answer for _, answer in load_forms()[:40])
    save_file(one, tmp_path / "weights.safetensors")
    kept = load_file(tmp_path / "weights.safetensors")
    assert sum(array.nbytes for array in one.values()) < 200_000
    assert np.array_equal(Fluency(one).signs(STRANGE[0]), Fluency(kept).signs(STRANGE[0]))
    with pytest.raises(ValueError, match="classes of words"):
        Fluency({**one, "fluency_near": one["fluency_near"][:-1]})
