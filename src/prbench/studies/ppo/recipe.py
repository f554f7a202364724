"""A PPO study, from the suite to `study.json`: read it from top to bottom.

One folder holds one study: the same policy, questions and options under every reward model and seed. Trainings continue
where they stopped, and may be made by several commands at once; a command that names a judge draws the conclusion from
all that are finished. What cannot work is refused before the first step is paid for.
"""

import gc
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from prbench.calls import Budget, ProgressLine, clock
from prbench.data import Suite, load_pairs
from prbench.errors import ConfigError, RunError
from prbench.files import damaged
from prbench.graders import RubricJudge, load_judge
from prbench.results import RunFolder
from prbench.studies.best_of_n import grades as judging
from prbench.studies.best_of_n.config import RewardModelConfig
from prbench.studies.best_of_n.grades import Judging
from prbench.studies.best_of_n.recipe import examined, study_budget
from prbench.studies.best_of_n.reward_models import (
    RewardModel,
    open_reward_models,
    refuse_shared,
    told_alike,
)
from prbench.studies.ppo.checkpoint import TrainingStep
from prbench.studies.ppo.conclusion import Trained, conclude, read_trained, refuse_mixed
from prbench.studies.ppo.config import PPOStudyConfig, keep_settings
from prbench.studies.ppo.held_out import ITEMS, HeldOutDivision, divide
from prbench.studies.ppo.outcome import PPOStudy
from prbench.studies.ppo.rewards import TextReward, TrueReward
from prbench.types import Context

Say = Callable[[str], None]


def ppo_study(
    settings: PPOStudyConfig,
    rewards: Sequence[RewardModelConfig],
    out: Path,
    *,
    train_only: bool = False,
    suite: Suite | None = None,
    judge: RubricJudge | None = None,
    max_cost_usd: float | None = None,
    say: Say = lambda line: print(line, file=sys.stderr, flush=True),
) -> PPOStudy | None:
    """Train a policy with each reward model, then judge all that are finished.

    Args:
        settings: What all trainings have in common.
        rewards: Reward models to train with now; none to judge what is there.
        out: Folder of the study.
        train_only: Whether to stop before the judging; a judge that is named then only chooses what it can grade.
        suite: Pairs in place of the suite that the settings name.
        judge: Who judges, in place of the settings' judge.
        max_cost_usd: Stop, resumably, once judging has cost as much.
        say: Hears what is going on.

    Returns:
        What stands in `study.json`; None where nothing was judged, so that nothing is concluded.
    """
    everything = suite if suite is not None else load_pairs(settings.suite)
    reward_models = [_with_context(one) for one in open_reward_models(rewards)]
    refuse_mixed(out, reward_models)
    if judge is None and settings.judge:
        split = settings.train_split
        training = everything.filter(lambda pair: pair.tags.get("split") == split, f"split {split}")
        judge = load_judge(settings.judge, settings.judge_options, training=training, reserve=settings.reserve)
    if judge is not None:
        refuse_shared(judge, reward_models)
        told_alike(judge, reward_models, settings.reserve)
    folder = RunFolder(out)
    known = folder.read_json(ITEMS) if (out / ITEMS).exists() else []
    if not isinstance(known, list) or not all(isinstance(item, str) for item in known):
        raise damaged(out / ITEMS, "it is no list of items", raises=RunError, hint="restore the file")
    division = divide(everything, settings, judge, known)
    keep_settings(out, settings)
    folder.write_json(ITEMS, division.chosen)
    for reward_model in reward_models:
        _train(settings, reward_model, judge, everything, division, out, say)
    if judge is None or train_only:
        say("nothing was judged, so nothing is concluded: go on with --judge, and without --train-only")
        return None
    from prbench.train.checkpoint import alone

    with alone(out), study_budget(folder, max_cost_usd) as budget:
        found = _judge(folder, settings, everything, division, judge, budget, say)
        if budget.spent_usd:
            say(f"spent {budget.spending.words()}")
        return found


