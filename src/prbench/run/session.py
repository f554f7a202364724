"""A run, resolved: suite, model and contexts are loaded and known to fit together; nothing has been asked yet."""

import itertools
import math
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np

from prbench.config import ModelOptions, RunConfig, digest
from prbench.contexts import ContextBuilder, check_prompts, judged_pairs, known_as, questions_aside, user_stances
from prbench.data import Suite, load_pairs
from prbench.errors import ConfigError, did_you_mean
from prbench.files import slug
from prbench.models import (
    BASELINES,
    Adaptive,
    Model,
    Replay,
    is_rater,
    load_encoder,
    load_generator,
    load_model,
)
from prbench.models.baselines import Baseline
from prbench.plan import Plan, Planner, StoredPlans
from prbench.rank import BM25, Dense, PostRanker
from prbench.results import BaselineScores, PairRows, Records, RunFacts
from prbench.run.replay import check_contexts
from prbench.run.work import OpenWork, Planning, plan_work
from prbench.types import CONTEXTS, Context, Judgment

Json = dict[str, Any]

_FEW_PAIRS = 50
"""Number of pairs below which a run says how little it can show."""


class Session:
    """A run that is resolved and ready.

    Args:
        config: Settings of the run.
        model: A model in place of the configuration's address.
        suite: Pairs in place of the configuration's suite.
        address: By which another process can open `model` as well, if there is one.
        hides: Whether `model` leaves out on purpose some of what a context shows; else such a prompt is refused.
    """

    def __init__(
        self,
        config: RunConfig,
        *,
        model: Model | None = None,
        suite: Suite | None = None,
        address: str | None = None,
        hides: bool = False,
    ) -> None:
        self.address = address if model is not None else config.model
        self.everything = suite if suite is not None else _load(config)
        self.config = config = _pinned(config, self.everything)
        self.suite = _set_aside(_selected(self.everything, config), self.everything, config)
        self.suite.check()
        self.model = model if model is not None else load_model(config.model, config.options)
        contexts = [Context.parse(name) for name in config.contexts]
        reads = self.model.card.reads
        lacking = {} if isinstance(self.model, Replay) else _lacking(self.suite, self.everything) | self._unjudged()
        self.notes = _notes(self.suite, [lacking[c.name] for c in contexts if c.name in lacking])
        """Notes that a user should know of the suite before reading numbers."""
        self.contexts = [c for c in contexts if c.needs <= reads and c.name not in lacking]
        self.unsupported = [c for c in contexts if c not in self.contexts]
        if not self.contexts and any(context.needs <= reads for context in contexts):
            raise ConfigError(
                f"suite {self.suite.record.name!r} has nothing to show under {', '.join(config.contexts)}: "
                f"{'; '.join(dict.fromkeys(lacking.values()))}",
                hint="add --context none",
            )
        if not self.contexts:
            raise ConfigError(
                f"{self.model.card.address!r} does not read what {', '.join(config.contexts)} would show it",
                hint="add --context none",
            )
        if isinstance(self.model, Replay):
            check_contexts(self.model, self.contexts, self.model.card.address)
        elif not hides:
            self._check_prompts(config.options.template)
        _check_tags(self.suite, config.by)
        self.plans: dict[str, Plan] = {}

    @cached_property
    def identity(self) -> Json:
        """Everything that can change an answer."""
        fingerprints = [suite.record.fingerprint for suite in (self.suite, self.everything)]
        return {**self.config.identity(), "card": self.model.card.identity, "fingerprints": fingerprints}

    def default_folder(self) -> Path:
        """`runs/<suite>-<model>-<8 hex of the resolved configuration>`."""
        names = (self.suite.record.name, self.model.card.address.partition("@http")[0])
        suite, model = (slug(Path(name).name)[:40] or "run" for name in names)
        return Path("runs") / f"{suite}-{model}-{digest(self.identity)[:8]}"

    @cached_property
    def ranker(self) -> PostRanker:
        """Ranker that chooses posts."""
        if self.config.ranker == "bm25":
            return BM25()
        return Dense(load_encoder(self.config.ranker, self._helping))

    @property
    def _helping(self) -> ModelOptions:
        """Options for models beside the evaluated one: their code is not trusted, their weights are not rounded."""
        return self.config.options.model_copy(update={"trust_remote_code": False, "quantize": None})

    @cached_property
    def planner(self) -> Planner | StoredPlans | None:
        """Planner that writes plans, or the stored plans, where a context needs them."""
        if not any(context.name in ("plan", "profile+plan") for context in self.contexts):
            return None
        if self.config.plans is not None:
            stored = StoredPlans(self.config.plans)
            stored.check(self.suite)
            self.plans.update(stored.plans)
            return stored
        own = self.config.planner is None
        options = self.config.options if own else self._helping
        return Planner(load_generator(self.config.planner or self.config.model, options), self.ranker)

    @cached_property
    def judged(self) -> dict[str, tuple[Judgment, ...]]:
        """Labelled pairs of each user, as many as any context shows."""
        most = _most_pairs(self.config)
        return judged_pairs(self.everything, self.suite, most, self.config.seed) if most else {}

    @property
    def adapts(self) -> bool:
        """Whether the model is fitted to labelled pairs where a context has them, instead of being shown them."""
        wanted = any(context.name == "pairs" for context in self.contexts)
        return wanted and isinstance(self.model, Adaptive) and bool(getattr(self.model, "adapts", True))

    def _unjudged(self) -> dict[str, str]:
        why = "no user has judged pairs besides those that are scored"
        return {} if any(self.judged.values()) else {"pairs": why}

    def _check_prompts(self, template: Path | None) -> None:
        """Refuse a prompt that hides what decides; pairs that a model is fitted to need not be in it."""
        for context in self.contexts:
            if not (self.adapts and context.name == "pairs"):
                check_prompts(self.model, context, template, question=template is not None)

    def _fit_users(self) -> None:
        """Let an adaptive model learn each user's pairs, under a name of their own for each number of them."""
        for context in self.contexts:
            for user, judgments in self.judged.items():
                if context.name == "pairs" and judgments[: context.k]:
                    some = judgments[: context.k]
                    cast(Adaptive, self.model).fit_user(known_as(user, some), some)

    def work(self, done: Records | None = None, planning: Planning | None = None) -> OpenWork:
        """Return the work that is still to be asked; every prompt is built here, before the first call."""
        return plan_work(
            self.suite,
            self.model,
            self.contexts,
            self.builder(),
            both_orders=self.config.orders == "both",
            repeats=self.config.repeats,
            seed=self.config.seed,
            done=done,
            allow_unfit=self.config.allow_unfit,
            planning=planning,
        )

    def builder(self) -> ContextBuilder:
        """Builds what the model is shown, with the plans that are there by now."""
        planner = self.planner
        plans = (
            {}
            if planner is None
            else {
                pair.id: plan.plan for pair in self.suite if (plan := self.plans.get(planner.key(pair))) and plan.plan
            }
        )
        if self.adapts:
            self._fit_users()
        return ContextBuilder(
            self.everything,
            self.model,
            ranker=self.ranker,
            seed=self.config.seed,
            plans=plans,
            judged=self.judged,
            adapts=self.adapts,
        )

    @property
    def facts(self) -> RunFacts:
        """Return the facts that the result needs besides rows and records."""
        model = self.model
        return RunFacts(
            card=model.card,
            dataset=self.suite.record,
            stances=user_stances(self.everything),
            contexts=tuple(map(str, self.contexts)),
            unsupported=tuple(map(str, self.unsupported)),
            expected=model.expected if isinstance(model, Replay) else self._orders * self.config.repeats,
            one_order=self._orders == 1 and not is_rater(model) and not isinstance(model, Replay),
        )

    @property
    def _orders(self) -> int:
        return 1 if is_rater(self.model) or self.config.orders == "first" else 2

    @property
    def rows(self) -> PairRows:
        """Return the facts of each pair that the statistics need."""
        return PairRows.of_suite(self.suite)

    def baselines(self) -> BaselineScores:
        """Scores of the content-blind baselines on the run's pairs."""
        scores = BaselineScores()
        ids, asked, chosen, rejected = (self.suite.column(name) for name in ("id", "question", "chosen", "rejected"))
        # Both halves of a couple have the same answers, which are scored once; question by question is fastest.
        by_question: dict[str, set[str]] = {question: set() for question in asked}
        for question, *both in zip(asked, chosen, rejected, strict=True):
            by_question[question].update(both)
        answers = [(question, answer) for question, found in by_question.items() for answer in found]
        number = {answer: place for place, answer in enumerate(answers)}
        one, two = ([number[answer] for answer in zip(asked, texts, strict=True)] for texts in (chosen, rejected))
        del number
        for name in BASELINES:
            score = cast(Baseline, load_model(name)).score
            found = np.array([score(*answer) for answer in answers], dtype=np.float64)
            scores.add_columns(
                {
                    "baseline": itertools.repeat(name, len(ids)),
                    "pair": ids,
                    "chosen_score": found[one].tolist(),
                    "rejected_score": found[two].tolist(),
                }
            )
        return scores


