"""A function as a model: what it is shown is said by the names of its parameters.

python examples/callable_model.py
"""

from prbench import evaluate


def shares_words(question, answer, posts):
    """Reward an answer for the words that it shares with what the user wrote."""
    known = {word for post in posts for word in post.text.lower().split()}
    return len(known & set(answer.lower().split()))


if __name__ == "__main__":
    found = evaluate(shares_words, "mirror", contexts=["none", "profile", "other", "opposite"], limit=200)
    for name, context in found.contexts.items():
        at = context.accuracy
        print(f"{name:9} {at.value:6.1%} [{at.low:.1%}, {at.high:.1%}] of {at.n} pairs")
    gain = found.effects.gain
    print(f"gain      {gain.value:+6.1%} [{gain.low:+.1%}, {gain.high:+.1%}] from the user's own posts")
