"""Candidates written under explicit poles, the truth that follows from them, and nonsense that is left out by rule."""

import pytest

from prbench import load_pairs
from prbench.errors import ConfigError
from prbench.studies import read_study
from prbench.studies.best_of_n import BestOfNConfig, best_of_n, best_of_n_tables, parse_model
from prbench.studies.best_of_n.candidates import read_candidates
from prbench.texts import nonsense
from prbench.types import Outcome
from study_world import HashJudge, Scribe, world

POLES = {"colour": {"red": "Recommend red things.", "blue": "Recommend blue things."}}


class Obedient(Scribe):
    """Writes what it is told, but for every fifth text, which says the opposite."""

    def _text(self, prompt, number, seed):
        asked = prompt.messages[-1].content
        told = "red" if "Recommend red" in asked else "blue"
        other = {"red": "blue", "blue": "red"}[told]
        return Outcome(status="ok", raw=f"Get the {other if number % 5 == 4 else told} one, number {number} of {seed}.")


class Babbling(Scribe):
    """Repeats itself in its first try."""

    def _text(self, prompt, number, seed):
        good = f"Take the red one with number {number}, it lasts."
        return Outcome(status="ok", raw="one two " * 20 if number == 0 and not seed else good)


def run(out, policy, **changes):
    values = {"policy": "scribe", "n": 10, "judge_pairs": 24, "resamples": 100, "poles": POLES}
    values["models"] = [parse_model("longer"), parse_model("py:small_suite:follows_posts")]
    settings = BestOfNConfig.of(**{**values, **changes})
    heard = []
    return best_of_n(settings, out, suite=world(), policy=policy, judge=HashJudge(), say=heard.append)


def test_each_candidate_keeps_the_pole_it_was_written_for_and_both_come_equally_often(tmp_path):
    found = run(tmp_path, Obedient())
    candidates = list(read_candidates(tmp_path / "candidates.jsonl").values())
    assert [one.poles["colour"] for one in candidates].count("red") == len(candidates) / 2
    assert {one.style for one in candidates} == {"colour=red", "colour=blue"}
    agreed = found.details.agreed
    assert 0.5 < agreed.value < 1  # every fifth text is disobedient
    assert "as their instructions do" in "\n".join(best_of_n_tables(found)[0].notes)


def test_the_instructed_truth_is_no_judges_and_mirrors(tmp_path):
    judged = run(tmp_path, Obedient())
    grades = (tmp_path / "grades.jsonl").read_text()
    found = run(tmp_path, Obedient(), truth="instructed")
    assert (tmp_path / "grades.jsonl").read_text() == grades
    assert found.judge.address == "instructed pole"
    assert found.judge.accuracy == judged.details.agreed
    assert found.lines.random[-1].value == pytest.approx(1)
    assert found.lines.oracle[-1].value == pytest.approx(2)
    assert found.models["longer"].points[-1].gain.value == pytest.approx(0, abs=1e-9)
    follows = found.models["py:small_suite:follows_posts"].points[-1]
    assert 0 < follows.gain.value < 1
    assert read_study(tmp_path).judge.address == "instructed pole"


def test_what_cannot_be_instructed_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="no instructions for the two poles of axis 'colour'"):
        run(tmp_path, Obedient(), poles={"colour": {"red": "Recommend red things."}})
    with pytest.raises(ConfigError, match="are needed for the instructed truth"):
        BestOfNConfig.of(**{"policy": "scribe", "truth": "instructed"})


def test_nonsense_is_drawn_again_where_that_is_asked(tmp_path):
    run(tmp_path / "kept", Babbling())
    run(tmp_path / "dropped", Babbling(), drop_nonsense=True)
    kept, dropped = (
        list(read_candidates(tmp_path / name / "candidates.jsonl").values()) for name in ("kept", "dropped")
    )
    assert any(nonsense(one.text) for one in kept)
    assert not any(nonsense(one.text) for one in dropped)
    assert any(one.attempt for one in dropped)


def test_no_answer_of_the_suite_is_nonsense():
    answers = {text for pair in load_pairs("mirror") for text in (pair.chosen, pair.rejected)}
    assert not [text for text in answers if nonsense(text)]
