"""Batches of local models: every item once, within the budget, also when memory runs out."""

import os
from array import array
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prbench.files import checksum
from prbench.models import revision
from prbench.models.local.batching import Item, plan_batches, score_all
from prbench.models.local.encoding import Encoding
from prbench.models.revision import folder_revision

LENGTHS = st.lists(st.integers(1, 300), max_size=40)


@given(LENGTHS, st.integers(1, 1000))
def test_batches_hold_each_item_once_within_the_budget(lengths, budget):
    batches = plan_batches(lengths, budget)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[index] for index in batch) <= budget
    order = [lengths[index] for batch in batches for index in batch]
    assert order == sorted(order, reverse=True)


def items(lengths: list[int]) -> list[Item]:
    return [(Encoding(array("i", range(length))),) for length in lengths]


@given(LENGTHS, st.integers(1, 400))
def test_out_of_memory_halves_the_batch_and_loses_only_what_cannot_fit_alone(lengths, memory):
    def forward(batch: list[Item]) -> list[float]:
        sizes = [len(item[0].ids) for item in batch]
        if max(sizes) * len(batch) > memory:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")
        return [float(size) for size in sizes]

    scored = {one.position: one.score for one in score_all(items(lengths), forward, batch_tokens=10_000)}
    assert scored == {index: float(size) if size <= memory else None for index, size in enumerate(lengths)}


def test_other_errors_are_bugs_and_keep_their_traceback():
    def forward(batch: list[Item]) -> list[float]:
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes"):
        list(score_all(items([3, 4]), forward, batch_tokens=100))


def test_folder_revision_follows_content_not_place_or_date(tmp_path: Path):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
        (tmp_path / name / "model.safetensors").write_bytes(b"abc")
    one, other = tmp_path / "one", tmp_path / "other"
    os.utime(other / "config.json", (1, 1))
    assert folder_revision(one) == folder_revision(other)
    (one / "optimizer.pt").write_bytes(b"left by training")
    assert folder_revision(one) == folder_revision(other)
    (one / "model.safetensors").write_bytes(b"abcd")
    assert folder_revision(one) != folder_revision(other)
    (one / "model.safetensors").rename(one / "model-2.safetensors")
    (one / "model-2.safetensors").write_bytes(b"abc")
    assert folder_revision(one) != folder_revision(other)


def test_a_large_file_is_read_once_for_all_processes_until_it_is_written_to(tmp_path: Path, monkeypatch):
    reads: list[Path] = []

    def read(file: Path, **how: Any) -> str:
        reads.append(file)
        return checksum(file, **how)

    monkeypatch.setenv("PRBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(revision, "_LARGE", 3)
    monkeypatch.setattr(revision, "_SETTLED_NS", -(10**10))
    monkeypatch.setattr(revision, "checksum", read)
    monkeypatch.setattr(revision, "_known", {})
    (tmp_path / "model").mkdir()
    file = tmp_path / "model" / "model.safetensors"
    file.write_bytes(b"abc")
    first = folder_revision(tmp_path / "model")
    revision._known.clear()  # as in another process
    assert folder_revision(tmp_path / "model") == first
    assert len(reads) == 1
    kept = file.stat()
    while file.stat().st_ctime_ns == kept.st_ctime_ns:  # clocks of file systems are coarse
        file.write_bytes(b"abd")
        os.utime(file, ns=(kept.st_atime_ns, kept.st_mtime_ns))  # the same size and, as if nothing was written, time
    second = folder_revision(tmp_path / "model")
    assert second != first
    revision._known.clear()
    for damaged in (tmp_path / "cache" / "checksums").iterdir():
        damaged.write_text("no checksum")
    assert folder_revision(tmp_path / "model") == second


def test_a_file_that_was_just_written_is_read_again_by_the_next_process(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("PRBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(revision, "_LARGE", 3)
    monkeypatch.setattr(revision, "_SETTLED_NS", 10**12)
    (tmp_path / "model.safetensors").write_bytes(b"abc")
    folder_revision(tmp_path)
    assert not (tmp_path / "cache" / "checksums").exists()