def _load(config: RunConfig) -> Suite:
    return load_pairs(config.suite, columns=config.columns or None, revision=config.revision)


def _pinned(config: RunConfig, suite: Suite) -> RunConfig:
    """The configuration with the version of the suite, so that a run says which one it was."""
    if suite.record.source != "embedded" or not suite.record.version:
        return config
    return config.model_copy(update={"suite": suite.record.full_name})


def _selected(suite: Suite, config: RunConfig) -> Suite:
    splits = suite.record.splits
    if config.split is not None and set(splits) - {""}:
        if config.split not in splits:
            raise ConfigError(
                f"suite {suite.record.name!r} has no split {config.split!r}", hint=did_you_mean(config.split, splits)
            )
        suite = suite.keep((split == config.split for split in suite.tag("split")), f"split {config.split}")
    if not len(suite):
        raise ConfigError(f"suite {suite.record.name!r} has no pairs to evaluate")
    return suite if config.limit is None else suite.limit(config.limit, config.seed)


def _most_pairs(config: RunConfig) -> int:
    parsed = [Context.parse(name) for name in config.contexts]
    return max((context.k or 0 for context in parsed if context.name == "pairs"), default=0)


def _set_aside(suite: Suite, everything: Suite, config: RunConfig) -> Suite:
    """Return the suite without questions whose pairs are users' histories, so that all contexts score the same."""
    if not (most := _most_pairs(config)):
        return suite
    aside = questions_aside(everything, suite, most, config.seed)
    if not aside:
        return suite
    note = f"{len(aside)} questions set aside as labelled pairs"
    return suite.keep((question not in aside for question in suite.column("question")), note)


