"""What is written is read back, whole, from every format."""

import json
import string

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pair_factory import make_pair
from prbench.data import fingerprint, load_pairs, write_pairs
from prbench.data.rows import SUFFIXES
from prbench.errors import DataError
from prbench.types import Aspect, Pair, Post

anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
something = anything.filter(str.strip)
names = st.text(string.ascii_letters, min_size=1, max_size=8)
posts = st.lists(
    st.builds(Post, id=names, text=something, category=anything), max_size=4, unique_by=lambda post: post.id
)
pairs = st.builds(
    Pair,
    id=something,
    user=something,
    question=something,
    profile=posts.map(tuple),
    narrative=anything,
    rubric_aspects=st.lists(st.builds(Aspect, aspect=something, evidence=anything, reason=anything), max_size=3).map(
        tuple
    ),
    category=anything,
    chosen=something.map(lambda text: text + "+"),
    rejected=something.map(lambda text: text + "-"),
    tags=st.dictionaries(names.map("t".__add__), anything, max_size=3).map(lambda tags: {**tags, "split": "dev"}),
)
suites = st.lists(pairs, min_size=1, max_size=4, unique_by=lambda pair: pair.id)
PAIR = make_pair()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(written=suites)
def test_round_trip_in_every_format(tmp_path, written):
    for suffix in SUFFIXES:
        suite = load_pairs(write_pairs(written, tmp_path / f"pairs{suffix}"))
        assert list(suite) == written
        assert suite.record.fingerprint == fingerprint(written)
        assert not suite.record.notes
        assert not suite.record.derived_users


def test_the_papers_fields_stand_in_the_file(tmp_path):
    row = json.loads(write_pairs([PAIR], tmp_path / "pairs.jsonl").read_text())
    paper = {"id", "question", "profile", "rubric_aspects", "narrative", "category", "chosen", "rejected"}
    assert set(row) == paper | {"user", "tags"}


def test_the_same_pairs_give_the_same_bytes(tmp_path):
    for suffix in SUFFIXES:
        one = write_pairs([PAIR], tmp_path / f"one{suffix}").read_bytes()
        assert one == write_pairs([PAIR], tmp_path / f"two{suffix}").read_bytes()


def test_nothing_is_half_written(tmp_path):
    path = write_pairs([PAIR], tmp_path / "new" / "pairs.jsonl")
    before = path.read_bytes()
    with pytest.raises(AttributeError):
        write_pairs([PAIR, None], path)
    assert path.read_bytes() == before
    assert [item.name for item in path.parent.iterdir()] == ["pairs.jsonl"]


def test_refusals(tmp_path):
    with pytest.raises(DataError, match="no pair to write"):
        write_pairs([], tmp_path / "pairs.jsonl")
    with pytest.raises(DataError, match="unsupported extension"):
        write_pairs([PAIR], tmp_path / "pairs.xlsx")
    assert not list(tmp_path.iterdir())
