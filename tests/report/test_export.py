"""Exports as other tools read them: each form is read back, and must say what the records say."""

import csv
import errno
import json
import os
import shlex
import subprocess
import sys

import pyarrow.parquet as parquet
import pytest
import yaml

from prbench import evaluate
from prbench.data import write_pairs
from prbench.errors import ConfigError, FileError, RunError
from prbench.models.python import wrap
from prbench.report.export import export
from prbench.report.export.hub import to_yaml
from prbench.report.finished import open_finished
from prbench.results import load_run
from small_suite import Spy, follows_posts, mirrored


def judge(question, first, second, posts):
    """Follows the user, is silent on chess, and has words."""
    if "chess" in question:
        return None
    one, two = (follows_posts(question, text, posts) for text in (first, second))
    return "first" if one > two else "second" if one < two else "tie"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    pairs = [
        pair.model_copy(
            update={"question": pair.question + ' "quoted", and <b>', "tags": {**pair.tags, "in_words": "a few"}}
        )
        for pair in mirrored()
    ]
    write_pairs(pairs, folder / "pairs.jsonl")
    evaluate(
        wrap(judge, "py:export:judge"),
        folder / "pairs.jsonl",
        contexts=["none", "profile", "other"],
        resamples=100,
        out=folder / "run",
    )
    return folder / "run"


@pytest.fixture
def copy(run, tmp_path):
    """A copy to damage."""
    folder = tmp_path / "copy"
    folder.mkdir()
    for file in run.iterdir():
        if file.suffix != ".lock":
            (folder / file.name).write_bytes(file.read_bytes())
    return folder


def accuracy(run, context):
    return load_run(run).result.contexts[context].accuracy


def test_flat_tables_hold_every_record_with_its_pair(run, tmp_path):
    export(run, "parquet", tmp_path / "r.parquet")
    export(run, "csv", tmp_path / "r.csv")
    rows = parquet.read_table(tmp_path / "r.parquet").to_pylist()
    assert "chosen" not in rows[0]
    export(run, "parquet", tmp_path / "words.parquet", texts=True)
    words = parquet.read_table(tmp_path / "words.parquet").to_pylist()
    assert all(row["question"] and row["chosen"] != row["rejected"] for row in words)
    with (tmp_path / "r.csv").open(encoding="utf-8", newline="") as handle:
        texts = list(csv.DictReader(handle))
    records = open_finished(run).records
    assert len(rows) == len(texts) == len(records)
    assert {(row["pair"], row["context"], row["order"], row["repeat"]) for row in rows} == {r.slot for r in records}
    assert [[_text(value) for value in row.values()] for row in rows] == [list(row.values()) for row in texts]
    some = next(row for row in rows if row["context"] == "profile" and row["status"] == "ok")
    assert (some["tag_axis"], some["tag_in_words"]) == ("colour", "a few")
    assert (type(some["chosen_words"]), type(some["credit"]), type(some["posts"])) == (int, float, int)
    silent = [row for row in rows if row["status"] != "ok"]
    assert silent
    unknown = ("credit", "chosen_score", "rejected_score", "margin")
    assert all("chess" in row["pair"] and {row[name] for name in unknown} == {None} for row in silent)


def _text(value):
    return "" if value is None else str(value)


def inspect_log(run, folder):
    export(run, "inspect", folder / "log.json")
    return json.loads((folder / "log.json").read_text(encoding="utf-8"))


def test_an_inspect_log_gives_the_numbers_of_the_run(run, tmp_path):
    log = inspect_log(run, tmp_path)
    assert (log["version"], log["status"]) == (2, "success")
    assert {"created", "task", "dataset", "model", "config"} <= set(log["eval"])
    for score in log["results"]["scores"]:
        values = [sample["scores"][score["name"]]["value"] for sample in log["samples"] if sample["scores"]]
        measured = accuracy(run, score["name"])
        assert sum(values) / len(values) == pytest.approx(measured.value)
        assert score["metrics"]["accuracy"]["value"] == measured.value
        assert (score["scored_samples"], score["unscored_samples"]) == (measured.n, 6)
    sample = log["samples"][0]
    assert 'quoted", and <b>' in sample["input"]
    assert "SECRET" not in json.dumps(log)
    assert "ASPECT" not in json.dumps(log)