def _with_context(reward_model: RewardModel) -> RewardModel:
    """The true score stands under `oracle`, apart from all others; an oracle with noise knows stored answers only."""
    noise = reward_model.ranked.noise
    if noise:
        raise ConfigError(
            f"{reward_model.name!r} knows the judge's grades of stored answers only; it cannot pay new ones",
            hint="noised oracles belong into best-of-N studies; noised-oracle:0 pays the judge's own grade",
        )
    return reward_model if noise is None else reward_model._replace(context=Context.parse("oracle"))


def _reward(reward_model: RewardModel, judge: RubricJudge | None, everything: Suite) -> TextReward:
    """Return the source of rewards: the judge itself where the true score is asked for."""
    if reward_model.ranked.noise is None:
        assert reward_model.context is not None  # noqa: S101  (a real model has one)
        return TextReward(everything, reward_model.load(), reward_model.context)
    if judge is None:
        raise ConfigError(f"{reward_model.name!r} pays what a judge says, and none is named", hint="--judge ADDRESS")
    return TrueReward(list(everything), judge, reward_model.card)


def _train(
    settings: PPOStudyConfig,
    reward_model: RewardModel,
    judge: RubricJudge | None,
    everything: Suite,
    division: HeldOutDivision,
    out: Path,
    say: Say,
) -> None:
    """One policy; its reward model is let go before the next one is opened."""
    from prbench.studies.ppo.speaker import load_speaker
    from prbench.studies.ppo.training import StudySetup, step_status, train_policy, training_folder

    work = StudySetup(settings, load_speaker(settings.policy, settings.options), division, everything, out)
    with ProgressLine(f"{reward_model.name}, steps", say, every_s=0, terminal=sys.stderr) as line:

        def heard(step: TrainingStep, reward: TextReward) -> None:
            line.show(step.step, settings.options.steps, lambda: step_status(step, reward.dropped))

        train_policy(work, reward_model, _reward(reward_model, judge, everything), heard)
    gc.collect()
    say(f"{reward_model.name}, seed {settings.options.seed}: {training_folder(work, reward_model)}")


def _judge(
    folder: RunFolder,
    settings: PPOStudyConfig,
    everything: Suite,
    division: HeldOutDivision,
    judge: RubricJudge,
    budget: Budget,
    say: Say,
) -> PPOStudy:
    """Examine the judge, have every answer graded once, and write the study."""
    from prbench.studies.ppo.speaker import load_speaker
    from prbench.studies.ppo.training import StudySetup, answer_untrained

    refuse_mixed(folder.path)  # others may have trained here meanwhile
    trained = read_trained(folder.path, division.items, settings)
    if not trained:
        raise ConfigError(f"there is no finished training below {str(folder.path)!r}", hint="name some with --reward")
    ranked = _reward_models(trained)
    refuse_shared(judge, ranked)  # trainings made earlier, by other commands, are held to the same rule
    alike = told_alike(judge, ranked, settings.reserve, say)
    with budget.metering("the judge's examination"):
        exam = examined(folder, judge, division.labelled, settings.judge_pairs, settings.item_seed, say)
    speaker = load_speaker(settings.policy, settings.options)
    untrained = answer_untrained(StudySetup(settings, speaker, division, everything, folder.path))
    together = {
        item.id: [answer for answers in (untrained, *(one.answers for one in trained)) for answer in answers[item.id]]
        for item in division.items
    }
    work = Judging(judge, division.items, together, folder.path / judging.FILE)
    open_calls = work.estimate(exam)
    took = clock(open_calls.seconds)
    say(f"judging: {open_calls.calls:,} calls, about {took} at the speed of the judge's examination")
    graded = work.grade(ProgressLine("judging", say).at, budget)
    return conclude(folder, settings, everything, division.items, trained, untrained, graded, exam, alike)


def _reward_models(trained: Sequence[Trained]) -> list[RewardModel]:
    return [RewardModel(one.name, RewardModelConfig(address=one.address), one.card, None, one.apart) for one in trained]
