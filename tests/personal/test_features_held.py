"""Vectors of a served model: in memory only, bounded, and forgotten with the user."""

import numpy as np
import pytest

from prbench.models.personal.features import FeatureStore


class Length:
    name = "length"

    def __init__(self):
        self.asked = []

    def encode(self, texts):
        self.asked += texts
        return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)


@pytest.fixture
def store(tmp_path):
    store = FeatureStore(Length(), tmp_path / "vectors")
    store.encode(["on disk"])
    return store


def bytes_on_disk(store):
    return {path.name: path.read_bytes() for path in store.folder.iterdir() if path.name != "lock"}


def test_nothing_is_written_and_what_was_there_is_read(store):
    before = bytes_on_disk(store)
    store.hold_back()
    assert store.encode(["on disk", "new", "on disk", "new"])[:, 0].tolist() == [7, 3, 7, 3]
    assert store.encode(["new"])[:, 0].tolist() == [3]
    assert store.encoder.asked == ["on disk", "new"]
    assert bytes_on_disk(store) == before


def test_the_oldest_are_dropped_and_computed_again(store):
    store.hold_back(most=2)
    assert store.encode(["a", "bb", "ccc", "dddd"])[:, 0].tolist() == [1, 2, 3, 4]
    store.encoder.asked.clear()
    store.encode(["dddd", "a"])
    assert store.encoder.asked == ["a"]


def test_forgetting_leaves_nothing(store):
    store.hold_back()
    store.encode(["secret"])
    store.forget()
    store.encoder.asked.clear()
    store.encode(["secret"])
    assert store.encoder.asked == ["secret"]


def test_without_a_folder_it_holds_back_all_the_same(tmp_path):
    store = FeatureStore(Length(), tmp_path / "none")
    store.hold_back()
    assert store.encode(["x"]).tolist() == [[1.0, 1.0]]
    assert not (tmp_path / "none").exists()
