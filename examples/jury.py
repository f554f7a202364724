"""A jury: three small raters vote on two answers, asked in both orders like any judge.

python examples/jury.py
prbench run --model py:examples.jury:vote --limit 200        # the same from the command line
"""

from prbench import evaluate


def shares_words(answer, text):
    """Words that answer and posts share."""
    return len(set(answer.lower().split()) & set(text.lower().split()))


def counts_like(answer, text):
    """Figures where the user writes figures."""
    share = sum(map(str.isdigit, text)) / max(len(text), 1)
    return -abs(share - sum(map(str.isdigit, answer)) / max(len(answer), 1))


def is_brief(answer, text):
    """Short answers, whoever asks."""
    return -len(answer)


JURORS = (shares_words, counts_like, is_brief)


def vote(question, first, second, posts):
    """Return "first", "second" or "tie": the answer that more jurors prefer."""
    text = " ".join(post.text for post in posts)
    gaps = [juror(first, text) - juror(second, text) for juror in JURORS]
    votes = sum((gap > 0) - (gap < 0) for gap in gaps)
    return "first" if votes > 0 else "second" if votes < 0 else "tie"


if __name__ == "__main__":
    found = evaluate(vote, "mirror", contexts=["none", "profile"], limit=200)
    for name, context in found.contexts.items():
        print(f"{name:8} {context.accuracy.value:.1%} [{context.accuracy.low:.1%}, {context.accuracy.high:.1%}]")
