"""A tiny world: a real but tiny policy, a split suite, and rewards that are known."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from prbench.data import Suite
from prbench.graders import Grade, Grading
from prbench.models import ModelCard
from prbench.types import AnswerView, Channel, Message, Outcome, Prompt
from split_suite import SPLITS, split_pairs


def tiny_suite(couples: int = 3, questions: int = 4) -> Suite:
    return Suite.of([pair for split in SPLITS for pair in split_pairs(split, couples, questions)])


class PlantedRater:
    """A Rater with a known rule: how many letters `e` an answer has for its length, or a hash; or it fails."""

    def __init__(self, name: str = "gold", *, revision: str = "1", failing: Sequence[str] = ()) -> None:
        self.card = ModelCard(address=f"planted:{name}", revision=revision, reads=frozenset(Channel))
        self.failing = list(failing)
        self.seen: list[AnswerView] = []

    def render(self, view: AnswerView) -> Prompt:
        turns = [*(post.text for post in view.posts), view.question, view.answer]
        return Prompt(tuple(Message("user", turn) for turn in turns))

    def rate(self, views: Sequence[AnswerView]) -> Iterator[tuple[int, Outcome]]:
        for index, view in enumerate(views):
            self.seen.append(view)
            kind = self.failing[len(self.seen) % len(self.failing)] if self.failing else ""
            if kind == "failed":
                yield index, Outcome.failed("timed out")
            elif kind == "invalid":
                yield index, Outcome.invalid("unreadable")
            else:
                yield index, Outcome.scored(self.score(view.answer))

    def score(self, answer: str) -> float:
        if self.card.address == "planted:noise":
            import zlib

            return (zlib.crc32(answer.encode()) % 1000) / 1000
        return gold(answer)


class Taught(PlantedRater):
    """A reward model whose card says that it learnt from this world's training split."""

    def __init__(self) -> None:
        super().__init__("taught")
        taught = {"training": {"suite": "pairs", "split": "train", "pairs": 24, "users": 6}}
        self.card = self.card.model_copy(update={"parameters": taught})


def gold(answer: str) -> float:
    return sum(character in "e" for character in answer) / max(len(answer), 1)


def tiny_policy(folder: Path, **config: Any) -> str:
    from tiny_models import save_causal_model

    return f"lm:{save_causal_model(folder, seed=1, **config)}"


def e_share(question: str, answer: str, posts: Sequence[object]) -> float:
    """The gold reward as `py:ppo_world:e_share`."""
    return gold(answer)


def broken(question: str, answer: str, posts: Sequence[object]) -> float:
    """A reward model that never answers with a number."""
    return float("nan")


class PlantedJudge:
    """A judge that is right on the suite's answers, and pays other ones by the gold reward."""

    def __init__(self, address: str = "planted-judge", *, blind: bool = False) -> None:
        self.card = ModelCard(address=address, revision="planted")
        self.blind = blind
        self.asked = 0

    def refuses(self, grading: Grading) -> str | None:
        return None

    def forecast(self, gradings: Sequence[Grading]) -> int:
        return len(gradings)

    def grade(self, gradings: Sequence[Grading]) -> Iterator[tuple[int, Grade]]:
        for index, grading in enumerate(gradings):
            self.asked += 1
            wanted = grading.aspects[0].aspect.split()[1]
            right = wanted in grading.answer and not self.blind
            yield index, Grade.given([2.0 if right else min(2.0, 4 * gold(grading.answer))])
