"""Files of the project: whole or not at all, damaged content named, disks that refuse said in words."""

import errno
import gzip
import json
import multiprocessing
import os
import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import BaseModel, field_validator

from prbench import files
from prbench.errors import ContextError, DataError, FileError, PrbenchError, RunError
from prbench.files.lines import MAX_BLANK_BYTES
from prbench.types import Frozen


class Line(Frozen):
    """What the tests below keep in files."""

    name: str
    value: float = 0.0


def names(folder: Path) -> list[str]:
    """What lies in a folder."""
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def full(monkeypatch):
    """A disk that has no room for what is written to a file of the project, but for its first 5 bytes."""

    def make(only: str = "") -> None:
        write = Path.write_bytes
        refused = OSError(errno.ENOSPC, "No space left on device")

        def write_bytes(path: Path, data: bytes) -> int:
            if only in path.name:
                write(path, data[:5])
                raise refused
            return write(path, data)

        monkeypatch.setattr(Path, "write_bytes", write_bytes)

    return make


@pytest.mark.parametrize("content", ["text ü\n", b"\x00\xff"])
def test_a_file_is_written_whole_with_its_folders_and_for_everybody_to_read(tmp_path, content):
    path = tmp_path / "deep" / "a.txt"
    files.write_whole(path, content)
    assert path.read_bytes() == (content.encode() if isinstance(content, str) else content)
    assert path.stat().st_mode & 0o777 == 0o644
    assert [one.name for one in path.parent.iterdir()] == ["a.txt"]


def test_line_ends_are_written_as_they_are(tmp_path):
    files.write_whole(tmp_path / "a", "one\r\ntwo\n")
    assert (tmp_path / "a").read_bytes() == b"one\r\ntwo\n"


def test_a_full_disk_leaves_the_earlier_file_and_nothing_else(tmp_path, full):
    path = tmp_path / "result.json"
    files.write_json(path, {"a": 1})
    full()
    with pytest.raises(FileError, match=r"cannot write '.*result\.json': the disk is full") as error:
        files.write_json(path, {"a": 2})
    assert "free some space" in error.value.hint
    assert json.loads(path.read_text()) == {"a": 1}
    assert names(tmp_path) == ["result.json"]


def half_written(path: Path, error: Exception) -> None:
    """Write a part of a file, and fail."""
    with files.replacing(path) as partial:
        partial.write_bytes(b"half")
        raise error


@pytest.mark.parametrize(
    "said", ["I/O error: No space left on device (os error 28)", "PytorchStreamWriter failed writing"]
)
def test_a_library_that_meets_a_full_disk_in_words_of_its_own_is_understood(tmp_path, said):
    with pytest.raises(FileError, match="the disk is full"):
        half_written(tmp_path / "a", RuntimeError(said))
    assert names(tmp_path) == []


