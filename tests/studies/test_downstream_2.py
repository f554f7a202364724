"""The second downstream study: its ladder's rule, its arms, its plan; and its steps on a tiny suite."""

import json
import tomllib
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import downstream_2
import ladder
import pytest
import steps
from best_of_four import best_of_four
from downstream_page import write_pages
from ladder import Rung, choose, told
from on_policy import on_policy_pairs

from prbench import load_pairs
from prbench.data import Suite
from prbench.studies.benchmark import earned, read_benchmarks
from prbench.studies.best_of_n import BestOfNConfig
from prbench.studies.best_of_n.candidates import Candidate
from prbench.studies.best_of_n.items import split_pairs, study_items
from study_world import world

PLAN = tomllib.loads((Path(__file__).parents[2] / "studies" / "downstream-2.toml").read_text("utf-8"))


def test_the_ladder_keeps_at_most_a_quarter_near_chance_and_every_lineage():
    far = [Rung(f"far {number}", "profile", "one", 55.0 + 2 * number) for number in range(9)]
    near = [Rung(f"near {number}", "profile", "two" if number else "three", 49.0 + number / 4) for number in range(8)]
    kept = choose([*near, *far])
    assert [one for one in kept if not one.near] == far
    assert sum(one.near for one in kept) == 3
    assert {one.lineage for one in kept} == {"one", "two", "three"}
    assert kept == sorted(kept, key=lambda one: one.accuracy) == choose([*far, *near])
    assert 50.0 not in [one.accuracy for one in kept]  # the nearest to chance go first
    lines = told(kept, PLAN)
    assert "12 models of 3 lineages, 49.0 to 71.0 %" in lines[-3]
    assert lines[-2].startswith("not as wanted")
    assert "a true ρ of .9 would be seen with" in lines[-1]


def test_the_plan_has_a_ladder_of_many_lineages_and_instructions_for_every_axis():
    entered = ladder.entered(PLAN, Path("runs/x"))
    assert len(entered) == len(set(entered)) >= 30
    assert len({lineage for _, _, lineage in entered}) >= 6
    axes = {axis: set() for pair in load_pairs("mirror") for axis in pair.stances}
    for pair in load_pairs("mirror"):
        for axis, pole in pair.stances.items():
            axes[axis].add(pole)
    assert {axis: set(poles) for axis, poles in PLAN["study"]["poles"].items()} == axes
    assert PLAN["study"]["reserve"] == PLAN["reserve"]


def test_the_study_files_are_what_best_of_n_reads(tmp_path, monkeypatch):
    monkeypatch.setattr(downstream_2, "ROOT", tmp_path)
    (tmp_path / "work").mkdir()
    rungs = [Rung("longer", "none", "a", 50.0), Rung("lm:smollm2#rate", "profile", "b", 51.0)]
    (tmp_path / "work" / "models.toml").write_text(ladder.as_toml(rungs), "utf-8")
    place = downstream_2.Place(PLAN, Path("work"), "lm:smollm2")
    for kind, slow in (("styles", False), ("poles", False), ("styles", True)):
        file = downstream_2.study_file(place, kind, slow=slow)
        found = BestOfNConfig.of(**tomllib.loads((tmp_path / file).read_text("utf-8")))
        assert bool(found.poles) == (kind == "poles")
        assert found.limit == (PLAN["slow_pairs"] if slow else None)
        assert ("lm:smollm2#rate" in [one.address for one in found.models]) == slow
        assert found.models[0].lineage == "a"
        assert found.reserve == PLAN["reserve"]


def test_on_policy_pairs_mirror_and_have_their_margin():
    items = [item for item in study_items(split_pairs(world(), "test")) if item.unit == "c0"]
    texts = {"a": "Get the red one.", "b": "Get the blue one.", "c": "Get any of them."}
    candidates = {
        key: Candidate(key=key, text=text, poles={"colour": "red" if key == "a" else "blue"})
        for key, text in texts.items()
    }
    worth = {"a": 1.9, "b": 0.2, "c": 1.0}
    grades = {
        (item.id, key): value if item.tags["pole"] == "red" else 2 - value
        for item in items
        for key, value in worth.items()
    }
    made = on_policy_pairs(items, candidates, grades, 0.5)
    assert len(made) == len(items)
    assert Suite.of(made).is_mirrored
    for pair in made:
        assert ("red" in pair.chosen) == (pair.tags["pole"] == "red")
        assert {pair.chosen, pair.rejected} == {texts["a"], texts["b"]}
        assert pair.profile
    assert on_policy_pairs(items, candidates, grades, 1.8) == []
    candidates["a"] = candidates["a"].model_copy(update={"poles": {"colour": "blue"}})
    candidates["b"] = candidates["b"].model_copy(update={"poles": {"colour": "red"}})
    disobedient = on_policy_pairs(items, candidates, grades, 1.0)
    assert disobedient == []  # judge and instruction contradict each other


