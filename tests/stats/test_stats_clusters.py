"""Labels become codes; nesting decides what is resampled."""

import numpy as np
import pytest

from prbench.stats import Clusters


def test_crossed_labels_are_both_resampled():
    clusters = Clusters.of(users="aabb", questions="xyxy")
    assert not clusters.nested
    assert [codes.tolist() for codes in clusters.dimensions] == [[0, 0, 1, 1], [0, 1, 0, 1]]
    assert clusters.units == 2


@pytest.mark.parametrize(
    ("users", "questions", "resampled"),
    [
        ("aabb", "wxyz", [0, 0, 1, 1]),  # every question has one user: users are coarser
        ("abcd", "xxyy", [0, 0, 1, 1]),  # every user has one question: questions are coarser
        ("abcd", "wxyz", [0, 1, 2, 3]),  # both, as in the paper
        ("aabb", "wwzz", [0, 0, 1, 1]),  # the same with repeated rows
    ],
)
def test_nested_labels_leave_the_coarser_one(users, questions, resampled):
    clusters = Clusters.of(users, questions)
    assert clusters.nested
    assert clusters.dimensions[0].tolist() == resampled


def test_codes_do_not_depend_on_the_order_of_rows():
    users, questions = np.array(list("cabbac")), np.array(list("xyxzzy"))
    order = np.array([3, 1, 5, 0, 2, 4])
    straight = Clusters.of(users.tolist(), questions.tolist())
    shuffled = Clusters.of(users[order].tolist(), questions[order].tolist())
    assert shuffled.users.tolist() == straight.users[order].tolist()
    assert shuffled.cells.tolist() == straight.cells[order].tolist()


def test_taking_rows_closes_the_gaps():
    part = Clusters.of("abcc", "xyzx").take(np.array([2, 3]))
    assert part.users.tolist() == [0, 0]
    assert part.questions.tolist() == [1, 0]
    assert part.units == 1


def test_labels_of_different_length_are_refused():
    with pytest.raises(ValueError, match="2 users but 1 questions"):
        Clusters.of("ab", "x")


def test_no_rows_at_all():
    assert Clusters.of([], []).units == 0
