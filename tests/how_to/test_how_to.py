"""The pages of docs/how-to do what they say: their own code adds a toy, and the toy is seen in a result."""

import json
import re
import runpy
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tiny_models
from prbench import evaluate
from prbench.contexts.posts import POSTS
from prbench.data import suites
from prbench.models import load_model, schemes
from prbench.report import run_tables
from prbench.report.page import report_page
from prbench.results import METRICS, RunFolder, definitions, read_result, verify
from prbench.scorecard.config import ScorecardModelConfig
from prbench.train import TrainConfig, train
from prbench.types import CONTEXTS, Context, context_names
from small_suite import follows_posts, mirrored
from split_suite import write_suite

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "how-to"


def code(page: str, language: str) -> str:
    """The only block of a page in a language."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", (PAGES / page).read_text(encoding="utf-8"), re.M | re.S)
    assert len(blocks) == 1, f"{page} has {len(blocks)} blocks of {language}"
    return str(blocks[0])


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], Path]]:
    """Lay down a page's module and metadata as pip would; the fixture returns the folder they are in."""
    site, modules = tmp_path / "site", []

    def lay_down(page: str, module: str) -> Path:
        metadata = site / "toy-1.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
        groups = tomllib.loads(code(page, "toml"))["project"]["entry-points"]
        lines = [
            f"[{group}]\n" + "\n".join(f"{k} = {v}" for k, v in points.items()) for group, points in groups.items()
        ]
        (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")
        (site / f"{module}.py").write_text(code(page, "python"), encoding="utf-8")
        monkeypatch.syspath_prepend(str(site))
        modules.append(module)
        return site

    monkeypatch.setenv("PRBENCH_CACHE", str(tmp_path / "cache"))
    yield lay_down
    for module in modules:
        sys.modules.pop(module, None)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[str], dict[str, object]]]:
    """Run a page's script; what it puts into the tables is taken out again afterwards."""
    tables = (CONTEXTS, POSTS, METRICS)
    before = [dict(table) for table in tables]
    monkeypatch.setenv("PRBENCH_CACHE", str(tmp_path / "cache"))

    def run(page: str) -> dict[str, object]:
        file = tmp_path / "script.py"
        file.write_text(code(page, "python"), encoding="utf-8")
        return runpy.run_path(str(file))

    yield run
    for table, rows in zip(tables, before, strict=True):
        table.clear()
        table.update(rows)  # type: ignore[arg-type]


def test_a_model_of_an_installed_package(install):
    install("new-model.md", "my_prbench")
    assert "words" in schemes()
    found = evaluate(load_model("words:red"), mirrored(), contexts=["none", "profile"], resamples=100)
    assert found.model.address == "words:red"
    assert found.contexts["profile"].accuracy.value == 0.5  # half of the users like blue
    assert found.contexts["profile"].ties.value == 0


def test_a_suite_of_an_installed_package(install):
    site = install("new-suite.md", "my_suite")
    (site / "pairs.jsonl").write_text(code("new-suite.md", "json"), encoding="utf-8")
    assert "my-suite" in [suite.name for suite in suites()]
    found = evaluate(follows_posts, "my-suite", contexts=["none", "profile"], resamples=100)
    assert found.suite.counts.pairs == 2
    assert found.contexts["none"].accuracy.value == 0.5
    assert found.contexts["profile"].accuracy.value == 1


def test_a_method_of_an_installed_package_is_trained_saved_and_opened(install, tmp_path):
    install("new-method.md", "my_method")
    encoder = f"embed:{tiny_models.save_encoder(tmp_path / 'encoder')}"
    suite = write_suite(tmp_path / "suite.jsonl")
    options = TrainConfig(method="mean-post", settings={"rank": 4}, encoder=encoder, epochs=2, batch=8, shots=0)
    train(options, tmp_path / "model", suite=str(suite))
    assert json.loads((tmp_path / "model" / "personal.json").read_text())["settings"] == {"rank": 4}
    contexts = ["none", "profile", "opposite"]
    found = evaluate(f"personal:{tmp_path / 'model'}", suite, contexts=contexts, resamples=100)
    assert found.contexts["none"].ties.value == 1  # a stranger's reward is 0
    own, opposite = (found.contexts[name].accuracy.value for name in ("profile", "opposite"))
    assert found.contexts["profile"].ties.value == 0
    assert own is not None
    assert own + (opposite or 0) == pytest.approx(1)  # nothing but the posts decides


