"""`prbench plan` and `run --plans` as a user types them, against a server that answers and fails on request."""

import json
import re

import pytest
from typer.testing import CliRunner

import tiny_models
from fake_server import FakeServer, Fault, where
from prbench.api import evaluate
from prbench.cli import app
from prbench.config import CACHE_VARIABLE
from prbench.data import write_pairs
from prbench.errors import DataError, PrbenchError, RunError
from prbench.plan import THRESHOLD, Plan, needs_of
from prbench.report import run_tables
from prbench.results import verify
from real_weights import real_model
from small_suite import mirrored


def planner(body):
    text = body["messages"][-1]["content"]
    if "Which soup" in text:
        return "I cannot tell."
    topic, taste = re.search(r"Which (\w+) should", text)[1], re.search(r"glad of the (\w+)", text)[1]
    return f"- ASPECT {taste} {topic}\n- keep it short"


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return tiny_models.save_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture
def suite(tmp_path):
    write_pairs(mirrored(couples=2), tmp_path / "pairs.jsonl")
    return tmp_path / "pairs.jsonl"


def plan(*arguments, fails=False):
    found = CliRunner().invoke(app, ["plan", *map(str, arguments)], catch_exceptions=True)
    if fails:
        assert isinstance(found.exception, PrbenchError), found.output
        raise found.exception
    assert found.exit_code == 0, found.output + repr(found.exception)
    return found


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_plans_are_written_once_measured_and_continued(tmp_path, suite, encoder):
    out, broken = tmp_path / "plans.jsonl", [True]
    faults = where("Which boots", Fault("status", status=400))
    with FakeServer(answer=planner, plan=lambda seen: faults(seen) if broken[0] else None) as server:
        common = ["--suite", suite, "--model", f"chat:p@{server.url}", "-o", out, "--retries", "0", "--no-cache"]
        common += ["--matcher", f"embed:{encoder}", "--threshold", "0.999", "--resamples", "100", "--format", "json"]
        first = plan(*common, "--price", "1,2")
        assert len(server.requests) == 24
        broken[0] = False
        second = plan(*common)
        assert len(server.requests) == 28  # what failed is asked again, what could not be read is not
        third = plan(*common, "--limit", "6")
        assert len(server.requests) == 28
        with pytest.raises(RunError, match="holds plans of 'chat:p@"):
            plan(*common, "--max-tokens", "50", fails=True)
    assert "24 plans wanted, 24 to write" in first.stderr
    assert re.search(r"about \$0\.00\d\d", first.stderr)
    assert re.search(r"spent \$0\.0[^0]|spent \$0\.00[^0]", first.stderr)
    found = json.loads(first.stdout)["quality"]
    assert found["unread"] == {"failed": 4, "invalid": 4}
    assert found["own"]["recall"]["value"] == 1.0
    assert found["own"]["precision"]["value"] == 0.5
    assert found["personal"]["recall"]["value"] > 0.9
    assert json.loads(second.stdout)["quality"]["unread"] == {"invalid": 4}
    assert json.loads(third.stdout)["quality"]["plans"] == 6
    assert len(lines(out)) == 28


