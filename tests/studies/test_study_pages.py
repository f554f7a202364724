"""Studies on a page and on the command line."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from prbench.cli import app
from prbench.data import write_pairs
from prbench.errors import StudyError
from prbench.models import BASELINES
from prbench.show.charts.gains import gain_histogram
from prbench.show.charts.lines import ChartLine, LinePoint, line_chart
from prbench.studies.best_of_n import BestOfNConfig, best_of_n, parse_model, read_settings
from prbench.studies.best_of_n.section import best_of_n_section
from prbench.studies.sections import study_page, study_section
from study_world import HashJudge, Scribe, world

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    models = ["longer", "py:small_suite:follows_posts", "noised-oracle:0.5"]
    values = {
        "policy": "scribe",
        "n": 4,
        "judge_pairs": 24,
        "resamples": 100,
        "models": [*map(parse_model, models), {"address": "shorter", "label": "<b>short & sweet</b>"}],
    }
    best_of_n(
        BestOfNConfig.of(**values), folder, suite=world(), policy=Scribe(), judge=HashJudge(), say=lambda line: None
    )
    return folder


def test_a_page_of_studies_is_one_strict_file_with_a_chart_for_every_model(study):
    page = study_page([study])
    assert page.count('<svg class="chart"') == 4 * 3
    assert "default-src &#39;none&#39;" in page
    assert not re.search(r'\b(src|href)="(?!#|data:)', page)
    assert "style=" not in page
    assert "<b>short" not in page
    assert "&lt;b&gt;short &amp; sweet" in page


def test_every_curve_stands_beside_the_table_of_its_numbers(study):
    body = str(best_of_n_section(study).body)
    curves = json.loads((study / "curves.json").read_text())
    end = curves["models"]["noised-oracle:0.5"]["points"][3]["true"]
    assert f"{end['value']:.3f} [{end['low']:.3f}, {end['high']:.3f}]" in body
    assert body.count("<details") == 3
    assert "over-optimised" in body


def test_rounding_in_a_file_is_neither_over_optimisation_nor_gain(study, tmp_path):
    curves = json.loads((study / "curves.json").read_text())
    for model in curves["models"].values():
        model["over_optimisation"]["drop"] = {"value": 5.6e-17, "low": 5.6e-17, "high": 5.6e-17, "n": 8}
        model["users"] = {user: {"gain": 5.6e-17, "items": 1} for user in model["users"]}
    (tmp_path / "curves.json").write_text(json.dumps(curves))
    body = str(best_of_n_section(tmp_path).body)
    assert body.count("not shown") == len(curves["models"])
    assert "yes" not in body
    assert f"0 of {len(model['users'])}" in body


def test_several_studies_on_one_page_have_anchors_of_their_own(study):
    page = study_page([study, study])
    assert 'id="best-of-n"' in page
    assert 'id="best-of-n1"' in page


def test_a_report_of_runs_shows_the_study_too(study, tmp_path):
    suite = write_pairs(list(world()), tmp_path / "small.jsonl")
    runner = CliRunner()
    run = tmp_path / "run"
    made = runner.invoke(app, ["run", "--suite", str(suite), "--model", "longer", "--context", "none", "-o", str(run)])
    assert made.exit_code == 0, made.output
    page = tmp_path / "page.html"
    shown = runner.invoke(app, ["report", str(run), "--study", str(study), "-o", str(page)])
    assert shown.exit_code == 0, shown.output
    assert 'id="best-of-n"' in page.read_text()
    alone = runner.invoke(app, ["study", "report", str(study), "-o", str(tmp_path / "alone.html")])
    assert alone.exit_code == 0, alone.output
    assert "needs no network" in alone.output


def test_what_is_no_study_is_refused(tmp_path):
    with pytest.raises(StudyError, match="there is no study"):
        study_section(tmp_path)
    (tmp_path / "study.json").write_text("{}")
    with pytest.raises(StudyError, match="is damaged"):
        study_section(tmp_path)


def test_the_command_checks_the_machinery_on_the_suites_own_answers(tmp_path):
    suite = write_pairs(list(world(couples=4)), tmp_path / "small.jsonl")
    words = ["study", "best-of-n", "--suite", str(suite), "--candidates", "suite", "--judge", "stances:tfidf"]
    words += ["--models", "longer", "py:small_suite:follows_posts", "noised-oracle:0", "--judge-pairs", "24"]
    words += ["--resamples", "100", "-o", str(tmp_path / "study")]
    shown = CliRunner().invoke(app, words)
    assert shown.exit_code == 0, shown.output
    assert "Best of 2" in shown.output
    assert "never a correlation" in shown.output
    assert (tmp_path / "study" / "study.json").is_file()


def test_the_command_refuses_k_beyond_n(tmp_path):
    words = ["study", "best-of-n", "--policy", "lm:x", "--n", "4", "--k", "8", "-o", str(tmp_path)]
    shown = CliRunner().invoke(app, words)
    assert shown.exit_code != 0
    assert "best of 8 needs 8 candidates, there are 4" in str(shown.exception) + shown.output


def test_the_settings_of_the_committed_study_are_sound():
    settings = BestOfNConfig.of(**read_settings(ROOT / "studies" / "downstream.toml"))
    ranked = [model for model in settings.models if model.noise is None]
    assert len(ranked) >= 12
    reading = [model for model in ranked if model.context != "none" and model.address not in BASELINES]
    assert len(reading) >= 8
    assert settings.endpoint == settings.n == 16


def test_lines_say_in_words_what_they_show():
    line = ChartLine("true score", [LinePoint(1, 1.0, 0.9, 1.1), LinePoint(16, 1.5, 1.4, 1.6)])
    drawn = str(line_chart("tea", [line], across="k", what="True score", logarithmic=True))
    assert "true score from 1.00 at 1 to 1.50 at 16" in drawn
    assert drawn.count('class="band"') == 1
    assert [f">{tick}<" in drawn for tick in (1, 2, 4, 8, 16)] == [True] * 5
    assert "nothing to show" in line_chart("tea", [], across="k", what="True score")


def test_losers_are_drawn_hollow():
    drawn = str(gain_histogram("tea", [-0.5, 0.5, 0.5], reach=0.5))
    assert drawn.count('class="mark hollow"') == 1
    assert drawn.count('class="mark"') == 1
    assert "2 of 3 users gain, mean +0.167; from -0.500 to +0.500." in drawn