def test_a_context_is_a_row_in_two_tables(script, tmp_path):
    made = script("new-context.md")
    assert 0 <= made["found"].contexts["oldest@2"].accuracy.value <= 1
    pairs, shown = mirrored(), []

    def watches(question, answer, posts):
        shown.append(tuple(post.id for post in posts))
        return follows_posts(question, answer, posts)

    out = tmp_path / "run"
    found = evaluate(watches, pairs, contexts=["none", "oldest@2"], resamples=100, out=out)
    assert {posts for posts in shown if posts} == {tuple(p.id for p in pair.profile[:2]) for pair in pairs}
    assert found.contexts["oldest@2"].accuracy.value == 1
    assert not verify(out).mismatches
    # Everything that speaks of contexts knows it now.
    assert "oldest@K" in context_names()
    assert definitions()["oldest@k"].startswith("a context: the K oldest own posts. It tells whether")
    assert "the 2 oldest own posts" in report_page([out], with_texts=False)
    assert ScorecardModelConfig(address="longer", context="oldest@2").label == "longer · oldest@2"


def test_the_added_context_is_gone_after_its_test():
    assert "oldest" not in CONTEXTS
    assert "oldest" not in POSTS


def test_a_metric_is_a_row_in_one_table(script, tmp_path):
    made = script("new-metric.md")
    assert made["found"].contexts["none"].metrics["shorter chosen"].value < 0.2  # `longer` counts characters, not words
    out = tmp_path / "run"
    answers = [{"chosen": chosen, "rejected": "Some milk.", "tags": {}} for chosen in ("Tea.", "A lot of black tea.")]
    pairs = [pair.model_copy(update=answers[place % 2]) for place, pair in enumerate(mirrored())]
    found = evaluate(
        lambda question, answer: float(answer != "Some milk."), pairs, contexts=["none"], resamples=100, out=out
    )
    metric = found.contexts["none"].metrics["shorter chosen"]
    assert (metric.value, metric.n) == (1, len(pairs) // 2)
    stored = json.loads((out / "result.json").read_text())["result"]["contexts"]["none"]["metrics"]
    assert stored["shorter chosen"]["n"] == len(pairs) // 2
    assert not verify(out).mismatches
    checks = next(table for table in run_tables(read_result(RunFolder(out))) if table.title == "Checks")
    assert checks.columns[-1] == "shorter chosen"
    assert checks.rows[0][-1].startswith("100.0 [")
    assert definitions()["shorter chosen"] == "accuracy on pairs whose chosen answer has fewer words"
    data = json.loads((out / "result.json").read_text())
    data["result"]["contexts"]["none"]["metrics"]["shorter chosen"]["value"] = 0.9
    (out / "result.json").write_text(json.dumps(data))
    wrong = "/result/contexts/none/metrics/shorter chosen/value"
    assert [mismatch.place for mismatch in verify(out).mismatches] == [wrong]


def test_a_metric_that_is_newer_than_a_run_is_not_missed(script, tmp_path):
    script("new-metric.md")
    shutil.copytree(ROOT / "tests" / "results" / "golden" / "rater", tmp_path / "old")
    assert not verify(tmp_path / "old").mismatches


def test_every_context_has_its_posts_and_its_row_in_the_docs():
    assert CONTEXTS.keys() == POSTS.keys()
    page = (ROOT / "docs" / "evaluate.md").read_text(encoding="utf-8")
    for written, kind in zip(context_names(), CONTEXTS.values(), strict=True):
        assert f"| `{written}` | {kind.shows.format('K')} | {kind.tells} |" in page


def test_the_pages_count_files_that_exist():
    for page, most in (("new-context.md", 5), ("new-metric.md", 4)):
        files = re.findall(r"^\| `([\w/.-]+)` \|", (PAGES / page).read_text(encoding="utf-8"), re.M)
        assert len(files) == most
        assert not [file for file in files if "NAME" not in file and not (ROOT / file).is_file()]


def test_a_context_without_its_own_user_is_no_row_of_a_scorecard():
    assert [name for name, kind in CONTEXTS.items() if not kind.own] == ["none", "other", "opposite"]
    with pytest.raises(ValueError, match=r"the user: profile, retrieved@K, .*, plan, profile\+plan or oracle"):
        ScorecardModelConfig(address="longer", context="other")
    assert Context.parse("oracle").leaks
