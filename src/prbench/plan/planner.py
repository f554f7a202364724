"""The planner: question and profile in, expected aspects out, through any Generator.

It sees what a model may see and nothing of the hidden rubric; a reply without a readable list is a failure with its
reason, never an empty plan.
"""

from collections.abc import Iterator, Sequence

from prbench.config import digest
from prbench.models import Generator
from prbench.prompts import Template
from prbench.prompts.expectations import parse_expectations
from prbench.types import Frozen, Message, Pair, PairView, Prompt, Status


class Plan(Frozen):
    """What a planner expects one user to want of one answer. One line of a run's `plans.jsonl`."""

    key: str
    """Content hash of planner and prompt: pairs with the same question and profile share a plan."""
    status: Status
    plan: tuple[str, ...] = ()
    reason: str = ""
    raw: str = ""
    cost_usd: float = 0.0


class Planner:
    """Infers what users expect, one plan for each distinct question and profile."""

    def __init__(self, generator: Generator, *, max_tokens: int = 300) -> None:
        self._generator = generator
        self._max_tokens = max_tokens
        self._template = Template.builtin("plan.jinja", "plan")

    def prompt(self, pair: Pair) -> Prompt:
        """What the planner receives: the pair's question and posts, nothing of its standard or its answers."""
        view = PairView(pair.question, "", "", pair.profile, (), pair.user)
        return Prompt((Message("user", self._template.render(view)),))

    def key(self, pair: Pair) -> str:
        """The key of the plan that this pair needs."""
        card = self._generator.card
        who = [card.address, card.revision, dict(card.parameters), self._max_tokens]
        return digest([who, self.prompt(pair).messages])[:32]

    def plan(self, pairs: Sequence[Pair]) -> Iterator[Plan]:
        """Write the plans of these pairs, each distinct one once."""
        wanted = {self.key(pair): self.prompt(pair) for pair in pairs}
        keys = list(wanted)
        for index, outcomes in self._generator.generate(list(wanted.values()), max_tokens=self._max_tokens):
            (outcome,) = outcomes
            if outcome.status != "ok":
                yield Plan(key=keys[index], status=outcome.status, reason=outcome.reason, raw=outcome.raw)
                continue
            items = parse_expectations(outcome.raw)
            yield Plan(
                key=keys[index],
                status="ok" if items else "invalid",
                plan=items,
                reason="" if items else "no list in the reply",
                raw=outcome.raw,
                cost_usd=outcome.cost_usd,
            )
