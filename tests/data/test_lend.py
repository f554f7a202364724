"""Posts lent to questions without users: one person of the same split for each question, and nothing but posts."""

from collections import defaultdict

import pytest

from pair_factory import make_pair
from prbench.data import load_pairs, load_questions
from prbench.data.lend import lend_posts
from prbench.errors import DataError
from prbench.types import Post


@pytest.mark.parametrize("version", ["", "@1"])
def test_every_question_shows_one_person_of_its_split_and_version(version):
    plain, lent = load_pairs(f"generic{version}"), load_pairs(f"generic+posts{version}")
    mirror = {(pair.tags["split"], pair.user): pair for pair in load_pairs(f"mirror{version}")}.values()
    people = {(pair.tags["split"], pair.user): [post.id for post in pair.profile] for pair in mirror}
    assert lent.record.version == plain.record.version
    assert lent.record.name == f"generic+posts@{plain.record.version}"
    assert [(one.id, one.profile) for one in load_questions(f"generic+posts{version}")] == [
        (pair.id, pair.profile) for pair in lent
    ]
    shown = defaultdict(set)
    for before, after in zip(plain, lent, strict=True):
        author = after.tags["posts_of"]
        assert [post.id for post in after.profile] == people[after.tags["split"], author]
        assert (before.id, before.user, before.chosen) == (after.id, after.user, after.chosen)
        assert {**before.tags, "posts_of": author} == after.tags
        shown[after.question].add(author)
    assert all(len(authors) == 1 for authors in shown.values())
    if version != "@1":  # the first version has fewer people than questions
        assert len({next(iter(authors)) for authors in shown.values()}) == len(shown)


def test_posts_without_lenders():
    asked = make_pair(user="a", tags={"split": "test"})
    lender = asked.model_copy(update={"profile": (Post(id="p", text="Hello."),), "tags": {"split": "train"}})
    with pytest.raises(DataError, match="no user in split 'test' has posts to lend"):
        lend_posts([asked], [lender, asked])
