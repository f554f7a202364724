"""Gate for two answers of equal general quality. Only where both are equally good does the user decide the pair.

The rater sees the question and one answer, nothing of the user, the rubric or the other answer. A reply that cannot be
read is unmeasured.
"""

from collections.abc import Sequence

from prbench.build.draft import Draft
from prbench.build.gates.gate import ROUNDING, unmeasured
from prbench.models import Generator
from prbench.prompts import Template, UnreadableReply
from prbench.prompts.quality import Quality, parse_quality
from prbench.types import AnswerView, Message, Outcome, Prompt

_MOST_TOKENS = 400


class EqualQuality:
    """Factuality, relevance and helpfulness (1 to 10 each) differ by at most `most` points.

    Args:
        generator: Model that rates.
        most: Points that the answers may lie apart in each dimension.
    """

    name = "quality"

    def __init__(self, generator: Generator, most: float = 2.0) -> None:
        self.most = most
        self._generator = generator
        self._template = Template.builtin("quality.jinja", "rate")
        self._ratings: dict[Prompt, Quality | UnreadableReply] = {}

    @property
    def rule(self) -> str:
        """Rule of what passes."""
        return f"blind quality differs by ≤ {self.most:g} of 10 points (by {self._generator.card.address})"

    @property
    def digest(self) -> str:
        """Content hash of the prompt, for the card."""
        return self._template.digest

    def render(self, question: str, answer: str) -> Prompt:
        """Return the prompt that the rater receives."""
        return Prompt((Message("user", self._template.render(AnswerView(question, answer))),))

    def check(self, drafts: Sequence[Draft]) -> dict[str, str]:
        """Have each distinct answer rated once, then compare."""
        asked = {
            draft.id: (self.render(draft.question, draft.chosen), self.render(draft.question, draft.rejected))
            for draft in drafts
        }
        self._ask(list(dict.fromkeys(prompt for both in asked.values() for prompt in both)))
        found = ((name, self._reason(*both)) for name, both in asked.items())
        return {name: reason for name, reason in found if reason}

    def _ask(self, prompts: Sequence[Prompt]) -> None:
        new = [prompt for prompt in prompts if prompt not in self._ratings]
        if new:
            for index, (outcome, *_) in self._generator.generate(new, max_tokens=_MOST_TOKENS):
                self._ratings[new[index]] = _read(outcome)

    def _reason(self, chosen: Prompt, rejected: Prompt) -> str:
        ratings = []
        for side, prompt in (("chosen", chosen), ("rejected", rejected)):
            rating = self._ratings.get(prompt, UnreadableReply("the rater gave no reply"))
            if isinstance(rating, UnreadableReply):
                return unmeasured(f"{side}: {rating.reason}")
            ratings.append(rating)
        apart = [
            f"{dimension} {one:g} and {other:g}"
            for dimension, one, other in zip(Quality._fields, *ratings, strict=True)
            if abs(one - other) > self.most + ROUNDING
        ]
        return f"chosen and rejected differ by more than {self.most:g}: {', '.join(apart)}" if apart else ""


def _read(outcome: Outcome) -> Quality | UnreadableReply:
    return parse_quality(outcome.raw) if outcome.status == "ok" else UnreadableReply(outcome.reason or outcome.status)
