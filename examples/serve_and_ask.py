"""A reward server in this process, and a client that asks it for two users. Needs the extra `serve`.

    python examples/serve_and_ask.py

`prbench serve --model ADDRESS` is the same in a process of its own.
"""

import tempfile
from pathlib import Path

from prbench import Suite
from prbench.models.python import wrap
from prbench.serve import RewardClient, ServeConfig, serving

USERS = {"ann": "I count every euro and love a cheap coach ride.", "ben": "My hours are few, I fly wherever I can."}
ANSWERS = ("Take the coach, it is cheap.", "Better fly, you save hours.")


def shares_words(question, answer, posts):
    """Reward an answer for the words that it shares with what the user wrote."""
    known = {word.strip(",.") for post in posts for word in post.text.lower().split()}
    return sum(word.strip(",.") in known for word in answer.lower().split())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        config = ServeConfig(model="shares_words", port=0, state=Path(folder) / "feedback.jsonl")
        with serving(config, model=wrap(shares_words), suite=Suite.of([])) as url, RewardClient(url) as client:
            for user, post in USERS.items():
                items = [{"question": "How do I get to Lille?", "answer": one, "posts": [post]} for one in ANSWERS]
                print(user, client.score(items))
