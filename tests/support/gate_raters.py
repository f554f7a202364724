"""Raters of the gates' synthetic world: real code at the Protocols, which reads planted words."""

from collections.abc import Iterator, Sequence

from gate_world import BLEMISHES, CUES
from prbench.graders import Grade, Grading
from prbench.models import ModelCard
from prbench.texts import words
from prbench.types import Outcome


class CueJudge:
    """Grades each aspect by how often its cue stands in the answer: 0, 1, or 2 for twice and more."""

    def __init__(self, address: str = "cues:one", *, contrary: bool = False) -> None:
        self.card = ModelCard(address=address)
        self.asked: list[Grading] = []
        self._contrary = contrary

    def refuses(self, grading: Grading) -> str | None:
        return None

    def forecast(self, gradings: Sequence[Grading]) -> int:
        return 0

    def grade(self, gradings: Sequence[Grading]) -> Iterator[tuple[int, Grade]]:
        self.asked += gradings
        for index in reversed(range(len(gradings))):
            yield index, self._grade(gradings[index])

    def _grade(self, grading: Grading) -> Grade:
        answer = words(grading.answer)
        if "illegible" in answer:
            return Grade.invalid("no list of grades in the reply")
        if "unreachable" in answer:
            return Grade.failed("the connection was refused")
        cues = [next(word for word in words(aspect.aspect) if word in CUES) for aspect in grading.aspects]
        grades = [min(answer.count(cue), 2) for cue in cues]
        contrary = self._contrary and "contrariwise" in answer
        return Grade.given([2 - grade if contrary else grade for grade in grades])


class BlindRater:
    """A Generator that rates what stands between the marks of the answer, and keeps all that it was shown."""

    def __init__(self) -> None:
        self.card = ModelCard(address="blind:rater")
        self.shown: list[str] = []

    def generate(self, prompts, *, n=1, max_tokens=512, temperature=0.0, seed=0, stop=()):
        for index in reversed(range(len(prompts))):
            (message,) = prompts[index].messages
            self.shown.append(message.content)
            answer = words(message.content.split("<<< ANSWER")[1].split("ANSWER >>>")[0])
            yield index, (self._reply(answer),)

    def _reply(self, answer: list[str]) -> Outcome:
        if "disconnected" in answer:
            return Outcome.failed("the endpoint died")
        if "mumbled" in answer:
            return Outcome(status="ok", raw="Hard to say. Perhaps a 7 or an 8?")
        names = ("Factuality", "Relevance", "Helpfulness")
        marks = [f"{name}: {8 - answer.count(word)}" for name, word in zip(names, BLEMISHES, strict=True)]
        return Outcome(status="ok", raw="Read with care.\n" + "\n".join(marks))