def _lacking(suite: Suite, everything: Suite) -> dict[str, str]:
    """Contexts that no pair of this suite can have, and why."""
    lacking: dict[str, str] = {}
    if not any(suite.column("profile")):
        why = "the suite has no profiles, so nothing of the user can be shown"
        lacking |= {name: why for name, kind in CONTEXTS.items() if kind.source == "profile"}
    elif alone := _alone(suite, everything):
        lacking["other"] = f"{alone} is the only user there, so there is no other user to show under 'other'"
    if not any(suite.column("rubric_aspects")):
        lacking["oracle"] = "the suite has no rubric aspects to show under 'oracle'"
    return lacking


def _alone(suite: Suite, everything: Suite) -> str | None:
    """Return the user of a split that has no other.

    The posts of all users are asked for, not only those of the run's pairs.
    """
    users: dict[str | None, set[str]] = {split: set() for split in suite.tag("split")}
    for split, user in zip(everything.tag("split"), everything.column("user"), strict=True):
        if split in users:
            users[split].add(user)
    return next((repr(next(iter(found))) for found in users.values() if len(found) == 1), None)


def _notes(suite: Suite, lacking: Sequence[str]) -> list[str]:
    notes = list(dict.fromkeys(lacking))
    if len(suite) < _FEW_PAIRS:
        half_width = 98 / math.sqrt(len(suite))
        notes.append(
            f"only {len(suite)} pairs: an accuracy is uncertain by about ±{min(half_width, 50):.0f} points, "
            "so nothing short of a landslide shows"
        )
    return notes


def _check_tags(suite: Suite, by: tuple[str, ...]) -> None:
    for tag in by:
        if tag not in suite.tags:
            raise ConfigError(f"no pair has the tag {tag!r}", hint=did_you_mean(tag, sorted(suite.tags)))
