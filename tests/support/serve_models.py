"""Raters for the tests of the reward server; opened as `py:serve_models:NAME` by servers in processes of their own."""

import hashlib
import math
import threading
import time
from collections.abc import Iterator, Sequence

from planted_models import Learner
from prbench.models import ModelCard
from prbench.types import AnswerView, Channel, Message, Outcome, Post, Prompt


def known_score(question: str, answer: str, posts: Sequence[Post] = ()) -> float:
    """A number that nobody gets by chance: what a test can compute for itself."""
    text = "\x00".join([question, answer, *(post.text for post in posts)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48


class Recorder:
    """Scores by `known_score` and keeps the batches it was handed; `pause_s` is what one call takes, however many."""

    pause_s = 0.0

    def __init__(self) -> None:
        self.batches: list[list[AnswerView]] = []
        self.threads: set[int] = set()
        self.gate = threading.Event()
        """Nothing is scored before it is set."""
        self.gate.set()
        self.card = ModelCard(address="recorder", revision="1", reads=frozenset(Channel))

    def render(self, view: AnswerView) -> Prompt:
        turns = [*(post.text for post in view.posts), *view.plan, view.question, view.answer]
        return Prompt(tuple(Message("user", turn) for turn in turns))

    def rate(self, views: Sequence[AnswerView]) -> Iterator[tuple[int, Outcome]]:
        self.batches.append(list(views))
        self.threads.add(threading.get_ident())
        self.gate.wait(20)
        time.sleep(self.pause_s)
        # In reverse, so that whoever relies on the order of answers is found out.
        for place in reversed(range(len(views))):
            yield place, self.outcome(views[place])

    def outcome(self, view: AnswerView) -> Outcome:
        return Outcome.scored(known_score(view.question, view.answer, view.posts))


class Slow(Recorder):
    """Takes a while for a call, as a forward pass does, whatever the batch."""

    pause_s = 0.02


class VerySlow(Recorder):
    """Slow enough to be told to stop while it works."""

    pause_s = 0.3


class Stuck(Recorder):
    """Still at work when it is told to stop a second time."""

    pause_s = 2.0


class Faulty(Recorder):
    """Goes wrong in the way that the answer says."""

    def outcome(self, view: AnswerView) -> Outcome:
        match view.answer:
            case "raise":
                raise RuntimeError("out of memory")
            case "nan" | "inf" | "-inf" as number:
                return Outcome.scored(float(number))
            case "unreadable":
                return Outcome.invalid("no number in the reply")
            case "unanswered":
                return Outcome.failed("timed out")
            case "nothing":
                return Outcome.model_construct(status="ok", score=None)
            case "smuggled":
                return Outcome.model_construct(status="ok", score=math.nan)
        return super().outcome(view)


class Adaptive(Learner):
    """Knows a user's colour as soon as one pair is judged."""

    wanted = 1

    def __init__(self) -> None:
        super().__init__()
        self.card = self.card.model_copy(update={"address": "py:serve_models:Adaptive"})
