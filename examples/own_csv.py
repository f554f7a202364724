"""Pairs of your own from a CSV file, under whatever names its columns have.

python examples/own_csv.py
"""

import csv
import tempfile
from pathlib import Path

from prbench import evaluate

ROWS = [
    ("ann", "How do I get to Lille?", "Take the coach, it is cheap.", "Fly, you save a day.", "I count every euro."),
    ("ben", "How do I get to Lille?", "Fly, you save a day.", "Take the coach, it is cheap.", "My time is short."),
    ("ann", "Which phone?", "A used one is cheap and fine.", "The new one is faster.", "Cheap is good enough."),
    ("ben", "Which phone?", "The new one is faster.", "A used one is cheap and fine.", "I save time, always."),
]


def thrifty(question, answer, posts):
    """Reward the cheap answer for users who write about money, and the other one for the rest."""
    saves = any(word in post.text for post in posts for word in ("euro", "Cheap"))
    return float(("cheap" in answer) == saves)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("who", "prompt_text", "chosen", "rejected", "wrote"), *ROWS])
        names = {"user": "who", "question": "prompt_text", "profile": "wrote"}
        found = evaluate(thrifty, path, columns=names, split=None, contexts=["none", "profile"])
    for name, context in found.contexts.items():
        print(
            f"{name:8} {context.accuracy.value:.0%} of {context.accuracy.n} pairs, {context.accuracy.low:.0%} at least"
        )
