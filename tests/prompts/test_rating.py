"""Ratings are read from one place, on the scale that was asked for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prbench.prompts import UnreadableReply, parse_rating

READ = [
    ("Rating: 7", 7.0),
    ("Rating: 7/10", 7.0),
    ("Rating: 7 / 10", 7.0),
    ("Rating: 7 out of 10", 7.0),
    ("Rating: 7.5", 7.5),
    ("Rating: 7.", 7.0),
    ("Rating: 10", 10.0),
    ("Rating: 1", 1.0),
    ("rating：[[7]]", 7.0),
    ("**Rating:** 7", 7.0),
    ("[[7]]", 7.0),
    ("7", 7.0),
    ("7/10", 7.0),
    ("I would say 3 of 5 points are met.\nRating: 6", 6.0),
    ("Rating: 6\nChecked.\nRating: 6.0", 6.0),
    ("<think>Rating: 2</think>Rating: 9", 9.0),
    ("Rating: 7\nHope this helps!", 7.0),
    ('{"reasoning": "fits", "rating": 7.5}', 7.5),
    ("\\boxed{7}", 7.0),
]

REFUSED = [
    ("", "empty"),
    ("Rating: 11", "between 1 and 10"),
    ("Rating: 0", "between 1 and 10"),
    ("Rating: -3", "between 1 and 10"),
    ("-3", "between 1 and 10"),
    ("Rating: .5", "one number"),
    ("Rating: 10.01", "between 1 and 10"),
    ("Rating: 4/5", "scale"),
    ("Rating: 7 or 8", "one number"),
    ("Rating: 7-8", "one number"),
    ("Rating: <10", "one number"),
    ("Rating: 7,5", "one number"),
    ("Rating: 1e1", "one number"),
    ("Rating: nan", "one number"),
    ("Rating: inf", "one number"),
    ("Rating: ７", "one number"),
    ("Rating: seven", "one number"),
    ("Rating: N", "one number"),
    ("Rating: 7 (good)", "one number"),
    ("between 7 and 8", "one number"),
    ("It deserves a solid 7 for its warmth", "not a rating line"),
    ("Rating: 7\nRating: 8", "contradict"),
    ("Rating: 7\nMaybe 8.", "not a rating line"),
    ('{"rating": [7]}', "one number"),
    ('{"rating": 70}', "between 1 and 10"),
    ("Result: 7", "one number"),
]


@pytest.mark.parametrize(("reply", "rating"), READ)
def test_reads_what_is_plain(reply, rating):
    assert parse_rating(reply) == rating


@pytest.mark.parametrize(("reply", "reason"), REFUSED)
def test_refuses_what_is_not(reply, reason):
    rating = parse_rating(reply)
    assert isinstance(rating, UnreadableReply), rating
    assert reason in rating.reason


@pytest.mark.parametrize("reply", ["[2,2,2]", "Rating: [2,1,2]", "Rating: 2, 2, 2", "[2, 2, 2]/10"])
def test_a_list_is_not_a_rating(reply):
    assert isinstance(parse_rating(reply), UnreadableReply)


@given(st.text())
def test_always_on_the_scale_or_a_reason(reply):
    rating = parse_rating(reply)
    assert isinstance(rating, UnreadableReply) or 1 <= rating <= 10


@given(st.floats(min_value=0, max_value=2, allow_nan=False).map(lambda number: round(number, 4)))
def test_numbers_come_back_as_written(number):
    assert parse_rating(f"Rating: {number:.4f}", low=0, high=2) == number
