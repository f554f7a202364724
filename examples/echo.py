"""A small personal reward model in twenty lines: an answer is the better, the more it sounds like the user.

It compares how somebody writes (short or long sentences, figures, lists, everyday words …) with how the answer is
written. No weights, no training: a reminder that sounding like the user is not the same as knowing what the user wants.
"""

import math
import re
from collections.abc import Sequence

from prbench import Post


def traits(text: str) -> list[float]:
    """A few plain measures of a text's manner."""
    words = re.findall(r"[A-Za-z']+", text) or ["x"]
    sentences = max(len(re.findall(r"[.!?]+", text)), 1)
    hundred = len(words) / 100
    return [
        len(words) / sentences / 10,
        sum(map(len, words)) / len(words),
        len(re.findall(r"\d+", text)) / hundred / 4,
        len(re.findall(r"^\s*\d+\.", text, re.MULTILINE)) / hundred,
        len(re.findall(r"\b(?:you|your|I|my|we)\b", text, re.IGNORECASE)) / hundred / 8,
        len(re.findall(r"\b(?:may|might|perhaps|probably|could|usually)\b", text, re.IGNORECASE)) / hundred / 2,
    ]


def score(question: str, answer: str, posts: Sequence[Post], plan: Sequence[str] = ()) -> float:
    """Closeness of the answer's manner to the user's, plus words shared with a plan; 0 where nothing is known."""
    closeness = 0.0
    if posts:
        own = [sum(column) / len(posts) for column in zip(*(traits(post.text) for post in posts), strict=True)]
        closeness = -math.dist(own, traits(answer))
    expected = {word for line in plan for word in re.findall(r"\w{4,}", line.lower())}
    return closeness + len(expected & set(re.findall(r"\w{4,}", answer.lower())))
