"""Gates that ask models, made to remember: what was paid for is not asked again, and a dead server stops the build.

A gate takes an unanswered request for something that it could not measure, and refuses the draft. In a build that would
let a server's bad hour decide which pairs exist: here an unanswered request is an error, and the same command goes on.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from prbench.build.gates import Gate, parse_gates
from prbench.build.written.journal import CallTotals
from prbench.calls import Budget, Journal
from prbench.config import digest
from prbench.errors import ModelError
from prbench.graders import Grade, Grading, RubricJudge
from prbench.models import Generator, ModelCard
from prbench.types import Frozen, Outcome, Prompt


class _Kept(Frozen):
    """One line of `gate_calls.jsonl`."""

    key: str
    outcome: Outcome | None = None
    grade: Grade | None = None

    @property
    def usage(self) -> CallTotals:
        said = self.outcome or self.grade
        return CallTotals(1, said.tokens_in, said.tokens_out, said.cost_usd) if said else CallTotals()


class GateReplies:
    """Replies of the models behind gates. Use in a `with` block.

    Args:
        path: Append-only JSONL.
    """

    def __init__(self, path: Path) -> None:
        self._journal = Journal(path, _Kept, lambda kept: kept.key)
        self._used: set[str] = set()
        self.budget = Budget()
        """Counts what is spent, and stops at its limit."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._journal.__exit__(kind, error, trace)

    @property
    def cost_usd(self) -> float:
        """Return the cost of all replies that are kept, in this start and in earlier ones."""
        return sum(kept.usage.cost_usd for kept in self._journal.answers.values())

    def gates(self, specs: Sequence[str], judges: Sequence[RubricJudge], rater: Generator | None) -> list[Gate]:
        """The gates that a user asked for, with models that remember."""
        return parse_gates(
            specs,
            judges=[_Judge(judge, self) for judge in judges],
            generator=None if rater is None else _Generator(rater, self),
        )

    def find(self, key: str) -> _Kept | None:
        """Return the reply to this request, if it was asked before."""
        if key in self._journal.answers:
            self._used.add(key)
        return self._journal.answers.get(key)

    def keep(self, kept: _Kept) -> None:
        """Write a reply down."""
        self._used.add(kept.key)
        self._journal.keep(kept)
        self.budget.take(kept.usage.cost_usd)

    @property
    def usage(self) -> CallTotals:
        """Return the totals of the replies that this build rests on; those of models no longer asked do not count."""
        return sum((self._journal.answers[key].usage for key in sorted(self._used)), start=CallTotals())

    def lines(self) -> list[str]:
        """All of it, in the order of the keys."""
        return self._journal.lines()


class _Generator:
    def __init__(self, generator: Generator, replies: GateReplies) -> None:
        self._generator = generator
        self._replies = replies

    @property
    def card(self) -> ModelCard:
        return self._generator.card

    def generate(
        self,
        prompts: Sequence[Prompt],
        *,
        n: int = 1,
        max_tokens: int = 512,
        temperature: float = 0.0,
        seed: int = 0,
        stop: Sequence[str] = (),
    ) -> Iterator[tuple[int, tuple[Outcome, ...]]]:
        if n != 1:
            raise ValueError(f"gates ask for one text, not for {n}")
        how: dict[str, Any] = {"max_tokens": max_tokens, "temperature": temperature, "seed": seed, "stop": list(stop)}
        who = [*self.card.identity.values(), how]
        keys = [digest([who, prompt.messages])[:32] for prompt in prompts]
        known = {place: kept.outcome for place, key in enumerate(keys) if (kept := self._replies.find(key))}
        for place, outcome in known.items():
            if outcome is not None:
                yield place, (outcome,)
        new = [place for place in range(len(keys)) if known.get(place) is None]
        for index, (reply, *_) in self._generator.generate([prompts[place] for place in new], **how):
            _refuse_failure(reply.status, reply.reason, self.card.address)
            outcome = reply.model_copy(update={"latency_ms": 0.0})
            self._replies.keep(_Kept(key=keys[new[index]], outcome=outcome))
            yield new[index], (outcome,)


class _Judge:
    def __init__(self, judge: RubricJudge, replies: GateReplies) -> None:
        self._judge = judge
        self._replies = replies

    @property
    def card(self) -> ModelCard:
        return self._judge.card

    def refuses(self, grading: Grading) -> str | None:
        return self._judge.refuses(grading)

    def forecast(self, gradings: Sequence[Grading]) -> int:
        return self._judge.forecast(gradings)

    def grade(self, gradings: Sequence[Grading]) -> Iterator[tuple[int, Grade]]:
        keys = [grading.key(self._judge) for grading in gradings]
        known = {place: kept.grade for place, key in enumerate(keys) if (kept := self._replies.find(key))}
        for place, grade in known.items():
            if grade is not None:
                yield place, grade
        new = [place for place in range(len(keys)) if known.get(place) is None]
        for index, said in self._judge.grade([gradings[place] for place in new]) if new else ():
            _refuse_failure(said.status, said.reason, self.card.address)
            grade = said.model_copy(update={"latency_ms": 0.0})
            self._replies.keep(_Kept(key=keys[new[index]], grade=grade))
            yield new[index], grade


def _refuse_failure(status: str, reason: str, who: str) -> None:
    if status == "failed":
        raise ModelError(
            f"{who}, which a gate asks, did not answer: {reason}",
            hint="what was answered is kept: the same command goes on from there",
        )
