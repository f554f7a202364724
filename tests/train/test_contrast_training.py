"""Training of `contrast`: what it learns from, the same weights for the same seed, and spoilt answers by rule."""

from pathlib import Path

import pytest

import tiny_models
from pair_factory import make_pair
from prbench.data.passages import load_forms
from prbench.errors import ConfigError, DataError, RunError
from prbench.models.personal import artifact
from prbench.train.contrast import ContrastConfig, train_contrast
from prbench.train.contrast_fit import aspect_lines
from prbench.train.stance_labels import Axes, Stance, stated
from prbench.train.unsound import shortened, unsound
from prbench.types import Aspect, Pair
from split_suite import split_pairs, write_suite

AXES = Axes({"tea": {"blue", "green"}, "food": {"red", "white"}})


def pair(axis: str, pole: str, *aspects: str) -> Pair:
    return make_pair(
        id=axis,
        user="ann",
        question="Tea?",
        chosen="Blue.",
        rejected="Green.",
        rubric_aspects=tuple(Aspect(aspect=text) for text in aspects),
        tags={"axis": axis, "pole": pole},
    )


def test_an_aspect_belongs_to_an_axis_only_where_that_is_certain() -> None:
    both, one = pair("tea+food", "blue+red", "Wants blue", "Wants red"), pair("food", "red", "Wants blue", "Wants red")
    assert [stance for stance, _ in stated(both, AXES)] == [Stance("tea", -1), Stance("food", -1)]
    assert stated(one, AXES) == [], "both answers are blue: the first aspect does not decide, and nothing says so"
    lines = aspect_lines([both, one], AXES)
    assert lines == {
        "Wants blue": Stance("tea", -1),
        "Wants red": Stance("food", -1),
    }


def test_spoilt_answers_are_of_every_kind_and_the_same_for_a_seed() -> None:
    pairs = split_pairs("train")
    made = list(unsound(pairs, 0))
    assert made == list(unsound(pairs, 0))
    assert made != list(unsound(pairs, 1))
    answers = {text for one in pairs for text in (one.chosen, one.rejected)}
    assert all(one.sound in answers for one in made)
    assert any(not any(map(str.isalnum, one.spoilt)) for one in made), "nothing but marks"
    assert any(one.spoilt == one.question for one in made)
    assert any(one.spoilt in one.posts for one in made), "pasted from the profile"
    assert any(one.spoilt in answers and one.sound != one.spoilt for one in made), "off the subject"
    shorter = {shortened(text) for text in answers} - answers
    assert any(one.spoilt in shorter for one in made) == bool(shorter), "off the subject and short"


def test_other_forms_are_spoilt_too_and_what_no_rule_changed_is_left_out() -> None:
    pairs = split_pairs("train")
    forms = [("Butter or oil?", "Butter"), ("Name two.", "Ann\nBob\nand so on for a while")]
    made = [one for one in unsound(pairs, 0, forms) if one.question in dict(forms)]
    assert {one.question for one in made} == set(dict(forms))
    assert not any(one.spoilt == dict(forms)[one.question] for one in made)
    assert any(one.spoilt in dict(forms).values() for one in made), "an answer to the other question"
    assert list(unsound((), 0, forms[:1])) == [one for one in unsound((), 0, forms[:1]) if one.spoilt != "Butter"]


def test_a_held_out_answer_of_one_word_does_not_stand_against_the_forms_that_ship(tmp_path: Path) -> None:
    base = tiny_models.save_encoder(tmp_path / "base")
    assert "Adverb" in {answer for _, answer in load_forms()}
    held, word = split_pairs("validation"), "Adverb."
    long = held[0].chosen
    held = [one.model_copy(update={"chosen": word}) if one.chosen == long else one for one in held]
    held = [one.model_copy(update={"rejected": word}) if one.rejected == long else one for one in held]
    suite = str(write_suite(tmp_path / "suite.jsonl", [*split_pairs("train"), *held]))
    options = ContrastConfig(encoder=f"embed:{base}", also="", folds=2)
    assert train_contrast(options, tmp_path / "model", suite=suite).training.extra_texts >= len(load_forms())


def test_a_suite_without_rubrics_is_learned_from_too(tmp_path: Path) -> None:
    base = tiny_models.save_encoder(tmp_path / "base")
    bare = [one.model_copy(update={"rubric_aspects": ()}) for one in split_pairs("train") + split_pairs("validation")]
    suite = str(write_suite(tmp_path / "suite.jsonl", bare))
    options = ContrastConfig(encoder=f"embed:{base}", also="", folds=2)
    assert train_contrast(options, tmp_path / "model", suite=suite).training.validation["accuracy"] > 0.5


def test_the_same_training_gives_the_same_weights_and_a_leak_is_refused(tmp_path: Path) -> None:
    base, suite = tiny_models.save_encoder(tmp_path / "base"), str(write_suite(tmp_path / "suite.jsonl"))
    options = ContrastConfig(encoder=f"embed:{base}", also="", folds=2)
    told: list[str] = []
    for name in ("one", "two"):
        record = train_contrast(options, tmp_path / name, suite=suite, tell=told.append)
    assert (tmp_path / "one" / "weights.safetensors").read_bytes() == (
        tmp_path / "two" / "weights.safetensors"
    ).read_bytes()
    assert 0 <= record.training.validation["accuracy"] <= 1
    assert record.training.extra_texts > 0
    assert any("gains" in line for line in told)
    other = tmp_path / "other"
    other.mkdir()
    artifact.save_record(other, record.model_copy(update={"method": "user-bt"}))
    with pytest.raises(RunError, match="another training, of user-bt"):
        train_contrast(options, other, suite=suite)
    leaking = [*split_pairs("train"), *split_pairs("validation")]
    leaking += [
        one.model_copy(update={"question": one.question.replace("test:", "train:")}) for one in split_pairs("test")
    ]
    with pytest.raises(DataError, match="in the training split too"):
        train_contrast(options, tmp_path / "leak", suite=str(write_suite(tmp_path / "leak.jsonl", leaking)))


@pytest.mark.parametrize(
    ("name", "address", "told"),
    [
        ("stances", "embed:{base}", "is no tuned encoder"),
        ("answers", "embed:{base}", "is no tuned encoder"),
    ],
)
def test_encoders_that_cannot_be_used_are_refused_before_anything_is_fitted(
    name: str, address: str, told: str, tmp_path: Path
) -> None:
    base, suite = tiny_models.save_encoder(tmp_path / "base"), str(write_suite(tmp_path / "suite.jsonl"))
    named = {"encoder": f"embed:{base}", name: address.format(base=base)}
    options = ContrastConfig.model_validate({"also": "", "folds": 2, **named})
    heard: list[str] = []
    with pytest.raises(ConfigError, match=told):
        train_contrast(options, tmp_path / "model", suite=suite, tell=heard.append)
    assert not heard
