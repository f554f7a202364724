"""`chat:MODEL@URL`: a chat model that is shown the whole rubric and writes one grade for each aspect."""

from collections.abc import Iterator, Sequence
from functools import cached_property

from prbench.config import ModelOptions
from prbench.graders.protocol import Grade, Grading
from prbench.models import Generator, ModelCard, Windowed, load_generator
from prbench.prompts import UnreadableReply
from prbench.prompts.grades import ALL_ASPECTS, ask_grades, parse_grades
from prbench.types import Outcome, Prompt


class ChatJudge:
    """Grades by what a model writes; what cannot be read is invalid.

    Args:
        writer: The model.
        options: Decoding parameters.
    """

    def __init__(self, writer: Generator, options: ModelOptions) -> None:
        self._writer = writer
        self._options = options

    @classmethod
    def load(cls, rest: str, options: ModelOptions) -> "ChatJudge":
        """Open the model behind `chat:REST`; no request is sent yet."""
        return cls(load_generator(f"chat:{rest}", options), options)

    @cached_property
    def card(self) -> ModelCard:
        """Description of the judge, with everything that could change a grade."""
        options = self._options
        parameters = {
            "mode": "grade",
            "template": ALL_ASPECTS.digest[:12],
            "temperature": options.temperature,
            "max_tokens": options.max_tokens,
            "seed": options.seed,
        }
        return self._writer.card.model_copy(update={"parameters": {**self._writer.card.parameters, **parameters}})

    def refuses(self, grading: Grading) -> str | None:
        """Refuse a rubric without aspects."""
        return None if grading.aspects else "the rubric has no aspects"

    def forecast(self, gradings: Sequence[Grading]) -> int:
        """Estimated tokens of all prompts."""
        prompts = [self.render(grading) for grading in set(gradings) if self.refuses(grading) is None]
        return sum(self._length(prompt) for prompt in prompts)

    def render(self, grading: Grading) -> Prompt:
        """Exactly what the model receives; answers to one question under one rubric begin alike."""
        return ask_grades(grading.question, grading.answer, grading.aspects)

    def grade(self, gradings: Sequence[Grading]) -> Iterator[tuple[int, Grade]]:
        """Grade each; a server with a prefix cache reads what prompts have in common once."""
        refused = {place: reason for place, grading in enumerate(gradings) if (reason := self.refuses(grading))}
        yield from ((place, Grade.invalid(reason)) for place, reason in refused.items())
        prompts = {place: self.render(grading) for place, grading in enumerate(gradings) if place not in refused}
        order = sorted(prompts, key=lambda place: prompts[place].messages[0].content)
        options = self._options
        written = self._writer.generate(
            [prompts[place] for place in order],
            max_tokens=options.max_tokens,
            temperature=options.temperature,
            seed=options.seed,
        )
        for number, (outcome,) in written:
            yield order[number], read_grade(outcome, len(gradings[order[number]].aspects))

    def _length(self, prompt: Prompt) -> int:
        return (
            self._writer.length(prompt) if isinstance(self._writer, Windowed) else len(prompt.messages[0].content) // 4
        )


def read_grade(outcome: Outcome, count: int) -> Grade:
    """Read the grade from a written reply: `count` numbers, or a status with its reason.

    Example:
        >>> read_grade(Outcome(status="ok", raw="[2, 1, 2]"), 3).score
        1.6666666666666667
        >>> read_grade(Outcome(status="ok", raw="[2, 2, 2]"), 2).status
        'invalid'
    """
    usage = outcome.model_dump(include={"raw", "tokens_in", "tokens_out", "latency_ms", "cost_usd"})
    if outcome.status != "ok":
        return Grade(status=outcome.status, reason=outcome.reason, **usage)
    if outcome.reason:  # cut off: the last line that came need not be the last line that was meant
        return Grade.invalid(outcome.reason, **usage)
    grades = parse_grades(outcome.raw, count)
    if isinstance(grades, UnreadableReply):
        return Grade.invalid(grades.reason, **usage)
    return Grade.given(grades, **usage)