def test_stored_plans_stand_in_for_a_planner(tmp_path, suite, encoder):
    out = tmp_path / "plans.jsonl"
    with FakeServer(answer=planner) as server:
        plan(
            "--suite",
            suite,
            "--model",
            f"chat:p@{server.url}",
            "-o",
            out,
            "--matcher",
            f"embed:{encoder}",
            "--threshold",
            "0.9",
            "--no-cache",
            "--quiet",
        )

    def reads(question, answer, plan):
        return float(sum(word in " ".join(plan) for word in answer.strip(".").split()[2:3]))

    found = evaluate(reads, mirrored(couples=2), contexts=["plan"], plans=out, out=tmp_path / "run")
    accuracy = found.contexts["plan"].accuracy
    assert (accuracy.value, accuracy.n) == (1.0, 20)
    assert found.contexts["plan"].reasons == {"there is no plan for the pair": 4}
    assert found.plans.statuses == {"invalid": 4, "ok": 20}
    assert found.plans.quality is None  # the encoder has not been fetched, and a run does not fetch it
    assert not verify(tmp_path / "run").mismatches
    assert len(lines(tmp_path / "run" / "plans.jsonl")) == 24
    with pytest.raises(DataError, match="has no plan for 12 of 36 pairs"):
        evaluate(reads, mirrored(couples=3), contexts=["plan"], plans=out)
    other = tmp_path / "other.jsonl"
    other.write_text("".join(out.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(RunError, match="holds another run"):
        evaluate(reads, mirrored(couples=2), contexts=["plan"], plans=other, out=tmp_path / "run")


def test_mistakes_are_said_before_anything_is_asked(tmp_path, suite):
    model = ["--model", "chat:p@http://127.0.0.1:9"]
    with pytest.raises(PrbenchError, match="needs a --threshold"):
        plan("--suite", suite, *model, "--matcher", "embed:x", fails=True)
    with pytest.raises(PrbenchError, match="over the limit"):
        plan("--suite", suite, *model, "--price", "1000,1000", "--max-cost", "0.01", fails=True)
    with pytest.raises(PrbenchError, match="has no split"):
        plan("--suite", suite, *model, "--split", "trial", fails=True)
    with pytest.raises(PrbenchError, match="cannot write text"):
        plan("--suite", suite, "--model", "longer", fails=True)
    dry = plan("--suite", suite, *model, "--dry-run", "-o", tmp_path / "none.jsonl", "--limit", "6")
    assert "6 plans wanted, 6 to write" in dry.stderr
    assert not (tmp_path / "none.jsonl").exists()


def test_a_file_that_holds_no_plans_is_refused_with_its_line(tmp_path):
    path = tmp_path / "plans.jsonl"
    path.write_text('{"key": "k", "status": "ok", "plan": ["a"]}\n')
    with pytest.raises(DataError, match="line 1 does not say what the plan is for"):
        evaluate(lambda question, answer, plan: 1.0, mirrored(), contexts=["plan"], plans=path)
    path.write_text("{}\n")
    with pytest.raises(DataError, match="line 1 is damaged"):
        evaluate(lambda question, answer, plan: 1.0, mirrored(), contexts=["plan"], plans=path)


@pytest.mark.slow
def test_a_run_that_uses_plans_measures_them_once_and_can_be_verified(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(real_model("minilm").parent.parent))
    pairs = mirrored(couples=2)
    path = tmp_path / "plans.jsonl"
    needs = needs_of(pairs)
    path.write_text(
        "".join(
            Plan(key=need.id, need=need.id, user=need.pair.user, status="ok", plan=need.aspects).model_dump_json()
            + "\n"
            for need in needs
        )
    )

    def blind(question, answer, plan):
        return 1.0

    settings = {"contexts": ["plan"], "plans": path, "out": tmp_path / "run", "cache": False, "resamples": 100}
    found = evaluate(blind, pairs, **settings)
    quality = found.plans.quality
    assert quality.own["recall"].value == quality.own["precision"].value == 1.0
    assert quality.own["recall"].n == len(needs)
    assert quality.threshold == THRESHOLD
    assert any(table.title.startswith("Plans · 24 read of 24") for table in run_tables(found))
    kept = (tmp_path / "run" / "plan_quality.json").stat()
    assert evaluate(blind, pairs, **settings).plans.quality == quality
    assert (tmp_path / "run" / "plan_quality.json").stat().st_mtime_ns == kept.st_mtime_ns
    assert not verify(tmp_path / "run").mismatches
    result = tmp_path / "run" / "result.json"
    result.write_text(result.read_text().replace(f'"threshold": {THRESHOLD}', '"threshold": 0.1'))
    assert [item.place for item in verify(tmp_path / "run").mismatches] == ["/result/plans/quality/threshold"]
