"""Two runs side by side: paired on the pairs that both judged, with an interval and the pairs that flipped.

python examples/compare_runs.py
"""

import tempfile
from pathlib import Path

from prbench import compare, evaluate, load_pairs


def words(text):
    """Words that are long enough to say something."""
    return {word for word in text.lower().split() if len(word) > 4}


def any_word(question, answer, posts):
    """Count every shared word."""
    return sum(len(words(post.text) & words(answer)) for post in posts)


def best_post(question, answer, posts):
    """Count the words shared with the closest post only."""
    return max((len(words(post.text) & words(answer)) for post in posts), default=0)


if __name__ == "__main__":
    suite = load_pairs("mirror")
    with tempfile.TemporaryDirectory() as folder:
        one, two = Path(folder) / "any-word", Path(folder) / "best-post"
        evaluate(any_word, suite, contexts=["profile"], limit=300, out=one)
        evaluate(best_post, suite, contexts=["profile"], limit=300, out=two)
        found = compare(one, two)
    gap = found.comparison.difference
    print(f"{found.accuracy_one:.1%} against {found.accuracy_two:.1%}, shown the user's own posts")
    print(f"difference {gap.value:+.1%} [{gap.low:+.1%}, {gap.high:+.1%}], p = {found.comparison.clustered_p:.3f}")
    print(f"only the first is right on {len(found.won)} pairs, only the second on {len(found.lost)}")
    print(f"for example: {next(pair.question for pair in suite if pair.id in found.won)}")
