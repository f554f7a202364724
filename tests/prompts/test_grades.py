"""Grades by a rubric: what is shown to a judge, and that nothing but one 0, 1 or 2 for each aspect is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prbench.prompts.grades import UnreadableReply, ask_grade, ask_grades, parse_grades
from prbench.types import Aspect

ASPECTS = (
    Aspect(aspect="Costs next to nothing", reason="Lives on a pension", evidence="“I count every coin”"),
    Aspect(aspect="Numbered steps", reason="Ticks off what is done"),
    Aspect(aspect="A kind word", evidence="c01a-03, c01a-12"),
)


def test_a_list_of_twos_is_the_best_grade_and_a_one_costs_a_third():
    assert parse_grades("[2,2,2]", 3) == (2, 2, 2)
    assert parse_grades("[2,1,2]", 3) == (2, 1, 2)


@given(st.lists(st.sampled_from([0, 1, 2]), min_size=1, max_size=12))
def test_every_list_of_grades_is_read_as_it_stands(grades):
    assert parse_grades(f"Reason.\nGrades: {grades}", len(grades)) == tuple(grades)
    assert parse_grades("\n".join(f"{place}: {grade}" for place, grade in enumerate(grades, 1)), len(grades)) == tuple(
        grades
    )


@pytest.mark.parametrize(
    "text",
    [
        "[2, 0]",
        "Grades: [2, 0]",
        "**Grades:** [2,0]",
        "It is cheap but slow.\n\nFinal grades: [ 2 , 0 ]",
        "```json\n[2, 0]\n```",
        "<think>[1, 1] perhaps</think>[2, 0]",
        "1: 2\n2: 0",
        "Cheap but slow.\n1. 2\n2. 0",
        "Grades: [2, 0]\nGrades: [2, 0]",
    ],
)
def test_spellings_of_the_same_grades(text):
    assert parse_grades(text, 2) == (2, 0)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty reply"),
        ("[2, 2, 2]", "3 grades for 2 aspects"),
        ("[2]", "1 grades for 2 aspects"),
        ("[]", "0 grades for 2 aspects"),
        ("[0.5, 2]", "'0.5' is not 0, 1 or 2"),
        ("[3, 2]", "'3' is not 0, 1 or 2"),
        ("[-1, 2]", "'-1' is not 0, 1 or 2"),
        ("[2.0, 2]", "'2.0' is not 0, 1 or 2"),
        ('["2", 2]', "is not 0, 1 or 2"),
        ("[2, null]", "'null' is not 0, 1 or 2"),
        ("[2, [1]]", "is not 0, 1 or 2"),
        ("[22, 2]", "is not 0, 1 or 2"),
        ("2 and 1", "not a list of grades"),
        ("2, 1", "not a list of grades"),
        ("The answer deserves [2, 1].", "not a list of grades"),
        ("I would say 2 for the first and 1 for the second.", "not a list of grades"),
        ("Grades: [2, 1]\nThat is all.", "not a list of grades"),
        ("Grades: [2, 1]\nGrades: [1, 2]", "contradict"),
        ("1: 2", "1 grades for 2 aspects"),
        ("1: 2\n2: 0\n3: 1", "3 grades for 2 aspects"),
        ("2: 2\n1: 0", "numbered 2, 1"),
        ("1: 2\nbut then\n2: 0", "do not stand together"),
        ("1: 2\n2: 3", "'3' is not 0, 1 or 2"),
        ("<think>[2, 1]", "reasoning does not end"),
    ],
)
def test_anything_else_is_unreadable_and_never_a_number(text, reason):
    found = parse_grades(text, 2)
    assert isinstance(found, UnreadableReply)
    assert reason in found.reason


@given(st.text(max_size=80), st.integers(1, 4))
def test_whatever_is_read_has_one_grade_for_each_aspect(text, count):
    found = parse_grades(text, count)
    assert isinstance(found, UnreadableReply) or (len(found) == count and set(found) <= {0, 1, 2})


def test_titles_stand_one_per_line_with_reason_and_evidence():
    text = ask_grades("How do I heat?", "With wood.", ASPECTS).messages[0].content
    lines = [line.strip() for line in text.splitlines()]
    for number, aspect in enumerate(ASPECTS, start=1):
        assert f"{number}. {aspect.aspect}" in lines
    assert "Why: Lives on a pension" in lines
    assert "Shown by: “I count every coin”" in lines
    assert "a list of 3 numbers" in text
    assert "How do I heat?" in lines
    assert "With wood." in lines


def test_ids_of_posts_are_no_evidence_for_a_judge_who_does_not_see_posts():
    assert "c01a-03" not in ask_grades("How?", "So.", ASPECTS).messages[0].content
    assert "c01a-03" not in ask_grade("How?", "So.", ASPECTS[2]).messages[0].content
    assert "count every coin" in ask_grade("How?", "So.", ASPECTS[0]).messages[0].content


def test_the_example_in_the_prompt_is_itself_readable():
    for count in range(1, 6):
        text = ask_grades("How?", "So.", ASPECTS[:1] * count).messages[0].content
        assert len(parse_grades(text.splitlines()[-1], count)) == count


def test_answers_to_one_question_begin_alike_up_to_the_answer():
    one, two = (ask_grades("How?", answer, ASPECTS).messages[0].content for answer in ("AAAA", "BBBB"))
    assert one.split("AAAA")[0] == two.split("BBBB")[0]
    assert len(one.split("AAAA")[0]) > len(one) / 2


def test_text_of_a_candidate_is_never_read_as_a_template():
    shown = ask_grade("{{ question }}", "{% raw %}{{ aspect }}", ASPECTS[0]).messages[0].content
    assert "{{ question }}" in shown
    assert "{% raw %}{{ aspect }}" in shown
