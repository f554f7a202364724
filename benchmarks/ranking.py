"""Dense ranking with each post embedded once per corpus, against embedding a question's posts for each question.

Full size (some minutes on two quiet cores): python benchmarks/ranking.py --questions 2000 --posts 100 --users 100
Small: python benchmarks/ranking.py --questions 60 --posts 20 --users 6 --sample 4

Protocol. Users have so many posts and ask the questions in turn. `prbench.rank.Dense` ranks all questions, and the
clock covers everything, weights already loaded. The baseline does what the official script does: for each question it
embeds the question and all of its posts anew, with the same encoder, batches and threads. It is timed on a sample of
questions spread evenly over all of them, and extrapolated by the number of questions. Both take turns in one process;
their rankings must be equal, posts with their ids. Texts are drawn from the embedded suite's posts, cut and joined, so
that lengths are real and no two posts are equal.

The limit is texts embedded per question ÷ distinct texts: what is saved is what recurs. Where every question has a user
of its own whose posts stand nowhere else (--users as large as --questions), it is 1 and nothing can be saved.
"""

import argparse
import os
import random
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from prbench.config import ModelOptions
from prbench.data import load_pairs
from prbench.models.registry import load_encoder
from prbench.rank import Dense
from prbench.types import Post

Asked = tuple[str, tuple[Post, ...]]


class Forgetful:
    """The same encoder without its memory: every text is embedded every time."""

    def __init__(self, encoder: Any) -> None:
        self.name = encoder.name
        self._encoder = encoder

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Embed each text."""
        rows: npt.NDArray[np.float32] = self._encoder._embed(list(texts))
        return rows


class Timing(NamedTuple):
    """How long it took, and what came out."""

    seconds: float
    rankings: list[tuple[str, ...]]


def make_corpus(questions: int, posts: int, users: int) -> list[Asked]:
    """Questions of users with so many posts each, in the order in which they are asked."""
    pairs = load_pairs("mirror")
    sentences = sorted({part.strip() for pair in pairs for post in pair.profile for part in post.text.split(". ")})
    asked = sorted({pair.question for pair in pairs})
    draw = random.Random(0)
    profiles = [
        tuple(
            Post(
                id=f"{user}-{number}",
                text=f"{'. '.join(draw.sample(sentences, draw.randint(3, 8)))}. ({user}/{number})",
            )
            for number in range(posts)
        )
        for user in range(users)
    ]
    return [(f"{draw.choice(asked)} ({number})", profiles[number % users]) for number in range(questions)]


def rank_all(corpus: Sequence[Asked], ranker: Dense) -> Timing:
    """Rank the posts of every question."""
    start = time.perf_counter()
    rankings = [tuple(post.id for post in ranker.rank(question, posts)) for question, posts in corpus]
    return Timing(time.perf_counter() - start, rankings)


def rank_anew(corpus: Sequence[Asked], encoder: Forgetful) -> Timing:
    """As the official script does: nothing is remembered from one question to the next."""
    timings = [rank_all([asked], Dense(encoder)) for asked in corpus]
    return Timing(sum(one.seconds for one in timings), [one.rankings[0] for one in timings])


def main() -> None:
    """Print both times and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("questions", 60), ("posts", 20), ("users", 6), ("sample", 20)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--model", default="embed:minilm")
    given = parser.parse_args()
    corpus = make_corpus(given.questions, given.posts, given.users)
    encoder = load_encoder(given.model, ModelOptions())
    encoder.encode(["weights are loaded outside the clock"])
    places = np.linspace(0, len(corpus) - 1, min(given.sample, len(corpus))).astype(int).tolist()
    half = len(places) // 2
    before = rank_anew([corpus[place] for place in places[:half]], Forgetful(encoder))
    once = rank_all(corpus, Dense(encoder))
    after = rank_anew([corpus[place] for place in places[half:]], Forgetful(encoder))
    same = [once.rankings[place] for place in places] == before.rankings + after.rankings
    anew = (before.seconds + after.seconds) / len(places) * len(corpus)
    distinct = len({post for _, posts in corpus for post in posts})
    limit = sum(1 + len(posts) for _, posts in corpus) / (len(corpus) + distinct)
    print(f"{given.model}, {len(corpus):,} questions × {given.posts} posts of {given.users} users ({distinct:,} posts)")
    print(f"cores {os.cpu_count()}, load {os.getloadavg()[0]:.1f}; baseline extrapolated from {len(places)} questions")
    print(f"{'embedded once':24}{once.seconds:>10.1f} s")
    print(f"{'embedded per question':24}{anew:>10.1f} s")
    print(
        f"ratio {anew / once.seconds:.1f}× (limit {limit:.1f}×); same rankings on the sample: {'yes' if same else 'NO'}"
    )


if __name__ == "__main__":
    main()