def test_an_inspect_log_calls_a_tie_only_what_is_one(tmp_path):
    said = iter(["first"] * 6 + ["second"] * 3 + ["first"] * 3)  # six repeats in one order, then in the other
    pairs = [pair for pair in mirrored(couples=1, questions=1) if pair.user == "u0a"]
    model = wrap(lambda question, first, second: next(said), "py:export:moody")
    model.card = model.card.model_copy(update={"deterministic": False, "reusable": False})
    evaluate(model, pairs, contexts=["none"], repeats=6, resamples=100, out=tmp_path / "run", cache=False)
    (sample,) = inspect_log(tmp_path / "run", tmp_path)["samples"]
    assert (sample["scores"]["none"]["value"], sample["scores"]["none"]["answer"]) == (0.75, "A")


READ = """
import json, sys
from inspect_ai.log import read_eval_log
log = read_eval_log(sys.argv[1])
metrics = {score.name: score.metrics["accuracy"].value for score in log.results.scores}
values = [sample.scores["profile"].value for sample in log.samples if sample.scores]
print(json.dumps({"status": log.status, "samples": len(log.samples), "metrics": metrics, "values": values}))
"""


def test_inspect_reads_the_log(run, tmp_path):
    python = os.environ.get("INSPECT_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import inspect_ai"], capture_output=True, check=False).returncode:
        pytest.skip("inspect_ai is not installed: make test-inspect")
    inspect_log(run, tmp_path)
    said = subprocess.run(
        [python, "-c", READ, str(tmp_path / "log.json")], capture_output=True, text=True, check=True, timeout=120
    )
    found = json.loads(said.stdout.splitlines()[-1])
    assert (found["status"], found["samples"]) == ("success", 36)
    assert found["metrics"] == {name: accuracy(run, name).value for name in ("none", "profile", "other")}
    assert set(found["values"]) <= {0.0, 0.5, 1.0}


def test_an_inspect_log_without_texts_says_so(copy, run, tmp_path):
    config = (copy / "config.toml").read_text(encoding="utf-8")
    (copy / "config.toml").write_text(config.replace("pairs.jsonl", "gone.jsonl"), encoding="utf-8")
    log = inspect_log(copy, tmp_path)
    assert {sample["input"] for sample in log["samples"]} == {"(the text of this pair is not available)"}
    assert log["results"] == inspect_log(run, tmp_path)["results"]


def test_the_hub_parses_what_is_written(run, tmp_path):
    from huggingface_hub import parse_eval_result_entries
    from huggingface_hub.repocard_data import model_index_to_eval_results

    written = export(run, "hub-eval-results", tmp_path / "model", dataset_id="org/benchmark")
    found = {}
    for path in written[:-1]:
        assert path.parent.name == ".eval_results"
        (entry,) = parse_eval_result_entries(yaml.safe_load(path.read_text(encoding="utf-8")))
        found[entry.task_id] = entry
    assert set(found) == {"none", "profile", "other"}
    assert found["profile"].dataset_id == "org/benchmark"
    assert found["profile"].value == pytest.approx(100 * accuracy(run, "profile").value, abs=1e-4)
    index = yaml.safe_load(written[-1].read_text(encoding="utf-8"))["model-index"]
    name, results = model_index_to_eval_results(index)
    assert name == "export:judge"
    values = {result.metric_args["context"]: result.metric_value for result in results}
    assert values == {context: accuracy(run, context).value for context in found}


def test_a_context_that_leaks_does_not_go_to_the_hub(tmp_path):
    evaluate(Spy(), mirrored(), contexts=["none", "oracle"], resamples=100, out=tmp_path / "run")
    files = export(tmp_path / "run", "hub-eval-results", tmp_path / "model", dataset_id="org/benchmark")
    assert len(files) == 2
    assert not any("oracle" in file.read_text(encoding="utf-8") for file in files)


def test_a_suite_that_is_not_on_the_hub_needs_an_id(run, tmp_path):
    with pytest.raises(ConfigError, match="has no id on the hub"):
        export(run, "hub-eval-results", tmp_path / "model")
    with pytest.raises(ConfigError, match="is no dataset id"):
        export(run, "hub-eval-results", tmp_path / "model", dataset_id="benchmark")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("text", ["a: b", "- x", "50 %", "null", 'say "no"', "line\nbreak", "é 😀", "", "2026-11-16"])
def test_yaml_is_read_back_as_it_was(text):
    data = {"key": text, "list": [{"a": text, "b": 1.5}, [text], {}], "none": None, "yes": True}
    assert yaml.safe_load(to_yaml(data)) == data