def test_a_mistake_while_writing_stays_the_mistake_it_is(tmp_path):
    with pytest.raises(ZeroDivisionError):
        half_written(tmp_path / "a", ZeroDivisionError())
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (errno.EACCES, "permission denied"),
        (errno.EROFS, "the disk is read-only"),
        (errno.ENOTDIR, "a part of its path is a file"),
        (errno.ENAMETOOLONG, "its name is too long"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_what_the_operating_system_refuses_is_said(tmp_path, code, said):
    refused = pytest.raises(RunError, match=f"cannot write '.*': {said}")
    with refused as error, files.disk_errors(tmp_path / "a", "write", raises=RunError):
        raise OSError(code, os.strerror(code))
    assert error.value.hint


def test_a_file_in_the_place_of_a_folder_and_the_other_way_round(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    for write in (
        lambda: files.write_whole(tmp_path / "file" / "a", "x"),
        lambda: files.write_whole(tmp_path / "folder", "x"),
        lambda: files.append_line(tmp_path / "folder", "x"),
        lambda: files.make_folder(tmp_path / "file"),
        lambda: files.read_json(tmp_path / "folder"),
        lambda: list(files.whole_lines(tmp_path / "folder")),
        lambda: list(files.read_lines(tmp_path / "folder")),
        lambda: list(files.parquet_rows(tmp_path / "folder")),
        lambda: files.load_tensors(tmp_path / "folder"),
        lambda: files.checksum(tmp_path / "folder"),
    ):
        with pytest.raises(FileError, match=r"file|folder") as error:
            write()
        assert "Errno" not in error.value.message.partition("'")[0]
    assert names(tmp_path) == ["file", "folder"]


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_read_only_folder_is_said(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(FileError, match="permission denied"):
        files.write_whole(tmp_path / "a", "x")


def test_appended_lines_are_whole_and_a_torn_one_is_cut_off(tmp_path):
    path = tmp_path / "new" / "lines.jsonl"
    with files.Appender(path) as lines:
        lines.append(Line(name="a"))
    with path.open("ab") as file:
        file.write(b'{"name": "to')
    with files.Appender(path) as lines:
        lines.append(Line(name="b", value=0.5))
    assert path.read_bytes() == b'{"name":"a"}\n{"name":"b","value":0.5}\n'
    assert [line.name for line in files.read_models(path, Line)] == ["a", "b"]


def test_a_line_that_does_not_fit_on_the_disk_is_taken_back(tmp_path, monkeypatch):
    path = tmp_path / "lines.jsonl"
    with files.Appender(path) as lines:
        lines.append(Line(name="a"))
        raw = lines._handle

        class Full:
            def __getattr__(self, name):
                return getattr(raw, name)

            def write(self, data):
                raw.write(bytes(data[:4]))
                raise OSError(errno.ENOSPC, "No space left on device")

        lines._handle = Full()
        with pytest.raises(FileError, match=r"lines\.jsonl': the disk is full"):
            lines.append(Line(name="b"))
        lines._handle = raw
    assert path.read_bytes() == b'{"name":"a"}\n'


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"name": 1}\n', r"line 2 is damaged: field 'name': Input should be a valid string"),
        (b'{"name": "b", "more": 1}\n', "line 2 is damaged: field 'more': Extra inputs"),
        (b'{"name": "b", "value": NaN}\n', "line 2 is damaged: field 'value': Input should be a finite number"),
        (b'{"name": "b", "value": 1e999}\n', "line 2 is damaged: field 'value'"),
        (b'{"name": "\xff"}\n', "line 2 is damaged: not UTF-8"),
        (b"\x00\x00\n", "line 2 is damaged"),
        (b"[" * 100_000 + b"\n", "line 2 is damaged"),
        (b'{"name": "b", "value": ' + b"9" * 5000 + b"}\n", "line 2 is damaged"),
    ],
)
def test_a_damaged_line_is_named_with_a_way_out(tmp_path, content, said):
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b'{"name": "a"}\n' + content)
    with pytest.raises(RunError, match=said) as error:
        list(files.read_models(path, Line, raises=RunError, hint="remove the line"))
    assert error.value.message.startswith(f"{path}, line 2")
    assert "\n" not in error.value.message
    assert len(error.value.message) < 600
    assert error.value.hint == "remove the line"


def test_a_validator_that_refuses_in_its_own_words_is_heard(tmp_path):
    class Picky(BaseModel):
        name: str

        @field_validator("name")
        @classmethod
        def _check(cls, name):
            raise ContextError(f"unknown context {name!r}")

    files.write_json(tmp_path / "a.json", {"name": "x"})
    with pytest.raises(FileError, match=r"a\.json is damaged: field 'name': unknown context 'x'"):
        files.read_model(tmp_path / "a.json", Picky)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000, b"9" * 5000, b'"\\ud800"', b"nul"])
def test_json_that_is_none_is_named(tmp_path, content):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(DataError, match=r"a\.json"):
        files.read_json(tmp_path / "a.json", raises=DataError)


@pytest.mark.parametrize("content", [b"a = ", b"\xff", b"a = 1\na = 2", b"a = " + b"[" * 100_000])
def test_toml_that_is_none_is_named(tmp_path, content):
    (tmp_path / "a.toml").write_bytes(content)
    with pytest.raises(DataError, match=r"a\.toml is damaged"):
        files.read_toml(tmp_path / "a.toml", raises=DataError)


def test_values_of_free_layout_are_checked(tmp_path):
    for read in (lambda: {}["models"], lambda: len(1), lambda: [][3], lambda: int("x"), lambda: 1 / 0):
        with pytest.raises(FileError, match=r"a\.json is damaged"), files.checked(tmp_path / "a.json"):
            read()
    with pytest.raises(RunError, match="mine"), files.checked(tmp_path / "a.json"):
        raise RunError("mine")


