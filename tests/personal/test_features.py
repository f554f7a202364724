"""The store of vectors: each text once, through crashes, among processes, and never two encoders in one file."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from planted_worlds import HashEncoder
from prbench.errors import ModelError
from prbench.models.personal import features
from prbench.models.personal.features import FeatureStore


def test_a_text_is_embedded_once_for_all_time(tmp_path: Path) -> None:
    encoder = HashEncoder()
    first = FeatureStore(encoder, tmp_path).encode(["a", "b", "a"])
    again = FeatureStore(encoder, tmp_path)
    assert np.array_equal(again.encode(["b", "c", "a"])[[2, 0]], first[:2])
    assert encoder.asked == ["a", "b", "c"]


def test_rows_are_mapped_not_read(tmp_path: Path) -> None:
    store = FeatureStore(HashEncoder(), tmp_path)
    store.encode(["a"])
    assert isinstance(store._table, np.memmap)
    assert (tmp_path / "vectors.f32").stat().st_size == 6 * 4


def test_nothing_asked_is_nothing_found(tmp_path: Path) -> None:
    assert len(FeatureStore(HashEncoder(), tmp_path).encode([])) == 0


def test_the_default_folder_is_named_after_the_encoder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PRBENCH_CACHE", str(tmp_path))
    folders = {FeatureStore(HashEncoder(name=name)).folder for name in ("one@1", "one@2")}
    assert len(folders) == 2
    assert {folder.parent for folder in folders} == {tmp_path / "features"}


@pytest.mark.parametrize("rest", [0, 24, 24 + 5])
def test_rows_that_a_crash_left_without_a_key_are_written_again(tmp_path: Path, rest: int) -> None:
    FeatureStore(HashEncoder(), tmp_path).encode(["a", "b"])
    with (tmp_path / "vectors.f32").open("ab") as file:
        file.write(b"x" * rest)
    found = FeatureStore(HashEncoder(), tmp_path).encode(["c", "a"])
    assert np.array_equal(found, HashEncoder().encode(["c", "a"]))
    assert np.array_equal(FeatureStore(HashEncoder(), tmp_path).encode(["a", "b", "c"]), HashEncoder().encode("abc"))


def test_a_torn_key_is_dropped(tmp_path: Path) -> None:
    FeatureStore(HashEncoder(), tmp_path).encode(["a", "b"])
    keys = (tmp_path / "keys.bin").read_bytes()
    (tmp_path / "keys.bin").write_bytes(keys[:-3])
    encoder = HashEncoder()
    assert np.array_equal(FeatureStore(encoder, tmp_path).encode(["a", "b"]), HashEncoder().encode("ab"))
    assert encoder.asked == ["b"]
    assert (tmp_path / "keys.bin").read_bytes() == keys


def test_a_crash_before_the_first_row_is_no_harm(tmp_path: Path) -> None:
    (tmp_path / "width").write_text("6")
    assert FeatureStore(HashEncoder(), tmp_path).encode(["a"]).shape == (1, 6)


def test_what_an_interruption_costs_is_one_chunk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(features, "_CHUNK", 2)

    class Dies(HashEncoder):
        def encode(self, texts):
            if "e" in texts:
                raise KeyboardInterrupt
            return super().encode(texts)

    with pytest.raises(KeyboardInterrupt):
        FeatureStore(Dies(), tmp_path).encode(list("abcdef"))
    encoder = HashEncoder()
    FeatureStore(encoder, tmp_path).encode(list("abcdef"))
    assert encoder.asked == ["e", "f"]


def test_another_width_under_the_same_name_is_refused(tmp_path: Path) -> None:
    FeatureStore(HashEncoder(), tmp_path).encode(["a"])
    with pytest.raises(ModelError, match=r"width 8.*holds 6"):
        FeatureStore(HashEncoder(width=8), tmp_path).encode(["b"])
    assert np.array_equal(FeatureStore(HashEncoder(), tmp_path).encode(["a"]), HashEncoder().encode(["a"]))


def test_a_vector_that_is_no_number_is_not_kept(tmp_path: Path) -> None:
    class Broken(HashEncoder):
        def encode(self, texts):
            return super().encode(texts) * np.nan

    with pytest.raises(ModelError, match="no numbers"):
        FeatureStore(Broken(), tmp_path).encode(["a"])
    assert np.array_equal(FeatureStore(HashEncoder(), tmp_path).encode(["a"]), HashEncoder().encode(["a"]))


def test_a_folder_that_was_removed_is_filled_again(tmp_path: Path) -> None:
    store = FeatureStore(HashEncoder(), tmp_path / "store")
    store.encode(["a", "b"])
    for file in (tmp_path / "store").iterdir():
        file.unlink()
    assert np.array_equal(store.encode(["c", "a"]), HashEncoder().encode("ca"))
    assert np.array_equal(FeatureStore(HashEncoder(), tmp_path / "store").encode(["c"]), HashEncoder().encode("c"))


PROCESS = """
import sys
from pathlib import Path
import numpy as np
from prbench.models.personal import features
features._CHUNK = 3
class Codes:
    name = "codes"
    def encode(self, texts):
        return np.array([[int(text), int(text) ** 2] for text in texts], dtype=np.float32)
store = features.FeatureStore(Codes(), Path(sys.argv[1]))
mine = [str(n) for n in range(int(sys.argv[2]), 60, int(sys.argv[3]))]
for start in range(0, len(mine), 7):
    rows = store.encode(mine[start : start + 7])
    assert rows[:, 0].tolist() == [float(text) for text in mine[start : start + 7]]
assert store.encode([str(n) for n in range(60)])[:, 1].tolist() == [n * n for n in range(60)]
"""


def test_two_processes_share_a_folder(tmp_path: Path) -> None:
    commands = [[sys.executable, "-c", PROCESS, str(tmp_path), *steps] for steps in (("0", "2"), ("0", "3"))]
    running = [subprocess.Popen(command) for command in commands]
    assert [process.wait(timeout=120) for process in running] == [0, 0]
    assert (tmp_path / "keys.bin").stat().st_size == 60 * 16
    assert (tmp_path / "vectors.f32").stat().st_size == 60 * 2 * 4
