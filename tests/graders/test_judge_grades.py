"""What a judge is asked and answers: gradings, grades, keys; what it shares with a ranked model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pair_factory import make_pair
from prbench.errors import AddressError, ConfigError, DataError
from prbench.graders import Grade, Grading, load_judge, rubric_tags, shares
from prbench.models import ModelCard
from prbench.types import Aspect

ASPECT = Aspect(aspect="Short", reason="Reads on the bus")


class Named:
    """A judge of which only the card matters."""

    def __init__(self, **card):
        self.card = ModelCard(**{"address": "lm:a", **card})


def test_the_score_is_the_mean_over_the_aspects():
    assert Grade.given([2, 2, 2]).score == 2.0
    assert Grade.given([2, 1, 2]).score == 5 / 3


@pytest.mark.parametrize("make", [Grade.invalid, Grade.failed])
def test_a_grade_that_is_not_there_is_no_zero(make):
    grade = make("no list")
    assert grade.score is None
    assert grade.aspects == ()


@pytest.mark.parametrize("values", [(2.1,), (-0.1,), (float("nan"),), (1.0, float("inf")), ()])
def test_numbers_off_the_scale_are_no_grade(values):
    with pytest.raises(ValidationError):
        Grade.given(values)


def test_numbers_without_ok_are_refused():
    with pytest.raises(ValidationError, match="invalid"):
        Grade(status="invalid", aspects=(0.0,))


@given(st.lists(st.floats(0, 2), min_size=1, max_size=8))
def test_grades_survive_the_disk(values):
    grade = Grade.given(values, raw="x", tokens_in=3)
    assert Grade.model_validate_json(grade.model_dump_json()) == grade
    assert 0 <= grade.score <= 2


def test_gradings_are_equal_where_a_judge_sees_no_difference():
    one = Grading("Tea?", "Green.", (ASPECT,), {"axis": "length", "pole": "short", "mirror": "m1"})
    same = Grading("Tea?", "Green.", (ASPECT,), {"axis": "length", "pole": "short", "mirror": "m2"})
    other = Grading("Tea?", "Green.", (ASPECT,), {"axis": "length", "pole": "long"})
    assert one == same
    assert len({one, same, other}) == 2
    assert one.key(Named()) == same.key(Named()) != other.key(Named())


@pytest.mark.parametrize(
    "changed",
    [
        Grading("Tee?", "Green.", (ASPECT,)),
        Grading("Tea?", "Black.", (ASPECT,)),
        Grading("Tea?", "Green.", (ASPECT, ASPECT)),
        Grading("Tea?", "Green.", (ASPECT.model_copy(update={"reason": "Has no time"}),)),
        Grading("Tea?", "Green.", (ASPECT,), {"axis": "length", "pole": "short"}),
    ],
)
def test_the_key_changes_with_all_that_could_change_a_grade(changed):
    assert Grading("Tea?", "Green.", (ASPECT,)).key(Named()) != changed.key(Named())


def test_the_key_is_of_the_judge_too_and_stable():
    grading = Grading("Tea?", "Green.", (ASPECT,))
    keys = {
        grading.key(Named(**card)) for card in ({}, {"address": "lm:b"}, {"revision": "1"}, {"parameters": {"a": 1}})
    }
    assert len(keys) == 4
    assert grading.key(Named()) == "2c7704c0507dc98714b3c10714e036b8"  # a kept study must find its calls again


def pair(name, axis, pole, **changes):
    answers = {"user": "ann", "question": "Tea?", "chosen": "Green.", "rejected": "Black."}
    return make_pair(name, tags={"axis": axis, "pole": pole, "split": "test"}, **{**answers, **changes})


def test_tags_of_the_whole_rubric_join_all_pairs_of_a_user_and_question():
    found = rubric_tags(
        [pair("1", "a", "x"), pair("2", "b", "y"), pair("3", "a+b", "x+y"), pair("4", "c", "z", user="bob")]
    )
    assert {found[name]["axis"] for name in "123"} == {"a+b"}
    assert found["3"]["pole"] == "x+y"
    assert found["1"]["split"] == "test"
    assert found["4"]["axis"] == "c"


def test_a_user_who_wants_both_poles_is_refused():
    with pytest.raises(DataError, match="both poles of axis 'a'"):
        rubric_tags([pair("1", "a", "x"), pair("2", "a", "y")])


def test_more_axes_than_poles_are_refused():
    with pytest.raises(DataError, match="not equally many parts"):
        rubric_tags([pair("1", "a+b", "x")])


@pytest.mark.parametrize(
    ("judge", "model", "common"),
    [
        ({"address": "lm:a#plain"}, {"address": "lm:a#rate"}, "the model 'a'"),
        ({"address": "stances:lm:a"}, {"address": "lm:a#pmi"}, "the model 'a'"),
        (
            {"address": "stances:embed:m#passages"},
            {"address": "personal:d", "parameters": {"encoder": "embed:m#stances"}},
            "the model 'm'",
        ),
        ({"address": "lm:b"}, {"address": "dpo:b,c"}, "the model 'b'"),
        (
            {"address": "lm:b", "revision": "abc"},
            {"address": "lm:/elsewhere", "revision": "abc"},
            "weights of revision 'abc'",
        ),
        (
            {"address": "stances:lm:b", "parameters": {"encoder_revision": "abc"}},
            {"address": "hf:c", "revision": "abc"},
            "weights of revision 'abc'",
        ),
        ({"address": "chat:j@http://a/v1"}, {"address": "chat:j@http://a/v1#rate"}, "the model 'j'"),
        ({"address": "stances:tfidf"}, {"address": "personal:d", "parameters": {"encoder": "embed:minilm"}}, None),
        ({"address": "lm:a"}, {"address": "lm:b"}, None),
        ({"address": "stances:tfidf"}, {"address": "longer"}, None),
        (
            {"address": "stances:embed:minilm"},
            {"address": "personal:d", "parameters": {"encoder": "encoder#stances"}},
            "perhaps the encoder that 'personal:d' was tuned from",
        ),
        ({"address": "stances:tfidf"}, {"address": "personal:d", "parameters": {"encoder": "encoder#stances"}}, None),
    ],
)
def test_what_a_judge_shares_with_a_ranked_model_is_named(judge, model, common):
    assert shares(ModelCard(**judge), ModelCard(**model)) == common


def test_one_file_under_two_spellings_is_one_model(tmp_path, monkeypatch):
    (tmp_path / "a.gguf").touch()
    monkeypatch.chdir(tmp_path)
    found = shares(ModelCard(address="lm:a.gguf"), ModelCard(address=f"lm:{tmp_path}/a.gguf#rate"))
    assert found is not None
    assert "a.gguf" in found


@pytest.mark.parametrize(
    ("address", "error", "words"),
    [
        ("stance:tfidf", AddressError, "did you mean 'stances'"),
        ("stances:", AddressError, "names no encoder"),
        ("stances:words", AddressError, "names no encoder"),
        ("stances:tfidf", ConfigError, "no labelled answers"),
        ("lm:", AddressError, "names no model"),
        ("lm:a#vote", AddressError, "known: plain, contrast"),
        ("chat:", AddressError, "names no model"),
    ],
)
def test_a_judge_that_cannot_be_opened_is_refused_with_a_way_out(address, error, words):
    with pytest.raises(error, match=words):
        load_judge(address)
