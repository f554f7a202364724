"""Every way in which a file can be damaged names file, line and place, and a way out."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prbench.data import load_pairs
from prbench.data.rows import read_rows
from prbench.errors import DataError

GOOD = {"id": "1", "user": "ann", "question": "Tea?", "chosen": "Green.", "rejected": "Black."}


def jsonl(path, *rows):
    path.write_text(
        "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows), encoding="utf-8"
    )
    return path


def fails(path, **options):
    with pytest.raises(DataError) as caught:
        load_pairs(path, **options)
    return caught.value


@pytest.mark.parametrize("row", ["{}", '{"chosen": []}'])
@pytest.mark.parametrize("before", [[], [GOOD]])
def test_a_row_without_columns_or_answers_is_named(tmp_path, row, before):
    error = fails(jsonl(tmp_path / "a.jsonl", *before, row))
    assert f"line {len(before) + 1}" in str(error)
    assert error.hint


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"chosen": ""}, ["line 2", "'chosen'", "empty"]),
        ({"rejected": " \n"}, ["line 2", "'rejected'", "empty"]),
        ({"question": ""}, ["line 2", "'question'", "empty"]),
        ({"chosen": "Black."}, ["line 2", "same text"]),
        ({"chosen": 5}, ["line 2", "'chosen'", "a number", "expected text"]),
        ({"chosen": None}, ["line 2", "'chosen'", "missing"]),
        ({"id": "1"}, ["line 2", "'1'", "line 1"]),
        ({"id": 1}, ["line 2", "'1'", "line 1"]),
        ({"id": [1]}, ["line 2", "'id'", "a list"]),
        ({"user": True}, ["line 2", "'user'", "true or false"]),
        ({"profile": 3}, ["line 2", "'profile'", "a number"]),
        ({"profile": [3]}, ["line 2", "'profile'", "a list of posts"]),
        ({"profile": [{"id": "p"}]}, ["line 2", "'profile'", "without a text"]),
        ({"profile": [{"id": "p", "text": 7}]}, ["line 2", "'profile.text'", "a number"]),
        ({"profile": [{"id": "p", "text": "a"}, {"id": "p", "text": "b"}]}, ["line 2", "two different posts", "'p'"]),
        ({"profile": "[{"}, ["line 2", "'profile'", "not JSON", "column"]),
        ({"rubric_aspects": "x y"}, ["line 2", "'rubric_aspects'", "not JSON"]),
        ({"rubric_aspects": [{"reason": "r"}]}, ["line 2", "without a title"]),
        ({"rubric_aspects": [{"aspect": "a", "evidence": 1}]}, ["line 2", "'rubric_aspects.evidence'"]),
        ({"tags": ["a"]}, ["line 2", "'tags'", "a list", "an object"]),
        ({"tags": {"a": {"b": 1}}}, ["line 2", "'tags.a'", "an object"]),
        ({"narrative": ["x"]}, ["line 2", "'narrative'", "a list"]),
    ],
)
def test_a_bad_field_names_file_line_and_field(tmp_path, change, words):
    path = jsonl(tmp_path / "pairs.jsonl", GOOD, {**GOOD, "id": "2", **change})
    message = fails(path).message
    assert message.startswith(str(path))
    for word in words:
        assert word in message


def test_a_missing_field_suggests_the_nearest_column(tmp_path):
    row = {**GOOD, "choosen": GOOD["chosen"]}
    del row["chosen"]
    error = fails(jsonl(tmp_path / "pairs.jsonl", row))
    assert "line 1: field 'chosen' is missing" in error.message
    assert "did you mean 'choosen'?" in error.hint
    assert "columns=" in error.hint


def test_bad_json_names_the_column(tmp_path):
    error = fails(jsonl(tmp_path / "pairs.jsonl", GOOD, '{"id": "2", x}'))
    assert "line 2: not JSON at column 13" in error.message


def test_deeply_nested_json_is_refused(tmp_path):
    error = fails(jsonl(tmp_path / "pairs.jsonl", "[" * 200_000))
    assert "line 1: JSON that cannot be read" in error.message


@pytest.mark.parametrize(("line", "found"), [("[1]", "a list"), ('"x"', "text"), ("null", "null"), ("3.5", "a number")])
def test_a_line_that_is_no_object(tmp_path, line, found):
    assert f"line 1: expected an object, found {found}" in fails(jsonl(tmp_path / "pairs.jsonl", line)).message


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_bad_utf8_names_the_byte(tmp_path, suffix):
    path = tmp_path / f"pairs{suffix}"
    first = (json.dumps(GOOD) if suffix == ".jsonl" else "question,chosen,rejected").encode() + b"\n"
    path.write_bytes(first + b"ab\xff\n")
    assert f"line 2: not UTF-8 at byte {len(first) + 2} (0xff)" in fails(path).message


def test_a_byte_order_mark_is_skipped_and_counted(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(GOOD).encode() + b"\n")
    assert load_pairs(path)[0].id == "1"
    path.write_bytes(b"\xef\xbb\xbf\xff\n")
    assert "byte 3" in fails(path).message


def test_a_lone_surrogate_is_refused(tmp_path):
    path = jsonl(tmp_path / "pairs.jsonl", json.dumps({**GOOD, "chosen": "x"}).replace('"x"', '"\\ud83d"'))
    assert "lone surrogate" in fails(path).message
    whole = jsonl(tmp_path / "whole.jsonl", json.dumps({**GOOD, "chosen": "\N{TEACUP WITHOUT HANDLE}"}))
    assert load_pairs(whole)[0].chosen == "\N{TEACUP WITHOUT HANDLE}"


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_a_huge_line_is_refused_without_reading_it_all(tmp_path, suffix):
    path = tmp_path / f"pairs{suffix}"
    path.write_text("question,chosen,rejected\n" + "x" * 10_000)
    error = fails(path, max_line_bytes=1_000) if suffix == ".csv" else None
    if suffix == ".jsonl":
        path.write_text("x" * 10_000)
        error = fails(path, max_line_bytes=1_000)
    assert "longer than 1,000 bytes" in error.message
    assert "max_line_bytes" in error.hint


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_an_empty_file(tmp_path, content):
    path = tmp_path / "pairs.jsonl"
    path.write_text(content)
    assert "has no rows" in fails(path).message


def test_an_empty_table_in_csv_and_parquet(tmp_path):
    (tmp_path / "a.csv").write_text("question,chosen,rejected\n")
    pq.write_table(pa.table({"question": pa.array([], pa.string())}), tmp_path / "a.parquet")
    assert "has no rows" in fails(tmp_path / "a.csv").message
    assert "has no rows" in fails(tmp_path / "a.parquet").message


def test_csv_quirks(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_bytes(b'question,chosen,rejected\r\n"two\r\nlines, ""quoted""",Green.,Black.\r\n\r\nTea?,Green.\r\n')
    error = fails(path)
    assert "line 5: 2 fields under a header of 3" in error.message
    path.write_bytes(b'question,chosen,rejected\r\n"two\r\nlines, ""quoted""",Green.,Black.\r\n')
    assert load_pairs(path)[0].question == 'two\r\nlines, "quoted"'


