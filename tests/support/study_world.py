"""A small mirrored world for downstream studies: a judge whose grades are known, a policy, a reward model with gaps."""

import math
import zlib
from collections.abc import Iterator, Sequence

from prbench.data import Suite
from prbench.graders import Grade, Grading
from prbench.models import ModelCard
from prbench.models.python import FunctionRater
from prbench.types import ListView, Message, Outcome, Pair, Post, Prompt
from small_suite import mirrored


def world(couples: int = 3, questions: int = 4) -> Suite:
    """Two splits of couples who want opposite colours; no answer stands in both."""
    train = [_for_training(pair) for pair in mirrored(couples, questions, split="train")]
    return Suite.of([*train, *mirrored(couples, questions)], name="small")


def _for_training(pair: Pair) -> Pair:
    changes = {
        "id": f"t:{pair.id}",
        "user": f"t{pair.user}",
        "chosen": pair.chosen.replace("Get", "Buy"),
        "rejected": pair.rejected.replace("Get", "Buy"),
        "tags": {**pair.tags, "mirror": f"t:{pair.tags['mirror']}", "couple": f"t{pair.tags['couple']}"},
    }
    return pair.model_copy(update=changes)


class HashJudge:
    """Gives texts, red ones above all, a worth to whoever likes red, and 2 − that to whoever likes blue.

    `able=False` makes it give both the same, so that it is right half of the time.
    """

    def __init__(self, *, able: bool = True, address: str = "hash-judge", refused: str = "") -> None:
        self.card = ModelCard(address=address, revision="hash-1", parameters={"able": able})
        self.asked: list[Grading] = []
        self.able = able
        self.refused = refused
        self.stop_after: int | None = None

    def refuses(self, grading: Grading) -> str | None:
        return f"no {self.refused} here" if self.refused and self.refused in grading.question else None

    def forecast(self, gradings: Sequence[Grading]) -> int:
        return sum(len(grading.answer.split()) for grading in gradings)

    def grade(self, gradings: Sequence[Grading]) -> Iterator[tuple[int, Grade]]:
        for index, grading in enumerate(gradings):
            if self.stop_after is not None and len(self.asked) >= self.stop_after:
                raise KeyboardInterrupt
            self.asked.append(grading)
            yield index, self._grade(grading)

    def _grade(self, grading: Grading) -> Grade:
        share = 0.7 * ("red" in grading.answer) + 0.3 * (zlib.crc32(grading.answer.encode()) % 1000) / 999
        if grading.tags["pole"] != "red" and self.able:
            share = 1 - share
        return Grade.given([2 * share])


class Scribe:
    """A policy that writes a text for each number; some prompts get `nothing`, some are cut off."""

    def __init__(self, *, empty: str = "", cut: str = "", stop_after: int | None = None, nothing: str = "  ") -> None:
        self.card = ModelCard(address="scribe", revision="1")
        self.empty, self.cut, self.stop_after, self.nothing = empty, cut, stop_after, nothing
        self.prompts: list[Prompt] = []
        self.written = 0

    def generate(self, prompts, *, n=1, max_tokens=512, temperature=0.0, seed=0, stop=()):
        for index, prompt in enumerate(prompts):
            if self.stop_after is not None and self.written >= self.stop_after:
                raise KeyboardInterrupt
            self.prompts.append(prompt)
            self.written += n
            yield index, tuple(self._text(prompt, number, seed) for number in range(n))

    def _text(self, prompt: Prompt, number: int, seed: int) -> Outcome:
        told = "\n".join(message.content for message in prompt.messages)
        if self.empty and self.empty in told:
            return Outcome(status="ok", raw=self.nothing)
        code = zlib.crc32(f"{prompt} {number} {seed}".encode())
        text = f"{'Well, ' * (code % 3)}take the {'red' if code % 2 else 'blue'} one, says {code}."
        if self.cut and self.cut in told:
            return Outcome(status="ok", raw=f"{text} And then", reason="cut off after 9 tokens")
        return Outcome(status="ok", raw=text)


class Taught(FunctionRater):
    """A reward model whose card says that it learnt from this world's training split."""

    def __init__(self) -> None:
        super().__init__(lambda question, answer: float(len(answer)), ("question", "answer"), "py:study_world:Taught")
        taught = {"training": {"suite": "small", "split": "train", "pairs": 24, "users": 6}}
        self.card = self.card.model_copy(update={"parameters": taught})


def sometimes(question: str, answer: str, posts: Sequence[Post]) -> float:
    """A reward model without a score for answers whose number ends in 7."""
    return math.nan if answer.endswith("7.") else float(len(answer))


class Nearest:
    """A Ranker that likes what is unlike the rest of the list, and keeps the lists that it was shown."""

    card = ModelCard(address="nearest", revision="1")

    def __init__(self) -> None:
        self.lists: list[ListView] = []

    def render(self, view: ListView) -> Prompt:
        return Prompt((Message("question", view.question), *(Message("answer", text) for text in view.answers)))

    def rank(self, views: Sequence[ListView]) -> Iterator[tuple[int, Outcome]]:
        for place, view in enumerate(views):
            self.lists.append(view)
            mean = sum(map(len, view.answers)) / len(view.answers)
            yield place, Outcome.ranked([abs(len(answer) - mean) for answer in view.answers])


NEAREST = Nearest()
