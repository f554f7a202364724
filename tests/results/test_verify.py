"""`prbench verify`: every value is computed again, and whatever was changed is found."""

import json
import sys

import pyarrow as arrow
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from prbench import evaluate
from prbench.cli.app import app
from prbench.errors import RunError
from prbench.report.leaderboard import read_boards
from prbench.report.view.pages import build_pages
from prbench.results import RunFolder, load_run, read_result, recompute, verify
from prbench.results.parquet import write_parquet
from prbench.types import Record
from small_suite import follows_posts, mirrored


@pytest.fixture
def run(tmp_path):
    evaluate(
        follows_posts, mirrored(), contexts=["none", "profile", "other", "oracle"], out=tmp_path / "run", by=["axis"]
    )
    return tmp_path / "run"


def weaker(question, answer, posts):
    return follows_posts(question, answer, posts) if "tea" in question else -follows_posts(question, answer, posts)


def test_every_metric_has_value_low_high_and_n(run):
    def metrics(node):
        if isinstance(node, dict):
            if "value" in node:
                yield node
            for child in node.values():
                yield from metrics(child)

    found = list(metrics(json.loads((run / "result.json").read_text())))
    assert len(found) > 40
    assert all({"value", "low", "high", "n"} <= set(metric) for metric in found)


def test_verify_recomputes_every_value(run):
    found = verify(run)
    assert found.numbers > 200
    assert found.mismatches == ()


def test_verify_finds_a_changed_aggregate(run):
    result = json.loads((run / "result.json").read_text())
    result["result"]["contexts"]["profile"]["accuracy"]["low"] -= 0.01
    (run / "result.json").write_text(json.dumps(result))
    assert [item.place for item in verify(run).mismatches] == ["/result/contexts/profile/accuracy/low"]


def test_verify_finds_a_changed_record(run):
    text = (run / "records.jsonl").read_text()
    assert '"margin":3.0' in text
    (run / "records.jsonl").write_text(text.replace('"margin":3.0', '"margin":-3.0', 1))
    assert "/result/contexts/profile/accuracy/value" in [item.place for item in verify(run).mismatches]


def test_verify_finds_a_changed_baseline(run):
    rows = [json.loads(line) for line in (run / "baselines.jsonl").read_text().splitlines()]
    rows[0]["chosen_score"], rows[0]["rejected_score"] = rows[0]["rejected_score"], rows[0]["chosen_score"]
    (run / "baselines.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert any(item.place.startswith("/baselines/random") for item in verify(run).mismatches)


def test_verify_finds_a_removed_record(run):
    lines = (run / "records.jsonl").read_text().splitlines(keepends=True)
    (run / "records.jsonl").write_text("".join(lines[1:]))
    assert verify(run).mismatches


def test_verify_finds_a_changed_table(run, tmp_path):
    evaluate(weaker, mirrored(), contexts=["none", "profile", "other", "oracle"], out=tmp_path / "other", by=["axis"])
    (run / "records.parquet").write_bytes((tmp_path / "other" / "records.parquet").read_bytes())
    assert "/records.parquet/verdict" in [item.place for item in verify(run).mismatches]
    (run / "records.parquet").unlink()
    assert [item.place for item in verify(run).mismatches] == ["/records.parquet"]


def test_a_run_that_another_version_computed_verifies(run):
    path = run / "result.json"
    result = json.loads(path.read_text())
    result["result"]["prbench"] = "0.0.1"
    path.write_text(json.dumps(result))
    assert not verify(run).mismatches


def test_a_result_of_another_layout_is_refused_with_a_way_out(run):
    path = run / "result.json"
    result = json.loads(path.read_text())
    del result["result"]["contexts"]["profile"]["accuracy"]
    path.write_text(json.dumps(result))
    with pytest.raises(RunError, match=r"result\.json is damaged: field") as caught:
        load_run(run)
    assert "computes it anew" in caught.value.hint


@pytest.mark.parametrize("column", Record.model_fields)
def test_verify_compares_every_column_of_the_table(run, column):
    table = parquet.read_table(run / "records.parquet")
    values = table.column(column).to_pylist()
    values[5] = changed(values[5])
    place = table.schema.get_field_index(column)
    kind = table.schema.field(column).type
    parquet.write_table(table.set_column(place, column, arrow.array(values, kind)), run / "records.parquet")
    assert any(item.place == f"/records.parquet/{column}" for item in verify(run).mismatches)


def changed(value):
    if isinstance(value, list):
        return [*value, "more"]
    return f"{value}x" if isinstance(value, str) else "x" if value is None else value + 1


def test_verify_finds_rows_and_columns_that_were_added_to_the_table(run):
    table = parquet.read_table(run / "records.parquet")
    parquet.write_table(arrow.concat_tables([table, table.slice(0, 1)]), run / "records.parquet")
    assert [item.place for item in verify(run).mismatches] == ["/records.parquet/rows"]
    parquet.write_table(table.append_column("note", arrow.array(["x"] * len(table))), run / "records.parquet")
    assert [item.place for item in verify(run).mismatches] == ["/records.parquet/note"]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ('"verdict":"first"', '"verdict":"tie"'),
        ('"chosen_score":3.0', '"chosen_score":2.0'),
        ('"margin":3.0', '"margin":2.0'),
        ('"status":"ok"', '"status":"invalid"'),
    ],
)
def test_verify_refuses_a_record_that_contradicts_itself_also_where_the_result_agrees_with_it(run, one, two):
    text = (run / "records.jsonl").read_text()
    parts = ('"context":"profile"', '"margin":3.0', one)
    line = next(line for line in text.splitlines() if all(part in line for part in parts))
    (run / "records.jsonl").write_text(text.replace(line, line.replace(one, two, 1)))
    folder = RunFolder(run)
    timing = read_result(folder).timing
    folder.write_json("result.json", recompute(folder).model_copy(update={"timing": timing}).to_json())
    write_parquet(run / "records.parquet", folder.records().values())
    assert [item.place.split("/")[1] for item in verify(run).mismatches] == ["records.jsonl"]
    with pytest.raises(RunError, match="do not follow from its records"):
        load_run(run)


