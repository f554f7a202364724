"""How long the clustered bootstrap takes: 10,000 pairs, 2,000 resamples, against resampling in a plain Python loop.

Run: python benchmarks/bootstrap.py
"""

import random
import time

import numpy as np

from prbench.stats import Clusters, mean_interval

PAIRS = 10_000
RESAMPLES = 2_000
LOOP_RESAMPLES = 20
SHAPES = {
    "50 users × 400 questions": (50, 400),
    "1,000 users × 1,000 questions": (1_000, 1_000),
    "10,000 users × 10,000 questions": (10_000, 10_000),
}


def loop_mean(credits: list[float], users: list[int], questions: list[int], draw: random.Random) -> float:
    """One resample as one would write it first: count the draws, then walk over the pairs."""
    user_names, question_names = sorted(set(users)), sorted(set(questions))
    user_counts = dict.fromkeys(user_names, 0)
    for user in draw.choices(user_names, k=len(user_names)):
        user_counts[user] += 1
    question_counts = dict.fromkeys(question_names, 0)
    for question in draw.choices(question_names, k=len(question_names)):
        question_counts[question] += 1
    total = weight = 0.0
    for credit, user, question in zip(credits, users, questions, strict=True):
        times = user_counts[user] * question_counts[question]
        total += times * credit
        weight += times
    return total / weight


def seconds_vectorised(credits: list[float], users: list[int], questions: list[int]) -> float:
    """The whole call, labels to interval."""
    start = time.perf_counter()
    mean_interval(credits, Clusters.of(users, questions), np.random.default_rng(0), resamples=RESAMPLES)
    return time.perf_counter() - start


def seconds_loop(credits: list[float], users: list[int], questions: list[int]) -> float:
    """The loop, extrapolated from a few resamples."""
    draw = random.Random(0)
    start = time.perf_counter()
    for _ in range(LOOP_RESAMPLES):
        loop_mean(credits, users, questions, draw)
    return (time.perf_counter() - start) / LOOP_RESAMPLES * RESAMPLES


def main() -> None:
    """Print one line per shape of data."""
    rng = np.random.default_rng(0)
    mean_interval([0, 1], Clusters.of([0, 1], [0, 1]), rng)  # loads scipy once, outside the clock
    print(f"{PAIRS:,} pairs, {RESAMPLES:,} resamples; loop extrapolated from {LOOP_RESAMPLES}")
    print(f"{'shape':34}{'prbench':>10}{'loop':>10}{'ratio':>9}")
    for name, (users, questions) in SHAPES.items():
        credits = rng.integers(0, 2, PAIRS).astype(float).tolist()
        user, question = rng.integers(0, users, PAIRS).tolist(), rng.integers(0, questions, PAIRS).tolist()
        fast, slow = seconds_vectorised(credits, user, question), seconds_loop(credits, user, question)
        print(f"{name:34}{fast:>8.2f} s{slow:>8.1f} s{slow / fast:>8.0f}×")


if __name__ == "__main__":
    main()
