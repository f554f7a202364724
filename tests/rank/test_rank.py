import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from prbench.rank import BM25, Dense
from prbench.types import Post

texts = st.lists(st.text(min_size=1, max_size=40).filter(str.strip), min_size=0, max_size=8)


class Letters:
    """A real, if small, encoder: counts of letters."""

    name = "letters"

    def __init__(self):
        self.seen = []

    def encode(self, texts):
        self.seen.extend(texts)
        return np.array([[text.lower().count(letter) for letter in "abcdefghij"] for text in texts], dtype=np.float32)


@given(texts, st.text(max_size=30))
def test_ids_stay_with_their_texts(found, question):
    posts = [Post(id=f"p{i}", text=text) for i, text in enumerate(found)]
    for ranker in (BM25(), Dense(Letters())):
        ranked = ranker.rank(question, posts)
        assert sorted(ranked, key=lambda post: post.id) == sorted(posts, key=lambda post: post.id)


def test_bm25_prefers_the_post_that_shares_rare_words():
    posts = [
        Post(id="cake", text="My sponge cake sinks in the middle every time"),
        Post(id="bike", text="The derailleur on my bicycle skips the third gear"),
        Post(id="tax", text="Which form do I need for the freelance tax return"),
    ]
    assert BM25().rank("why does my bicycle gear slip", posts)[0].id == "bike"


def test_bm25_without_a_common_word_keeps_the_order():
    posts = [Post(id="b", text="zebra"), Post(id="a", text="yak")]
    assert [post.id for post in BM25().rank("quilt", posts)] == ["b", "a"]


def test_dense_embeds_each_distinct_text_once():
    encoder = Letters()
    ranker = Dense(encoder)
    posts = [Post(id="1", text="aaa"), Post(id="2", text="bbb")]
    assert ranker.rank("b", posts)[0].id == "2"
    assert ranker.rank("a", posts)[0].id == "1"
    assert sorted(encoder.seen) == ["a", "aaa", "b", "bbb"]
