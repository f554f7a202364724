"""The commands as a user types them, in a process of their own where it matters."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fake_server import FakeServer
from prbench.data import write_pairs
from small_suite import mirrored

MODEL = """
def score(question, answer, posts):
    text = " ".join(post.text for post in posts)
    return sum(text.count(word.strip(".")) for word in answer.split())

def blind(question, answer):
    return len(answer)
"""


@pytest.fixture
def folder(tmp_path):
    write_pairs(mirrored(), tmp_path / "pairs.jsonl")
    (tmp_path / "mine.py").write_text(MODEL)
    return tmp_path


def prbench(folder: Path, *arguments: str, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    found = subprocess.run(
        [sys.executable, "-m", "prbench", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert found.returncode == code, found.stdout + found.stderr
    assert "Traceback" not in found.stderr
    return found


def run(folder, *arguments, **settings):
    return prbench(folder, "run", "--suite", "pairs.jsonl", "--resamples", "100", *arguments, **settings)


def test_help_imports_nothing_heavy():
    code = (
        "import sys\n"
        "from prbench.cli import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'transformers', 'scipy', 'datasets', 'numpy', 'pydantic', 'pyarrow', 'httpx'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Usage" in found.stdout
    assert found.stderr.strip() == "[]"


def test_a_run_prints_baselines_first_then_the_model(folder):
    out = run(folder, "--model", "py:mine:score", "-o", "r", "--by", "axis", "--full").stdout.partition("\n\n")[2]
    names = ["random", "longer", "shorter", "overlap", "py:mine:score"]
    assert [out.index(name) for name in names] == sorted(out.index(name) for name in names)
    assert "100.0 [43.9, 100.0]" in out  # three couples
    assert "gain (own − none)" in out
    assert "By axis" in out


def test_run_verify_compare_history(folder):
    run(folder, "--model", "py:mine:score", "-o", "good")
    run(folder, "--model", "py:mine:blind", "--context", "none", "-o", "blind")
    assert "verified: all" in prbench(folder, "verify", "good").stdout
    out = prbench(folder, "compare", "good", "blind", "--context", "none").stdout
    assert "36 pairs judged by both" in out
    assert "difference +0.0" in out
    assert "History · py:mine:blind · none" in prbench(folder, "history", "good", "blind", "--context", "none").stdout
    three = prbench(folder, "compare", "good", "blind", "good", "--context", "none").stdout
    assert "Ranking · none" in three
    result = json.loads((folder / "good" / "result.json").read_text())
    result["result"]["contexts"]["none"]["accuracy"]["value"] = 0.9
    (folder / "good" / "result.json").write_text(json.dumps(result))
    assert "/result/contexts/none/accuracy/value" in prbench(folder, "verify", "good", code=1).stdout


def test_json_has_the_model_under_result_and_baselines_beside(folder):
    out = json.loads(run(folder, "--model", "py:mine:score", "--format", "json", "-q").stdout)
    assert set(out) == {"result", "baselines"}
    assert set(out["baselines"]) == {"random", "longer", "shorter", "overlap"}
    assert out["result"]["contexts"]["profile"]["accuracy"]["value"] == 1.0


@pytest.mark.parametrize(
    ("format", "mark"), [("md", "|---|"), ("csv", "table,model,context"), ("latex", r"\begin{tabular}")]
)
def test_other_formats(folder, format, mark):
    assert mark in run(folder, "--model", "longer", "--format", format).stdout


def test_dry_run_asks_nothing_and_writes_nothing(folder):
    out = run(folder, "--model", "py:mine:score", "--dry-run").stdout
    assert "calls to make" in out
    assert "36" in out
    assert not (folder / "runs").exists()


def test_the_default_folder_is_below_runs_and_is_continued(folder):
    first = run(folder, "--model", "longer")
    (made,) = (folder / "runs").iterdir()
    assert made.name.startswith("pairs.jsonl-longer-") or made.name.startswith("pairs-longer-")
    assert str(Path("runs") / made.name) in first.stderr
    before = (made / "records.jsonl").stat().st_mtime_ns
    run(folder, "--model", "longer")
    assert (made / "records.jsonl").stat().st_mtime_ns == before


def test_fail_under(folder):
    run(folder, "--model", "py:mine:score", "--fail-under", "0.7")
    found = run(folder, "--model", "py:mine:blind", "--fail-under", "0.7", code=1)
    assert "accuracy 0.5000 in context 'none' is below 0.7" in found.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "langer"], "unknown model address 'langer'\n\nhint: did you mean 'longer'?"),
        (["--model", "longer", "--context", "profil"], "unknown context 'profil'\n\nhint: did you mean 'profile'?"),
        (["--model", "longer", "--split", "tset"], "did you mean 'test'?"),
        (["--model", "longer", "--by", "axs"], "no pair has the tag 'axs'\n\nhint: did you mean 'axis'?"),
        (["--model", "py:mine:scor"], "'mine' has no 'scor'\n\nhint: did you mean 'score'?"),
        (["--model", "py:absent:x"], "No module named 'absent'"),
        (["--model", "longer:x"], "takes nothing after a colon"),
        (["--model", "longer", "--price", "1"], "--price '1' should be IN,OUT"),
        (["--model", "longer", "--column", "x"], "--column 'x' should be FIELD=COLUMN"),
        (["--model", "hf:./absent"], "there is no folder './absent'"),
        (["--model", "longer", "--context", "none", "--max-cost", "1"], "price is not known"),
        (["--model", "py:mine:score", "--template", "absent.jinja", "--context", "plan"], "does not read"),
    ],
)
def test_a_mistake_prints_error_and_hint_and_exits_with_2(folder, arguments, message):
    said = run(folder, *arguments, code=2).stderr
    assert re.sub(r"\A(note: .*\n)+", "", said).startswith("error: ")  # what is to be known of a suite comes first
    assert message in said
    assert not (folder / "runs").exists()


def test_a_missing_suite_names_what_there_is(folder):
    said = prbench(folder, "run", "--suite", "pears.jsonl", "--model", "longer", code=2).stderr
    assert "pairs.jsonl" in said


def test_suites_models_doctor(folder):
    assert "prb" in prbench(folder, "suites").stdout
    models = prbench(folder, "models").stdout
    assert all(word in models for word in ("random", "hf:", "chat:", "stored:", "py:"))
    doctor = prbench(folder, "doctor", PRBENCH_CACHE=str(folder / "cache")).stdout
    assert str(folder / "cache") in doctor
    assert not (folder / "cache").exists()


def test_version(folder):
    assert prbench(folder, "--version").stdout.strip()


def test_a_judge_behind_a_server_end_to_end(folder):
    with FakeServer(answer=lambda body: "Result: A") as server:
        arguments = ["--model", f"chat:judge@{server.url}", "--context", "profile", "--format", "json", "-q"]
        found = json.loads(run(folder, *arguments, "--price", "1,2", "--max-cost", "5").stdout)["result"]
    assert found["contexts"]["profile"]["position"]["first_preferred"]["value"] == 1.0
    assert found["contexts"]["profile"]["accuracy"]["value"] == 0.5
    assert found["usage"]["cost_usd"] == pytest.approx(72 * (100 * 1 + 10 * 2) / 1e6)


def test_max_cost_refuses_before_the_first_call(folder):
    with FakeServer() as server:
        arguments = ["--model", f"chat:judge@{server.url}", "--price", "1000,1000", "--max-cost", "0.01"]
        assert "not started" in run(folder, *arguments, code=2).stderr
        assert server.requests == []


def test_plans_count_in_the_forecast_and_against_the_limit(folder):
    def answer(body):
        return "- wants red" if "expectations" in body["messages"][-1]["content"] else "Result: A"

    with FakeServer(answer=answer) as server:
        arguments = ["--model", f"chat:judge@{server.url}", "--context", "plan", "--price", "1000,1000"]
        dry = json.loads(run(folder, *arguments, "--dry-run", "--format", "json").stdout)
        assert dry["plans_to_make"] == 36
        assert dry["cost_usd"] > 1
        assert "not started" in run(folder, *arguments, "--max-cost", "0.5", code=2).stderr
        assert server.requests == []
        found = json.loads(run(folder, *arguments, "--format", "json", "-q").stdout)["result"]
        assert found["usage"]["plans"] == 36
        calls = found["usage"]["distinct_calls"]
        assert found["usage"]["cost_usd"] == pytest.approx((36 + calls) * 0.11)


def test_no_cache_and_fresh_ask_again(folder):
    with FakeServer() as server:
        arguments = ["--model", f"chat:judge@{server.url}", "--context", "profile", "-q"]
        run(folder, *arguments, "-o", "one")
        first = len(server.requests)
        run(folder, *arguments, "-o", "two")
        assert len(server.requests) == first
        run(folder, *arguments, "-o", "three", "--no-cache")
        assert len(server.requests) == 2 * first
        run(folder, *arguments, "-o", "one", "--fresh")
        assert len(server.requests) == 3 * first
        run(folder, *arguments, "-o", "four", "--no-cache", "--one-order")
        assert len(server.requests) == 3 * first + first // 2


def test_fail_under_counts_missing_verdicts_as_wrong(folder):
    (folder / "rare.py").write_text(
        "def score(question, answer, posts):\n    return 1.0 if 'tea' in question else None\n"
    )
    found = run(folder, "--model", "py:rare:score", "--context", "profile", "--fail-under", "0.4", code=1)
    assert "30 missing verdicts counted as wrong" in found.stderr


def test_a_regression_makes_history_exit_with_1(folder):
    (folder / "bad.py").write_text(MODEL.replace("return sum", "return -sum"))
    write_pairs(mirrored(couples=12, questions=12), folder / "pairs.jsonl")
    run(folder, "--model", "py:mine:score", "--context", "profile", "-o", "good")
    run(folder, "--model", "py:bad:score", "--context", "profile", "-o", "bad")
    assert "REGRESSED" in prbench(folder, "history", "good", "bad", "--as-given", code=1).stdout
    prbench(folder, "history", "bad", "good", "--as-given")


def test_an_unusable_cache_is_said_and_not_needed(folder):
    (folder / "file").write_text("")
    said = run(folder, "--model", "longer", code=2, PRBENCH_CACHE=str(folder / "file"))
    assert "cannot be used" in said.stderr
    run(folder, "--model", "longer", "--no-cache", PRBENCH_CACHE=str(folder / "file"))


def test_a_dry_run_into_another_runs_folder_is_refused(folder):
    run(folder, "--model", "longer", "-o", "r")
    assert "holds another run" in run(folder, "--model", "shorter", "-o", "r", "--dry-run", code=2).stderr


def test_a_suite_without_profiles_is_evaluated_without(folder):
    bare = [pair.model_copy(update={"profile": (), "rubric_aspects": ()}) for pair in mirrored()]
    write_pairs(bare, folder / "pairs.jsonl")
    out = run(folder, "--model", "py:mine:score", "--context", "none,profile,other,oracle").stdout
    assert out.count("unsupported") == 3
    assert "has nothing to show" in run(folder, "--model", "py:mine:score", "--context", "profile", code=2).stderr


def test_history_leaves_out_what_is_no_finished_run_and_keeps_models_apart(folder):
    run(folder, "--model", "py:mine:score", "--context", "none", "-o", "runs/one")
    run(folder, "--model", "longer", "--context", "none", "-o", "runs/two")
    (folder / "runs" / "three").mkdir()
    found = prbench(folder, "history", "runs/one", "runs/two", "runs/three")
    assert found.stdout.count("History ·") == 2
    assert "runs/three is not a finished run" in found.stderr


def test_running_a_finished_run_again_leaves_its_date(folder):
    run(folder, "--model", "longer", "--context", "none", "-o", "r")
    before = json.loads((folder / "r" / "result.json").read_text())["result"]["timing"]["finished"]
    time.sleep(1.1)
    run(folder, "--model", "longer", "--context", "none", "-o", "r")
    assert json.loads((folder / "r" / "result.json").read_text())["result"]["timing"]["finished"] == before


def test_a_missing_extra_is_named(folder):
    (folder / "httpx.py").write_text("raise ModuleNotFoundError('no httpx', name='httpx')\n")
    said = run(folder, "--model", "chat:m@http://127.0.0.1:9/v1", code=2, PYTHONPATH=str(folder)).stderr
    assert "personalized-rewardbench[api]" in said