def test_best_of_four_counts_a_row_once(tmp_path, monkeypatch):
    from prbench import evaluate
    from prbench.data import write_pairs
    from prbench.studies.benchmark import Wanted

    pairs = best_of_four(list(load_pairs("generic", split="test")))
    assert len(pairs) == 3 * 60
    assert all(pair.chosen != pair.rejected for pair in pairs)
    file = write_pairs(pairs, tmp_path / "four.jsonl")
    for name in ("longer", "overlap"):
        evaluate(name, file, contexts=["none"], resamples=100, out=tmp_path / "runs" / name, cache=False)
    (benchmark,) = read_benchmarks([tmp_path / "runs"])
    found = earned(benchmark, [Wanted("longer", "none"), Wanted("overlap", "none")])
    assert found.items.scores.shape == (2, 60)
    per_pair = benchmark.runs["longer"].result.contexts["none"].accuracy.value
    assert 0 < found.items.means[0] < per_pair


@pytest.mark.parametrize("name", list(downstream_2.STEPS))
def test_every_step_is_made_of_commands(name, tmp_path, monkeypatch):
    """Commands are only noted down here, so that nothing is trained."""
    asked = []
    monkeypatch.setattr(steps, "ROOT", tmp_path)
    monkeypatch.setattr(downstream_2, "ROOT", tmp_path)
    monkeypatch.setattr(ladder, "ROOT", tmp_path)
    monkeypatch.setattr(downstream_2, "prbench", lambda *words, keep=None: asked.append(list(map(str, words))))
    monkeypatch.setattr(downstream_2, "script", lambda *words: asked.append(list(map(str, words))))
    monkeypatch.setattr(downstream_2.shutil, "copy", lambda *words: None)
    monkeypatch.setattr(downstream_2, "make_ladder", lambda plan, work: asked.append(["ladder"]))
    monkeypatch.setattr(downstream_2, "write_pages", lambda folder, page: asked.append([str(page)]) or [page])
    (tmp_path / "work").mkdir()
    _found(tmp_path / "work" / "lm_smollm2" / "ppo", low=0.01)
    rungs = [Rung("longer", "none", "a", 50.0), Rung("personal:x", "profile", "b", 61.0)]
    (tmp_path / "work" / "models.toml").write_text(ladder.as_toml(rungs), "utf-8")
    downstream_2.STEPS[name](downstream_2.Place(PLAN, Path("work"), "lm:smollm2"))
    assert asked
    if name in ("ladder", "candidates", "scores"):
        assert not any("best-of-n" in words and "--until" not in words for words in asked)  # nothing is graded yet
    if name == "ppo":
        assert "noised-oracle:0" in asked[0]
        assert sum("profile=personal:x" in words for words in asked) == PLAN["ppo_seeds"] + 1
        _found(tmp_path / "work" / "lm_smollm2" / "ppo", low=-0.07)
        asked.clear()
        downstream_2.ppo(downstream_2.Place(PLAN, Path("work"), "lm:smollm2"))
        assert len(asked) == 1  # with a true score that raises nothing no rung is trained


def _found(folder, low):
    """A finished PPO study with the true score as its reward."""
    folder.mkdir(parents=True, exist_ok=True)
    gain = {"value": low + 0.06, "low": low, "high": low + 0.12}
    (folder / "study.json").write_text(json.dumps({"models": {"noised-oracle:0": {"details": {"gain": gain}}}}))


def test_the_page_has_the_tables_that_are_there_and_a_drawing(tmp_path):
    models = [
        {"name": "personal:runs/x/contrast<b>", "context": "profile", "benchmark": 0.7, "downstream": 1.04},
        {"name": "embed:minilm", "context": "profile", "benchmark": 0.51, "downstream": 0.99},
        {"name": "longer", "context": "none", "benchmark": 0.5, "downstream": 1.0},
    ]
    (tmp_path / "correlate-endpoint.json").write_text(json.dumps({"studies": [{"models": models}]}), "utf-8")
    (tmp_path / "best-of-16.md").write_text("| model |\n", "utf-8")
    page, drawing = write_pages(tmp_path, tmp_path / "tables.md")
    assert page.read_text("utf-8").endswith("\n## Best of 16\n| model |\n")
    root = ElementTree.fromstring(drawing.read_text("utf-8"))
    told = [title.text for title in root.iter("{http://www.w3.org/2000/svg}title")]
    assert told == ["contrast<b>: 70.0 %, +0.040", "embed:minilm: 51.0 %, -0.010"]
