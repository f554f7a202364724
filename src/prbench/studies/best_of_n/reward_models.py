"""Reward models that are ranked: each is opened once before anything is spent, so that a fault is told at once."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from prbench.config import digest
from prbench.errors import ConfigError
from prbench.files import slug
from prbench.graders import RubricJudge, shares, shares_training
from prbench.models import Model, ModelCard, Positional, Ranker, Rater, alone, is_ranker, load_model
from prbench.studies.best_of_n.config import RewardModelConfig
from prbench.types import Channel, Context


class RewardModel(NamedTuple):
    """A reward model that can take part."""

    name: str
    ranked: RewardModelConfig
    card: ModelCard
    context: Context | None
    """Context in which it is shown the user; None for a noised oracle, which is shown nothing."""
    apart: bool

    @property
    def slug(self) -> str:
        """Name of its file: for people to find, and different for whatever answers differently."""
        readable = slug(self.name)[:60] or "model"
        who = [*self.card.identity.values(), str(self.context)]
        return f"{readable}-{digest(who)[:6]}"

    def load(self) -> Rater | Ranker:
        """Open the model at its address."""
        return scoring(load_model(self.ranked.address, self.ranked.options), self.ranked.address)


def scoring(model: Model, address: str) -> Rater | Ranker:
    """A model as one that scores candidates: together where it can rank a list, else one by one."""
    if is_ranker(model):
        return model
    rater = alone(model)
    if rater is None:
        raise ConfigError(
            f"{address!r} compares two answers; best-of-N needs a score for each",
            hint="name a mode that rates or ranks, for example lm:…#rate, lm:…#rank, chat:…#rate or chat:…#rank",
        )
    return rater


def open_reward_models(models: Iterable[RewardModelConfig], n: int = 2) -> list[RewardModel]:
    """Open each model once, one after another, and see whether it can do what is asked of it.

    Args:
        models: Models that take part.
        n: The most candidates of an item.
    """
    found = [_noised(ranked) if ranked.noise is not None else _real(ranked, n) for ranked in models]
    names = [reward_model.name for reward_model in found]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(
                f"{name!r} stands twice among the models", hint="remove one, or give each a label of its own"
            )
    return found


def refuse_shared(judge: RubricJudge, reward_models: Iterable[RewardModel]) -> None:
    """Refuse a judge that has anything in common with a model that it is to rank."""
    for reward_model in reward_models:
        if not reward_model.apart and (common := shares(judge.card, reward_model.card)):
            raise ConfigError(
                f"judge {judge.card.address!r} and reward model {reward_model.name!r} share {common}",
                hint="judge with a model of another family, or mark the reward model apart = true",
            )


def taught_alike(judge: RubricJudge, reward_models: Iterable[RewardModel]) -> dict[str, str]:
    """The ranked models that learnt from the split that the judge learnt from, by name, and which split that is."""
    found = {one.name: shares_training(judge.card, one.card) for one in reward_models if not one.apart}
    return {name: split for name, split in found.items() if split}


def told_alike(
    judge: RubricJudge,
    reward_models: Iterable[RewardModel],
    reserve: float,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, str]:
    """The models that were taught as the judge was, said aloud; refused where the judge has a share of its own."""
    alike = taught_alike(judge, reward_models)
    if alike and reserve:
        name, split = next(iter(alike.items()))
        raise ConfigError(
            f"reward model {name!r} learned from the share of {split} that is reserved for the judge ({reserve:g})",
            hint=f"train it with --reserve {reserve:g}, over an encoder that was tuned so too, or mark it apart = true",
        )
    if notice := taught_alike_notice(alike):
        say(notice)
    return alike


def taught_alike_notice(alike: Mapping[str, str]) -> str:
    """Return which models learnt from the same answers as the judge; empty where none did.

    Example:
        >>> taught_alike_notice({"personal:a": "split 'train' of 'mirror'"})
        "the judge was trained on split 'train' of 'mirror', and so was personal:a: ..."
    """
    by_split: dict[str, list[str]] = {}
    for name, split in alike.items():
        by_split.setdefault(split, []).append(name)
    return "; ".join(
        f"the judge was trained on {split}, and so {'was' if len(names) == 1 else 'were'} {', '.join(names)}: what "
        "they see alike may be that training and not the user"
        for split, names in by_split.items()
    )


def _real(ranked: RewardModelConfig, n: int) -> RewardModel:
    model = scoring(load_model(ranked.address, ranked.options), ranked.address)
    if isinstance(model, Positional) and model.most_answers is not None and n > model.most_answers:
        raise ConfigError(
            f"{ranked.address!r} ranks at most {model.most_answers} answers, and there are {n} candidates",
            hint=f"-n {model.most_answers}, or a mode that rates each alone",
        )
    card = model.card
    default = Context.parse("profile" if Channel.POSTS in card.reads else "none")
    context = Context.parse(ranked.context) if ranked.context else default
    if not context.needs <= card.reads:
        raise ConfigError(
            f"{ranked.address!r} does not read what context {str(context)!r} would show it",
            hint=f"none={ranked.address}",
        )
    name = ranked.label or (ranked.address if context == default else f"{ranked.address}, {context}")
    return RewardModel(name, ranked, card, context, ranked.apart or context.leaks)


def _noised(ranked: RewardModelConfig) -> RewardModel:
    return RewardModel(ranked.label or ranked.address, ranked, ModelCard(address=ranked.address), None, True)
