"""The stance judge: learns poles from training answers, grades answers to other questions, refuses what is unknown."""

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import small_suite
import tiny_models
from pair_factory import make_pair
from prbench.data import load_pairs
from prbench.errors import AddressError, DataError
from prbench.graders import Grading, examine, load_judge
from prbench.graders.logistic import fit, minimise, sigmoid
from prbench.graders.stance_probe import StanceProbe, answer_examples
from prbench.models.ngrams import NGrams


def split(pairs, questions):
    """Training pairs about some topics, other pairs about the rest."""
    train = [pair for pair in pairs if any(topic in pair.question for topic in questions)]
    return train, [pair for pair in pairs if pair not in train]


TRAIN, HELD_OUT = split(small_suite.mirrored(couples=2, questions=10), small_suite.TOPICS[:6])


@pytest.fixture(scope="module")
def judge():
    return load_judge("stances:tfidf", training=TRAIN)


def grade_of(judge, answer, **tags):
    ((place, grade),) = judge.grade([Grading("Which?", answer, (), tags)])
    assert place == 0
    return grade


def test_it_learns_the_poles_and_not_the_topics(judge):
    found = examine(judge, HELD_OUT)
    assert found.accuracy.value == 1.0
    assert found.accuracy.n == len(HELD_OUT)
    assert found.missing == {}


def test_the_same_answer_is_worth_the_opposite_to_the_opposite_user(judge):
    red, blue = (grade_of(judge, "Take the red soup.", axis="colour", pole=pole) for pole in ("red", "blue"))
    assert red.score > 1.2
    assert red.score + blue.score == pytest.approx(2.0)


def test_an_answer_without_a_stance_is_worth_the_middle(judge):
    assert grade_of(judge, "Lorem ipsum.", axis="colour", pole="red").score == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(
    ("tags", "reason"),
    [
        ({"axis": "humour", "pole": "dry"}, "no training answers at pole 'dry' of axis 'humour'"),
        ({"axis": "colour+humour", "pole": "red+dry"}, "axis 'humour'"),
        ({"axis": "colour", "pole": "green"}, "pole 'green' of axis 'colour'"),
        ({}, "names no axis"),
    ],
)
def test_what_it_was_not_trained_on_is_invalid_and_never_a_number(judge, tags, reason):
    grade = grade_of(judge, "Take the red soup.", **tags)
    assert (grade.status, grade.score) == ("invalid", None)
    assert reason in grade.reason
    assert judge.refuses(Grading("Which?", "Take the red soup.", (), tags)) == grade.reason


def test_a_judge_is_never_examined_on_what_it_was_trained_on(judge):
    found = examine(judge, TRAIN)
    assert found.accuracy.value is None
    assert found.missing == {"the probe was trained on this answer": len(TRAIN)}


def test_an_empty_answer_is_invalid(judge):
    assert grade_of(judge, "  \n", axis="colour", pole="red").reason == "the answer is empty"


def test_pairs_that_cannot_be_graded_are_counted_and_left_out(judge):
    strange = [pair.model_copy(update={"tags": {**pair.tags, "axis": "humour"}}) for pair in HELD_OUT[:4]]
    found = examine(judge, [*strange, *HELD_OUT[8:]])
    assert sum(found.missing.values()) == 4
    assert found.accuracy.n == len(HELD_OUT) - 8
    assert all("humour" in reason for reason in found.missing)


def test_a_grade_does_not_depend_on_what_else_is_asked(judge):
    asked = [Grading.of(pair, pair.chosen) for pair in HELD_OUT]
    together = dict(judge.grade(asked))
    assert all(dict(judge.grade([one]))[0].aspects == together[place].aspects for place, one in enumerate(asked))


def test_the_card_changes_with_what_it_was_trained_on(judge):
    same, fewer = (
        load_judge("stances:tfidf", training=pairs)
        for pairs in (TRAIN[::-1], [pair for pair in TRAIN if "tea" in pair.question])
    )
    question = Grading("Which?", "Red.", (), {"axis": "colour", "pole": "red"})
    assert same.card == judge.card
    assert same.probe.sharpness == judge.probe.sharpness
    assert question.key(same) == question.key(judge) != question.key(fewer)
    assert judge.card.address == "stances:tfidf"
    assert judge.forecast([question]) == 0


def test_two_axes_give_two_numbers():
    pairs = [
        make_pair(
            id=f"{user}:{topic}:{colour}{size}",
            user=user,
            question=f"Which {topic}?",
            chosen=f"A {colour} {size} {topic}.",
            rejected=f"A {other} {size} {topic}." if axis == "colour" else f"A {colour} {opposite} {topic}.",
            tags={"axis": axis, "pole": colour if axis == "colour" else size},
        )
        for topic in small_suite.TOPICS
        for axis in ("colour", "size")
        for user, colour, other, size, opposite in (
            ("a", "red", "blue", "big", "tiny"),
            ("b", "blue", "red", "tiny", "big"),
        )
    ]
    judge = load_judge("stances:tfidf", training=pairs)
    grade = grade_of(judge, "A red tiny bus.", axis="colour+size", pole="red+big")
    assert grade.aspects[0] > 1.2
    assert grade.aspects[1] < 0.8
    assert grade.score == pytest.approx(sum(grade.aspects) / 2)


