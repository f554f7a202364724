"""A PPO study as a table: what each reward model made of the policy, against the policy as it was."""

from prbench.show import Number, Table, count
from prbench.studies.best_of_n.gain_tables import ranged
from prbench.studies.best_of_n.reward_models import taught_alike_notice
from prbench.studies.ppo.config import PPOStudyConfig
from prbench.studies.ppo.outcome import PolicyOutcome, PPOStudy


def ppo_tables(found: PPOStudy) -> list[Table]:
    """Everything that is printed of a study.

    Args:
        found: What `ppo_study` returns and `study.json` holds.
    """
    columns = [
        "reward model",
        "context",
        "score [95 %]",
        "gain over untrained [95 %]",
        "best is ahead by [95 %]",
        "reward, first → last steps",
        "KL",
        "words",
        "dropped",
        "degenerate",
        "seeds",
    ]
    title = (
        f"{found.details.settings.options.algorithm.upper()} on {found.suite} with {found.policy}: true score, 0 to 2, "
        f"of {len(found.items):,} held-out items"
    )
    return [
        Table(
            title,
            columns,
            [_row(name, found.models[name]) for name in ordered(found)],
            _notes(found),
            first_numeric=2,
        )
    ]


def ordered(found: PPOStudy) -> list[str]:
    """Reward models, best first; those apart at the end."""
    models = found.models
    return sorted(models, key=lambda name: (models[name].apart, -(models[name].score.value or 0.0), name))


def _row(name: str, model: PolicyOutcome) -> list[str]:
    seeds = list(model.details.seeds.values())
    return [
        f"{name} *" if model.apart else name,
        model.context,
        ranged(model.score),
        ranged(model.details.gain, signed=True),
        "" if model.details.behind is None else ranged(model.details.behind, signed=True),
        " · ".join(f"{_short(seed.reward_first)} → {_short(seed.reward_last)}" for seed in seeds),
        _mean([seed.kl for seed in seeds], 1),
        _mean([seed.words for seed in seeds], 0),
        count(sum(seed.dropped for seed in seeds)),
        count(sum(seed.degenerate for seed in seeds)),
        count(len(seeds)),
    ]


def _mean(values: list[float], digits: int) -> Number:
    value = sum(values) / len(values)
    return Number(f"{value:.{digits}f}", value)


def _short(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _taught(settings: PPOStudyConfig) -> str:
    if settings.people:
        return (
            f"a policy for each of {settings.people} people of split {settings.test_split!r}, judged on other questions"
        )
    return f"trained on split {settings.train_split!r}, judged on {settings.test_split!r}"


def _notes(found: PPOStudy) -> list[str]:
    settings, options = found.details.settings, found.details.settings.options
    notes = [
        found.judge.told("labelled pairs"),
        f"untrained policy: {ranged(found.details.untrained.score)}",
        f"{options.steps} steps of {options.prompts} questions × {options.rollouts} answers of at most "
        f"{options.new_tokens} tokens; {_taught(settings)} ({settings.answers} answers to each item)",
        "KL: of a whole answer to the base model, in the last step; dropped: answers that got no reward; "
        "degenerate: answers to held-out items that are empty or punctuation alone",
    ]
    if ungraded := sum(found.details.ungraded.values()):
        notes.append(f"{ungraded:,} answers could not be graded and are in no score")
    if notice := taught_alike_notice(found.details.taught_alike):
        notes.append(notice)
    for name, seeds in found.details.left_out.items():
        empty, answers = sum(seed.empty for seed in seeds.values()), sum(seed.answers for seed in seeds.values())
        notes.append(f"left out: {name}, no item with a graded answer in every seed ({empty:,} of {answers:,} empty)")
    if any(model.apart for model in found.models.values()):
        notes.append("* apart: shown, but in no ranking and no correlation")
    return notes