def test_a_model_card_has_table_command_and_fingerprints(run, tmp_path):
    export(run, "model-card", tmp_path / "card.md")
    card = (tmp_path / "card.md").read_text(encoding="utf-8")
    found = open_finished(run)
    assert "| profile | 100.0 [" in card
    assert "--model py:export:judge --context none,profile,other" in card
    assert found.records_fingerprint in card
    assert found.loaded.facts.dataset.fingerprint in card


@pytest.mark.parametrize("to", ["parquet", "csv", "inspect", "model-card", "hub-eval-results"])
def test_a_run_that_is_not_finished_or_does_not_verify_is_refused(copy, tmp_path, to):
    out = tmp_path / "out.json"
    stored = json.loads((copy / "result.json").read_text(encoding="utf-8"))
    stored["result"]["contexts"]["profile"]["accuracy"]["value"] = 0.99
    (copy / "result.json").write_text(json.dumps(stored), encoding="utf-8")
    with pytest.raises(RunError, match="do not follow from its records, /result/contexts/profile/accuracy/value"):
        export(copy, to, out, dataset_id="a/b")
    (copy / "result.json").unlink()
    with pytest.raises(RunError, match="is not finished"):
        export(copy, to, out, dataset_id="a/b")
    assert not out.exists()


@pytest.mark.parametrize(("name", "text"), [("result.json", '{"res'), ("run.json", '{"of": "another version"}')])
def test_a_damaged_or_foreign_run_is_refused_in_words(copy, tmp_path, name, text):
    (copy / name).write_text(text, encoding="utf-8")
    with pytest.raises(RunError, match=r"is damaged"):
        export(copy, "csv", tmp_path / "out.csv")


def test_what_was_there_stays_when_writing_fails(run, tmp_path, monkeypatch):
    out = tmp_path / "old.parquet"
    out.write_text("old", encoding="utf-8")

    def fails(table, path):
        path.write_text("half", encoding="utf-8")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.write_table", fails)
    with pytest.raises(FileError, match="the disk is full"):
        export(run, "parquet", out)
    assert [file.name for file in tmp_path.iterdir()] == ["old.parquet"]
    assert out.read_text(encoding="utf-8") == "old"


def test_mistakes_are_named(run, tmp_path):
    with pytest.raises(ConfigError, match="unknown export 'parket'"):
        export(run, "parket", tmp_path / "x")
    with pytest.raises(ConfigError, match=r"must be named \*\.json"):
        export(run, "inspect", tmp_path / "x.eval")
    with pytest.raises(ConfigError, match="is a folder"):
        export(run, "csv", tmp_path)
    with pytest.raises(ConfigError, match="--texts means nothing to model-card"):
        export(run, "model-card", tmp_path / "card.md", texts=True)


def test_no_setting_is_missing_from_the_command():
    from prbench.config import ModelOptions, RunConfig
    from prbench.report.command import _OPTIONS, _PLAIN

    spelled = {"suite", "model", "contexts", "split", "by", "columns", "orders", "allow_unfit", "options"}
    assert set(RunConfig.model_fields) == {*_PLAIN.values(), *spelled}
    assert set(ModelOptions.model_fields) == {
        *_OPTIONS.values(),
        *("price", "seed", "body", "logprobs", "max_memory", "trust_remote_code"),
    }


def test_the_command_in_an_export_makes_the_same_run(tmp_path):
    write_pairs(mirrored(), tmp_path / "pairs.jsonl")
    (tmp_path / "mine.py").write_text("def judge(question, first, second, posts):\n    return 'first'\n")
    odd = (
        "--suite pairs.jsonl --model py:mine:judge --context none,retrieved@2 --split all --limit 10 --seed 3 --by axis"
    )
    odd += " --body effort=low --body n=1 --structured auto --logprobs"
    odd += " --one-order --resamples 150 --concurrency 3 --price 0.15,0.6 --temperature 0.5 --repeats 2 --window 900"
    first = _cli(tmp_path, "run", *odd.split(), "-o", "one", "-q")
    command = shlex.split(_cli(tmp_path, "export", "one", "--to", "model-card", "-o", "card.md") and _command(tmp_path))
    assert command[0] == "prbench"
    second = _cli(tmp_path, *command[1:], "-o", "two", "-q")
    assert first == second
    configs = [(tmp_path / name / "config.toml").read_text(encoding="utf-8") for name in ("one", "two")]
    assert configs[0] == configs[1]


def _command(folder):
    return (folder / "card.md").read_text(encoding="utf-8").split("```")[1].strip()


def _cli(folder, *arguments):
    found = subprocess.run(
        [sys.executable, "-m", "prbench", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
    )
    assert found.returncode == 0, found.stderr
    return found.stdout