def test_csv_with_an_open_quotation_mark_or_a_doubled_column(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text('question,chosen,rejected\na,b,c\n"open,b,c\n')
    error = fails(path)
    assert "line 3: not CSV" in error.message
    assert "quotation mark" in error.hint
    path.write_text("question,chosen,chosen\na,b,c\n")
    assert "column 'chosen' stands twice" in fails(path).message


def test_csv_fields_past_the_csv_modules_own_limit(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text(f"question,chosen,rejected\na,{'x' * 300_000},c\n")
    assert len(load_pairs(path)[0].chosen) == 300_000


def test_a_damaged_parquet_or_gzip_file(tmp_path):
    (tmp_path / "pairs.parquet").write_bytes(b"PAR1 not really")
    assert "cannot be read as Parquet" in fails(tmp_path / "pairs.parquet").message
    whole = gzip.compress(json.dumps(GOOD).encode() * 50)
    (tmp_path / "cut.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    assert "cannot be read" in fails(tmp_path / "cut.jsonl.gz").message
    (tmp_path / "no.jsonl.gz").write_text(json.dumps(GOOD))
    assert "cannot be read" in fails(tmp_path / "no.jsonl.gz").message


def test_parquet_errors_name_the_row(tmp_path):
    rows = [{**GOOD, "id": str(number)} for number in range(3)]
    rows[2]["chosen"] = ""
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "pairs.parquet")
    assert "pairs.parquet, row 3: field 'chosen' is empty" in fails(tmp_path / "pairs.parquet").message


def test_reading_is_lazy(tmp_path):
    path = jsonl(tmp_path / "pairs.jsonl", GOOD, "broken")
    rows = read_rows(path)
    assert next(rows).values == GOOD
    with pytest.raises(DataError, match="line 2"):
        next(rows)


def test_a_parquet_file_with_two_columns_of_one_name_is_refused_as_csv_is(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = ["id", "question", "chosen", "rejected", "question"]
    table = pa.Table.from_arrays(
        [pa.array([text]) for text in ("1", "Tea?", "Green.", "Black.", "Coffee?")], names=names
    )
    pq.write_table(table, tmp_path / "twice.parquet")
    with pytest.raises(DataError, match=r"twice\.parquet: column 'question' stands twice"):
        load_pairs(tmp_path / "twice.parquet")