def test_the_embedded_suite_is_judged_well_above_chance_where_it_was_not_trained_and_refused_where_it_cannot_be():
    by_split = defaultdict(list)
    for pair in load_pairs("mirror"):
        by_split[pair.tags["split"]].append(pair)
    judge = load_judge("stances:tfidf", training=by_split["train"])
    assert examine(judge, by_split["validation"]).accuracy.low > 0.75
    unseen = [Grading.of(pair, pair.chosen) for pair in by_split["test"] if pair.tags["unseen"] == "yes"]
    assert unseen
    assert all(grade.status == "invalid" for _, grade in judge.grade(unseen))


def test_a_third_pole_is_refused():
    third = TRAIN[0].model_copy(update={"tags": {**TRAIN[0].tags, "pole": "green"}})
    with pytest.raises(DataError, match="axis 'colour' has the poles blue, green, red"):
        load_judge("stances:tfidf", training=[*TRAIN, third])


def test_hidden_states_of_a_language_model_can_be_the_encoder(tmp_path, monkeypatch):
    monkeypatch.setenv("PRBENCH_CACHE", str(tmp_path / "cache"))
    folder = tiny_models.save_causal_model(tmp_path / "lm", seed=1)
    judge = load_judge(f"stances:lm:{folder}", training=TRAIN)
    found = examine(judge, HELD_OUT)
    assert found.accuracy.n == len(HELD_OUT)
    assert found.accuracy.value > 0.6  # random weights, but red and blue are different tokens
    assert judge.card.parameters["encoder"] == f"lm:{folder}"
    assert judge.card.parameters["encoder_revision"]
    assert judge.forecast([Grading("Which?", "Red boots.", ())]) == 3


def test_an_encoder_that_does_not_embed_is_refused():
    with pytest.raises(AddressError, match="cannot embed"):
        load_judge("stances:chat:a@http://127.0.0.1:1/v1", training=TRAIN)


# ---- the pieces


def test_an_answer_shows_its_users_pole_and_the_rejected_one_the_opposite():
    examples = {(example.text, example.axis): example.pole for example in answer_examples(TRAIN)}
    assert examples["Get the red tea.", "colour"] == "red"
    assert examples["Get the blue tea.", "colour"] == "blue"
    assert len(examples) == 12  # six topics, two answers each, however many users meet them


def test_probabilities_of_a_probe_without_signal_are_one_half():
    pairs = [
        make_pair(
            id=f"{number}",
            user="ann",
            question=f"Question {number}?",
            chosen=f"word{(7 * number) % 5} one",
            rejected=f"word{(3 * number) % 5} two"
            if (7 * number) % 5 == (3 * number) % 5
            else f"word{(3 * number) % 5} one",
            tags={"axis": "a", "pole": "xy"[number % 2]},
        )
        for number in range(40)
    ]
    examples = answer_examples(pairs)
    probe = StanceProbe(examples, NGrams(example.text for example in examples))
    assert np.abs(probe.shares("a", "x", [f"word{number} one" for number in range(5)]) - 0.5).max() < 0.3


def test_logistic_regression_meets_its_conditions_for_a_minimum():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(40, 6))
    positive = features[:, 0] + rng.normal(size=40) > 0
    found = fit(features @ features.T, positive, penalty=0.7)
    weights = features.T @ found.weights
    residual = sigmoid(features @ weights + found.bias) - positive
    assert np.abs(features.T @ residual + 0.7 * weights).max() < 1e-4
    assert abs(residual.sum()) < 1e-4


@given(st.integers(1, 5), st.integers(0, 10**6), st.floats(0.01, 10))
def test_more_penalty_never_gives_longer_weights(width, seed, penalty):
    rng = np.random.default_rng(seed)
    features, labels = rng.normal(size=(12, width)), np.array([0.0, 1.0] * 6)
    loose, tight = (minimise(features, labels, np.full(width, value)) for value in (penalty, 2 * penalty))
    assert np.linalg.norm(tight) <= np.linalg.norm(loose) + 1e-6


def test_examples_of_one_kind_teach_nothing():
    with pytest.raises(ValueError, match="all 2 examples are of one kind"):
        fit(np.eye(2), np.array([True, True]), penalty=1.0)


@given(st.lists(st.text(max_size=30), min_size=1, max_size=6))
def test_rows_have_length_one_or_none(texts):
    rows = NGrams([*texts, *texts, "known words", "words known"]).rows(texts).toarray()
    assert all(math.isclose(norm, 1.0) or norm == 0 for norm in np.linalg.norm(rows, axis=1))


def test_numbers_are_one_term_whatever_their_digits():
    grams = NGrams(["pay 3.50 now", "pay 12 now"])
    one, two = grams.rows(["pay 7", "pay 1,000"]).toarray()
    assert (one == two).all()
