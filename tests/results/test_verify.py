"""`prbench verify`: every value is computed again, and whatever was changed is found."""

import json

import pytest

from prbench import evaluate
from prbench.errors import RunError
from prbench.results import load_run, verify
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
    assert [item.place for item in verify(run).mismatches] == ["/records.parquet"]
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
