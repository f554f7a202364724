"""Runs of different size in one ranking: every two are compared on the pairs that both judged."""

import pytest

from pair_factory import make_pair
from prbench import evaluate
from prbench.errors import RunError
from prbench.report.page.evidence import read_runs
from prbench.report.page.ranking import RankingLine, ranked_lines
from prbench.results import load_run, standings


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A good and a poor model on sixty pairs, and the good one again on six."""
    folder = tmp_path_factory.mktemp("runs")
    pairs = [
        make_pair(
            id=f"{i}", user=f"u{i}", question=f"Which tea, {i}?", chosen=f"Green {i}.", rejected=f"Black tea {i}."
        )
        for i in range(60)
    ]
    models = {"good": lambda question, answer: -len(answer), "poor": lambda question, answer: len(answer)}
    for name, model in models.items():
        evaluate(model, pairs, contexts=["none"], split=None, out=folder / name, resamples=100)
    evaluate(models["good"], pairs[:6], contexts=["none"], split=None, out=folder / "small", resamples=100)
    return folder


def test_a_small_run_does_not_collapse_the_groups_of_the_others(runs):
    loaded = [load_run(runs / name) for name in ("good", "poor", "small")]
    places = {place.name: place for place in standings(loaded, "none")}
    letters = {name: set(places[str(runs / name)].letters) for name in ("good", "poor", "small")}
    assert not letters["good"] & letters["poor"]
    assert letters["small"] & letters["good"]
    assert places[str(runs / "poor")].worst_rank == 3
    assert places[str(runs / "good")].worst_rank == 2


def test_the_page_ranks_in_the_same_way(runs):
    evidence = read_runs([runs / name for name in ("good", "poor", "small")])
    lines = [
        RankingLine(entry.path.name, "none", entry.result.contexts["none"], entry.credits["none"])
        for entry in evidence.entries
    ]
    letters = {line.label: set(line.letters) for line in ranked_lines(lines)}
    assert not letters["good"] & letters["poor"]
    assert letters["small"] & letters["good"]


def test_a_run_without_a_common_pair_is_refused_by_name(runs, tmp_path):
    other = make_pair("x", user="x", question="Which bread?", chosen="Rye.", rejected="Wheat, please.")
    evaluate("longer", [other], contexts=["none"], split=None, out=tmp_path / "other")
    loaded = [load_run(path) for path in (runs / "good", runs / "poor", tmp_path / "other")]
    with pytest.raises(RunError, match=r"other' has no pair in common with the others"):
        standings(loaded, "none")
