import bm25s
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from prbench import rank
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


WORDS = st.lists(
    st.sampled_from([f"word{number}" for number in range(12)] + ["the", "é\u0301t\u00e9"]), max_size=30
).map(" ".join)


@given(st.lists(WORDS.filter(str.strip), min_size=2, max_size=12), WORDS)
def test_bm25_scores_are_those_of_the_library(found, question):
    tokens = bm25s.tokenize(found, stopwords="en", show_progress=False)
    words = bm25s.tokenize([question], stopwords="en", return_ids=False, show_progress=False)[0]
    known = [word for word in words if word in tokens.vocab]
    scores = np.zeros(len(found))
    if len(tokens.vocab) > 1 and known:
        index = bm25s.BM25()
        index.index(tokens, show_progress=False)
        scores = index.get_scores(known)
    posts = [Post(id=str(number), text=text) for number, text in enumerate(found)]
    order = np.argsort(-scores, kind="stable")
    assert [int(post.id) for post in BM25().rank(question, posts)] == order.tolist()
    assert BM25()._scores(question, tuple(posts)).tolist() == scores.tolist()


def test_indexes_of_few_posts_are_kept_and_the_oldest_goes_first(monkeypatch):
    monkeypatch.setattr(rank, "_KEPT_POSTS", 5)
    ranker = BM25()
    profiles = [tuple(Post(id=f"{user}-{i}", text=f"word{user} other{i}") for i in range(2)) for user in range(3)]
    for question, user in enumerate((0, 1, 0, 2)):
        ranker.rank(f"other1 question{question}", profiles[user])
    assert list(ranker._indexes) == [tuple(post.text for post in profiles[user]) for user in (0, 2)]


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


def test_forgotten_posts_are_kept_nowhere():
    ranker = BM25()
    posts = (Post(id="1", text="my bicycle squeaks"), Post(id="2", text="sourdough will not rise"))
    before = ranker.rank("why is my sourdough flat?", posts)
    ranker.forget()
    assert (len(ranker._indexes), len(ranker._ranked), ranker._indexed) == (0, 0, 0)
    assert ranker.rank("why is my sourdough flat?", posts) == before