def test_two_columns_of_one_name_are_refused(tmp_path):
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["id", "id"])
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"a\.parquet: column 'id' stands twice") as error:
        list(files.parquet_rows(tmp_path / "a.parquet", raises=DataError))
    assert "rename" in error.value.hint


def test_a_column_that_is_wanted_and_missing_is_named(tmp_path):
    pq.write_table(pa.table({"id": ["a"]}), tmp_path / "a.parquet")
    assert list(files.parquet_rows(tmp_path / "a.parquet", columns=["id"])) == [{"id": "a"}]
    with pytest.raises(FileError, match="no column 'user'"):
        list(files.parquet_rows(tmp_path / "a.parquet", columns=["id", "user"]))


def test_blank_lines_without_end_are_bounded_in_time_and_memory(tmp_path):
    path = tmp_path / "blank.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(50):
            file.write(b"\n" * 1_000_000)
    began = time.process_time()
    with pytest.raises(DataError, match=r"blank\.jsonl\.gz, line [0-9]+: more than .* bytes of blank lines"):
        list(files.read_lines(path, raises=DataError))
    assert time.process_time() - began < 10


def test_some_blank_lines_are_passed_over(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\n" * (MAX_BLANK_BYTES - 1) + b"a\n" + b"\n" * (MAX_BLANK_BYTES - 1) + b"b")
    assert [line for _, line in files.read_lines(tmp_path / "a.txt") if line.strip()] == ["a\n", "b"]


def test_one_line_of_a_compressed_gigabyte_is_bounded(tmp_path):
    path = tmp_path / "long.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(80):
            file.write(b"a" * 2**20)
    with pytest.raises(FileError, match="line 1: longer than 67,108,864 bytes"):
        list(files.read_lines(path))


def _hold(path: Path, held, leave) -> None:
    with files.locked(path):
        held.set()
        leave.wait(30)


def test_a_lock_refuses_a_second_process_or_waits_for_it(tmp_path):
    context = multiprocessing.get_context("spawn")
    held, leave = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(tmp_path / "deep" / "lock", held, leave))
    other.start()
    try:
        assert held.wait(60)
        with pytest.raises(RunError, match="somebody"), files.locked(tmp_path / "deep" / "lock", RunError("somebody")):
            pass
        leave.set()
        with files.locked(tmp_path / "deep" / "lock"):
            pass
    finally:
        leave.set()
        other.join(30)


def test_a_folder_is_replaced_as_one_and_what_is_not_ours_stays(tmp_path):
    out = tmp_path / "site"
    with files.replacing_folder(out) as made:
        (made / "index").write_text("1")
        (made / "old").write_text("1")
    (out / "CNAME").write_text("example.org")
    with files.replacing_folder(out, ours=("index", "old")) as made:
        (made / "index").write_text("2")
    assert {path.name: path.read_text() for path in out.iterdir()} == {"index": "2", "CNAME": "example.org"}
    assert names(tmp_path) == ["site"]


def test_a_folder_that_could_not_be_filled_leaves_the_earlier_one(tmp_path):
    out = tmp_path / "suite"
    with files.replacing_folder(out) as made:
        (made / "a").write_text("1")

    def fill() -> None:
        with files.replacing_folder(out) as made:
            (made / "a").write_text("2")
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(FileError, match="the disk is full"):
        fill()
    assert (out / "a").read_text() == "1"
    assert names(tmp_path) == ["suite"]


def test_a_database_that_is_none_is_said(tmp_path):
    path = tmp_path / "a.sqlite"
    path.write_bytes(b"not a database, but long enough to be taken for one" * 100)

    def look() -> None:
        with files.database_errors(path), closing(files.open_database(path, timeout_s=1)) as connection:
            connection.execute("SELECT * FROM sqlite_master")

    with pytest.raises(FileError, match=r"the database '.*a\.sqlite' cannot be used: file is not a database"):
        look()
    with pytest.raises(FileError, match="the disk is full"), files.database_errors(path):
        raise sqlite3.OperationalError("database or disk is full")


def test_an_error_says_where_and_what_to_do():
    error = files.damaged("a.json", ValueError("one\ntwo"))
    assert isinstance(error, PrbenchError)
    assert str(error) == "a.json is damaged: one\n\nhint: restore or remove the file"
    assert re.fullmatch(r".{1,304}", files.describe(ValueError("x" * 10_000)))
