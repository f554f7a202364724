"""The planner: question and profile in, expected aspects out, through any Generator.

It sees what a model may see and nothing of the hidden rubric; a reply without a readable list is a failure with its
reason, never an empty plan.
"""

from collections.abc import Iterator, Mapping, Sequence

from prbench.config import digest
from prbench.contexts import Unfit
from prbench.contexts.budget import PromptBudget
from prbench.models import Generator, Windowed
from prbench.prompts import Template
from prbench.prompts.expectations import parse_expectations
from prbench.rank import BM25, PostRanker
from prbench.types import Count, Frozen, Message, Outcome, Pair, PairView, Prompt, Status


class Plan(Frozen):
    """Expectations of one user for one answer, as a planner guesses them.

    One line of `plans.jsonl`, of a run or of its own.
    """

    key: str
    """Content hash of planner and prompt: pairs with the same question and profile share a plan."""
    status: Status
    plan: tuple[str, ...] = ()
    reason: str = ""
    raw: str = ""
    tokens_in: Count = 0
    tokens_out: Count = 0
    cost_usd: float = 0.0
    need: str = ""
    """Content hash of question and posts, the same for every planner; in a file of plans of their own."""
    user: str = ""
    question: str = ""
    planner: str = ""
    """Address of who wrote it."""


class Planner:
    """Infers what users expect, one plan for each distinct question and profile.

    Args:
        generator: Model that writes the plans.
        ranker: Chooses posts where not all fit the generator's window.
        max_tokens: Most tokens of a plan.
    """

    def __init__(self, generator: Generator, ranker: PostRanker | None = None, *, max_tokens: int = 300) -> None:
        self.card = generator.card
        self._generator = generator
        self._max_tokens = max_tokens
        self._template = Template.builtin("plan.jinja", "plan")
        self._budget = PromptBudget(self, ranker or BM25())  # type: ignore[arg-type]
        self._keys: dict[str, str] = {}

    @property
    def window(self) -> int | None:
        """The generator's window, less what it is to write."""
        window = self._generator.window if isinstance(self._generator, Windowed) else None
        return None if window is None else max(1, window - self._max_tokens)

    @property
    def template(self) -> str:
        """Short content hash of what a planner is asked."""
        return self._template.digest

    def length(self, prompt: Prompt) -> int:
        """Tokens of a prompt."""
        return self._generator.length(prompt) if isinstance(self._generator, Windowed) else 0

    def render(self, view: PairView) -> Prompt:
        """Return the prompt of the planner: question and posts, nothing of the standard or the answers."""
        return Prompt((Message("user", self._template.render(view)),))

    def prompt(self, pair: Pair) -> Prompt | Unfit:
        """The request for the plan that this pair needs."""
        fitted = self._budget.fit(PairView(pair.question, "", "", pair.profile, (), pair.user))
        return fitted if isinstance(fitted, Unfit) else self.render(fitted.view)

    def key(self, pair: Pair) -> str:
        """The key of the plan that this pair needs."""
        if pair.id not in self._keys:
            prompt = self.prompt(pair)
            who = [*self.card.identity.values(), self._max_tokens]
            asked = prompt.reason if isinstance(prompt, Unfit) else prompt.messages
            self._keys[pair.id] = digest([who, asked])[:32]
        return self._keys[pair.id]

    def requests(self, pairs: Sequence[Pair]) -> dict[str, Prompt | Unfit]:
        """Return the requests that must be asked for these pairs, each distinct one once."""
        return {self.key(pair): self.prompt(pair) for pair in pairs}

    def ask(self, prompts: Mapping[str, Prompt]) -> Iterator[tuple[str, Outcome]]:
        """Have plans written; yields each reply under its key."""
        keys = list(prompts)
        replies = self._generator.generate(list(prompts.values()), max_tokens=self._max_tokens)
        for index, (outcome, *_) in replies:
            yield keys[index], outcome


def read_plan(key: str, outcome: Outcome) -> Plan:
    """A planner's reply as a plan.

    Example:
        >>> read_plan("k", Outcome(status="ok", raw="- Be brief")).plan
        ('Be brief',)
        >>> read_plan("k", Outcome(status="ok", raw="Hm.")).status
        'invalid'
    """
    items = parse_expectations(outcome.raw) if outcome.status == "ok" else ()
    unread = outcome.status == "ok" and not items
    return Plan(
        key=key,
        status="invalid" if unread else outcome.status,
        plan=items,
        reason="no list in the reply" if unread else outcome.reason,
        raw=outcome.raw,
        tokens_in=outcome.tokens_in,
        tokens_out=outcome.tokens_out,
        cost_usd=outcome.cost_usd,
    )
