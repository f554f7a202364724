"""Plans on disk: those of a run, and files of plans of their own (`prbench plan`).

Each plan is a line as soon as it is there; what is paid for is kept first. The same command asks only for what is
missing or has failed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from prbench.calls import Budget, CallCache
from prbench.calls.budget import FILE as SPEND
from prbench.config import ModelOptions
from prbench.contexts import Unfit
from prbench.errors import MissingExtraError, PrbenchError, RunError, install_hint
from prbench.files import Appender, locked
from prbench.models import load_encoder
from prbench.models.local import weights
from prbench.plan import (
    ENCODER,
    THRESHOLD,
    Matcher,
    Need,
    Plan,
    Planner,
    StoredPlans,
    hold,
    needs_of,
    read_plan,
    read_plan_file,
)
from prbench.results import QUALITY, RunFolder, read_plans, read_quality
from prbench.run.session import Session
from prbench.types import Outcome, Prompt

Json = dict[str, Any]
_TYPICAL_PLAN_TOKENS = 80
"""Typical length of a plan, for an estimate of cost; the true number is only known afterwards."""
_BYTES_PER_TOKEN = 4.0


def make_plans(session: Session, folder: RunFolder, cache: CallCache | None, budget: Budget) -> None:
    """Write the plans that a run lacks, one line each as they come."""
    planner = session.planner
    if planner is None:
        return
    if isinstance(planner, StoredPlans):
        _take_plans(session, planner, folder)
        return
    session.plans.update(read_plans(folder))
    wanted = planner.requests(session.suite)
    missing = {
        key: wanted[key] for key in wanted if (known := session.plans.get(key)) is None or known.status == "failed"
    }
    left = len(missing)
    with Appender(folder.path / "plans.jsonl") as appender, budget.metering("plans"):
        for key, outcome in plan_outcomes(planner, missing, cache):
            session.plans[key] = read_plan(key, outcome)
            appender.append(session.plans[key])
            left -= 1
            budget.take(outcome.cost_usd, more=left > 0)


def _take_plans(session: Session, stored: StoredPlans, folder: RunFolder) -> None:
    """Copy the plans of a file that this run needs into its folder, so that it stands on its own."""
    needed = {stored.key(pair) for pair in session.suite}
    known = read_plans(folder)
    with Appender(folder.path / "plans.jsonl") as appender:
        for key in sorted(needed - known.keys()):
            appender.append(stored.plans[key])


def plan_outcomes(
    planner: Planner, missing: Mapping[str, Prompt | Unfit], cache: CallCache | None
) -> Iterable[tuple[str, Outcome]]:
    """Replies under their keys: from the cache where it has them, else from the planner."""
    cache = cache if planner.card.reusable else None
    found = {} if cache is None else cache.find(list(missing))
    for key, outcome in found.items():
        yield key, outcome.model_copy(update={"cost_usd": 0.0})
    prompts: dict[str, Prompt] = {}
    for key, prompt in missing.items():
        if isinstance(prompt, Unfit):
            yield key, Outcome.invalid(prompt.reason)
        elif key not in found:
            prompts[key] = prompt
    for key, outcome in planner.ask(prompts) if prompts else ():
        if cache is not None:
            cache.keep(key, outcome, at_once=True)
        yield key, outcome


class PlanFile:
    """A file of plans that one planner writes.

    Args:
        path: Path of the file.
        planner: Planner that writes.
        needs: Needs to plan for.
    """

    def __init__(self, path: Path, planner: Planner, needs: Sequence[Need]) -> None:
        self.path = path
        self._planner = planner
        self._needs = needs
        self._keys = {(need.pair.user, need.id): planner.key(need.pair) for need in needs}
        self.plans: dict[tuple[str, str], Plan] = {}
        if path.exists():
            self.plans = {(plan.user, plan.need): plan for plan in read_plan_file(path)}
        self._refuse_foreign()

    @property
    def missing(self) -> dict[str, Prompt | Unfit]:
        """Return the requests that must be asked still, each distinct one once."""
        open_needs = (need for need in self._needs if not self._is_there(need))
        return {self._keys[need.pair.user, need.id]: self._planner.prompt(need.pair) for need in open_needs}

    @property
    def by_need(self) -> dict[str, Plan]:
        """The plans of the needs, as far as they are there."""
        return {need.id: plan for need in self._needs if (plan := self.plans.get((need.pair.user, need.id)))}

    def budget(self, limit_usd: float | None = None) -> Budget:
        """Open the budget of this file: its cost over all starts, and its limit; kept beside it."""
        spent = sum(plan.cost_usd for plan in self.plans.values())
        return Budget(self.path.with_name(f"{self.path.stem}.{SPEND}"), limit_usd, spent_usd=spent)

    def forecast(self, cache: CallCache | None) -> Json:
        """Return what is still to be done, and what it may cost; asks nothing."""
        missing = self.missing
        cached = cache.find(list(missing)) if cache is not None and self._planner.card.reusable else {}
        prompts = [one for key, one in missing.items() if key not in cached and not isinstance(one, Unfit)]
        tokens = sum(self._tokens(prompt) for prompt in prompts)
        price = self._planner.card.price
        return {
            "plans": len(self._needs),
            "to_write": len(prompts),
            "in_cache": len(cached),
            "tokens_in": tokens,
            "cost_usd": None if price is None else price.cost_usd(tokens, len(prompts) * _TYPICAL_PLAN_TOKENS),
        }

    def _tokens(self, prompt: Prompt) -> int:
        counted = self._planner.length(prompt)
        return counted or round(sum(len(message.content.encode()) for message in prompt.messages) / _BYTES_PER_TOKEN)

    def write(
        self,
        cache: CallCache | None = None,
        budget: Budget | None = None,
        listener: Callable[[int], None] | None = None,
    ) -> None:
        """Write what is missing; `listener` hears how many requests are left."""
        budget = budget or Budget()
        waiting: dict[str, list[Need]] = {}
        for need in self._needs:
            if not self._is_there(need):
                waiting.setdefault(self._keys[need.pair.user, need.id], []).append(need)
        missing = self.missing
        left = len(missing)
        with self._alone(), Appender(self.path) as appender, budget.metering("plans"):
            for key, outcome in plan_outcomes(self._planner, missing, cache):
                left -= 1
                for place, need in enumerate(waiting[key]):
                    plan = self._plan(need, key, outcome if not place else outcome.model_copy(update={"cost_usd": 0.0}))
                    self.plans[need.pair.user, need.id] = plan
                    appender.append(plan)
                appender.sync()
                if listener is not None:
                    listener(left)
                budget.take(outcome.cost_usd, more=left > 0)

    def _plan(self, need: Need, key: str, outcome: Outcome) -> Plan:
        place = {"need": need.id, "user": need.pair.user, "question": need.pair.question}
        return read_plan(key, outcome).model_copy(update={**place, "planner": self._planner.card.address})

    def _is_there(self, need: Need) -> bool:
        plan = self.plans.get((need.pair.user, need.id))
        return plan is not None and plan.status != "failed"

    def _refuse_foreign(self) -> None:
        if foreign := sorted({plan.planner for plan in self.plans.values()} - {self._planner.card.address}):
            raise RunError(
                f"{str(self.path)!r} holds plans of {foreign[0]!r}, not of {self._planner.card.address!r}",
                hint="give these plans a file of their own with -o",
            )
        for need in self._needs:
            plan = self.plans.get((need.pair.user, need.id))
            if plan is not None and plan.key != self._keys[need.pair.user, need.id]:
                raise RunError(
                    f"{str(self.path)!r} holds plans of {plan.planner!r}, made with another model, prompt or setting",
                    hint="give these plans a file of their own with -o",
                )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        busy = RunError(f"another process is writing {str(self.path)!r}", hint="wait for it, or give -o another file")
        with locked(self.path.with_name(f".{self.path.name}.lock"), busy):
            yield


def measure_plans(session: Session, folder: RunFolder) -> None:
    """Hold a run's plans against the true aspects and keep the counts, unless they are there; needs the encoder.

    A run is not made to fetch weights for a figure beside its own: where they are not there, the result says so.
    """
    planner = session.planner
    if planner is None:
        return
    needs = [need for need in needs_of(session.suite, session.everything) if need.aspects]
    plans = {need.id: plan for need in needs if (plan := session.plans.get(planner.key(need.pair)))}
    known = read_quality(folder)
    if known is not None and {(row.need, row.status) for row in known.rows} == {
        (need.id, plans[need.id].status if need.id in plans else "failed") for need in needs
    }:
        return
    if needs and weights.is_there(ENCODER.partition(":")[2]):
        with suppress(MissingExtraError):
            held = hold(needs, plans, open_matcher(), needs_of(session.everything), session.config.seed)
            folder.write_json(QUALITY, held.model_dump(mode="json"))


def open_matcher(encoder: str = ENCODER, threshold: float | None = None) -> Matcher:
    """Open the encoder by which lines and aspects are matched; fetches it where it is not there."""
    return Matcher(load_encoder(encoder, ModelOptions()), THRESHOLD if threshold is None else threshold)


def fetch_matcher() -> str | None:
    """Have the encoder at hand; returns why it cannot be, where it cannot."""
    try:
        weights.pull(ENCODER.partition(":")[2])
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except PrbenchError as error:
        return error.message
    except ImportError:
        return f"torch and transformers are not installed ({install_hint('hf')})"
    return None