PLACES = ["", "result", "result/timing", "result/contexts/profile", "result/usage"]


@pytest.mark.parametrize("place", PLACES)
def test_a_field_that_was_added_to_the_result_is_refused(run, place):
    data = json.loads((run / "result.json").read_text())
    node = data
    for name in place.split("/") if place else ():
        node = node[name]
    node["added"] = 1
    (run / "result.json").write_text(json.dumps(data))
    with pytest.raises(RunError, match="added"):
        load_run(run)


def test_a_run_is_verified_once_and_again_when_one_of_its_files_changes(run, monkeypatch):
    verifying = sys.modules["prbench.results.verify"]  # the door has a function of that name
    times = []
    whole = verifying.recompute
    monkeypatch.setattr(verifying, "recompute", lambda *given: times.append(1) or whole(*given))
    load_run(run)
    assert not times  # the run itself computed it from these records
    (run / "verified.json").unlink()
    load_run(run)
    load_run(run)
    assert len(times) == 1
    (run / "records.jsonl").write_bytes((run / "records.jsonl").read_bytes() + b"\n")
    load_run(run)
    assert len(times) == 2


def test_every_page_refuses_or_marks_a_run_whose_numbers_were_changed(run, tmp_path):
    evaluate(weaker, mirrored(), contexts=["none", "profile", "other"], out=tmp_path / "sound")
    path = run / "result.json"
    data = json.loads(path.read_text())
    data["result"]["contexts"]["profile"]["accuracy"]["value"] = 0.99
    path.write_text(json.dumps(data))
    sound = tmp_path / "sound"
    for arguments in (
        ["compare", run, sound],
        ["history", run, sound],
        ["report", run, sound, "-o", tmp_path / "r.html"],
    ):
        found = CliRunner().invoke(app, list(map(str, arguments)))
        assert isinstance(found.exception, RunError), arguments
        assert "do not follow from its records" in found.exception.message
    pages = build_pages([run, sound])
    assert "weaker" in pages["/"]
    assert "0.99" not in pages["/"]
    assert "do not follow from its records" in pages["/leaderboard"]
    board = read_boards([run, sound])
    assert [left.path for left in board.left_out] == [run]
    with pytest.raises(RunError):
        build_pages([run])
