"""Plans that are there already: a file of `prbench plan`, in the place of a planner.

A plan is found by the question and the posts that it was made for, not by a pair's id. A pair whose question was never
planned for is refused before anything is asked; a plan that failed or could not be read is a pair without a plan.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from prbench.config import Price, digest
from prbench.contexts import Unfit
from prbench.errors import DataError
from prbench.files import check_model, exists, whole_lines
from prbench.models import ModelCard
from prbench.plan.needs import need_id
from prbench.plan.planner import Plan
from prbench.types import Outcome, Pair, Prompt


def read_plan_file(path: Path) -> list[Plan]:
    """The plans of a file, the last one of each need; a torn last line is passed over."""
    hint = "`prbench plan` writes them"
    if not exists(path, raises=DataError):
        raise DataError(f"cannot read the plans {str(path)!r}: there is no such file", hint=hint)
    found: dict[tuple[str, str], Plan] = {}
    for number, line in whole_lines(path, raises=DataError, hint=hint):
        plan = check_model(line, Plan, f"{path}, line {number}", raises=DataError, hint=hint)
        if not plan.need:
            raise DataError(
                f"{path}, line {number} does not say what the plan is for (no 'need')",
                hint="the plans of a run stay with it; `prbench plan` writes a file for others",
            )
        found[plan.user, plan.need] = plan
    return list(found.values())


class StoredPlans:
    """Plans from a file, in the place of a `Planner`; no model is asked and nothing is spent.

    Args:
        path: A file of plans.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._by_need = {plan.need: plan for plan in read_plan_file(path)}
        self.plans: Mapping[str, Plan] = {plan.key: plan for plan in self._by_need.values()}
        writers = sorted({plan.planner for plan in self._by_need.values()})
        self.card = ModelCard(
            address=", ".join(writers) or "stored plans",
            revision=digest(sorted((plan.key, plan.status, plan.plan) for plan in self._by_need.values()))[:16],
            price=Price(per_million_in=0.0, per_million_out=0.0),
            reusable=False,
        )

    def key(self, pair: Pair) -> str:
        """The key of the plan for this pair; empty where there is none."""
        found = self._by_need.get(need_id(pair))
        return found.key if found else ""

    def check(self, pairs: Sequence[Pair]) -> None:
        """Refuse pairs that were never planned for."""
        missing = [pair for pair in pairs if not self.key(pair)]
        if missing:
            raise DataError(
                f"{str(self.path)!r} has no plan for {len(missing):,} of {len(pairs):,} pairs, {missing[0].id!r} first",
                hint="`prbench plan` with the same --suite, --split and --limit, or none, writes the missing ones",
            )

    def requests(self, pairs: Iterable[Pair]) -> dict[str, Prompt | Unfit]:
        """Return no requests, since all plans are stored."""
        return {}

    def ask(self, prompts: Mapping[str, Prompt]) -> Iterator[tuple[str, Outcome]]:
        """Yield no outcomes, since nothing is asked."""
        return iter(())
