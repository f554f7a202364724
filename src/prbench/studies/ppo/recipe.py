"""A PPO study, from the suite to `study.json`: read it from top to bottom.

One folder holds one study: the same policy, questions and options under every reward model and seed. Trainings continue
where they stopped, and may be made by several commands at once; whoever names a judge draws the conclusion from all
that are finished. What cannot work is refused before the first step is paid for.
"""

import gc
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from prbench.calls import clock
from prbench.data import Suite, load_pairs
from prbench.errors import ConfigError, RunError
from prbench.files import damaged
from prbench.graders import RubricJudge, load_judge, require_able
from prbench.results.folder import RunFolder
from prbench.studies.best_of_n import grades as judging
from prbench.studies.best_of_n.contenders import Contender, call_up, refuse_shared, taught_alike, taught_alike_notice
from prbench.studies.best_of_n.grades import Exam, Judging, examine_judge
from prbench.studies.best_of_n.settings import Ranked
from prbench.studies.ppo.conclusion import Trained, conclude, read_trained, refuse_mixed
from prbench.studies.ppo.held_out import ITEMS, Division, divide
from prbench.studies.ppo.outcome import PPOStudy
from prbench.studies.ppo.settings import PPOSettings, keep_settings

JUDGE = "judge.json"
Say = Callable[[str], None]


def ppo_study(
    settings: PPOSettings,
    rewards: Sequence[Ranked],
    out: Path,
    *,
    train_only: bool = False,
    suite: Suite | None = None,
    judge: RubricJudge | None = None,
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
        say: Hears what is going on.

    Returns:
        What stands in `study.json`; None where nothing was judged, so that nothing is concluded.
    """
    everything = suite if suite is not None else load_pairs(settings.suite)
    contenders = call_up(rewards)
    _refuse_noise(contenders)
    refuse_mixed(out, contenders)
    if judge is None and settings.judge:
        split = settings.train_split
        training = everything.filter(lambda pair: pair.tags.get("split") == split, f"split {split}")
        judge = load_judge(settings.judge, settings.judge_options, training=training)
    if judge is not None:
        refuse_shared(judge, contenders)
    folder = RunFolder(out)
    known = folder.read_json(ITEMS) if (out / ITEMS).exists() else []
    if not isinstance(known, list) or not all(isinstance(item, str) for item in known):
        raise damaged(out / ITEMS, "it is no list of items", raises=RunError, hint="restore the file")
    division = divide(everything, settings, judge, known)
    keep_settings(out, settings)
    folder.write_json(ITEMS, [item.id for item in division.items])
    for contender in contenders:
        _train(settings, contender, everything, division, out, say)
    if judge is None or train_only:
        say("nothing was judged, so nothing is concluded: go on with --judge, and without --train-only")
        return None
    from prbench.train.checkpoint import alone

    with alone(out):
        return _judge(folder, settings, everything, division, judge, say)


def _refuse_noise(contenders: Sequence[Contender]) -> None:
    for contender in contenders:
        if contender.context is None:
            raise ConfigError(
                f"{contender.name!r} knows the judge's grades of stored answers only; it cannot pay new ones",
                hint="noised oracles belong into best-of-N studies",
            )


def _train(
    settings: PPOSettings, contender: Contender, everything: Suite, division: Division, out: Path, say: Say
) -> None:
    """One policy; its reward model is let go before the next one is opened."""
    from prbench.studies.ppo.speaker import load_speaker
    from prbench.studies.ppo.training import Live, Work, train_policy, training_folder

    work = Work(settings, load_speaker(settings.policy, settings.options), division, everything, out)
    live = Live(contender.name, settings.options.steps, say)
    try:
        train_policy(work, contender, contender.load(), live)
    finally:
        live.close()
        gc.collect()
    say(f"{contender.name}, seed {settings.options.seed}: {training_folder(work, contender)}")


def _judge(
    folder: RunFolder, settings: PPOSettings, everything: Suite, division: Division, judge: RubricJudge, say: Say
) -> PPOStudy:
    """Examine the judge, have every answer graded once, and write the study."""
    from prbench.studies.ppo.speaker import load_speaker
    from prbench.studies.ppo.training import Work, answer_untrained

    refuse_mixed(folder.path)  # others may have trained here meanwhile
    trained = read_trained(folder.path, division.items, settings)
    if not trained:
        raise ConfigError(f"there is no finished training below {str(folder.path)!r}", hint="name some with --reward")
    ranked = _contenders(trained)
    refuse_shared(judge, ranked)  # trainings made earlier, by other commands, are held to the same rule
    alike = taught_alike(judge, ranked)
    if notice := taught_alike_notice(alike):
        say(notice)
    exam = _examined(folder, settings, judge, division, say)
    speaker = load_speaker(settings.policy, settings.options)
    untrained = answer_untrained(Work(settings, speaker, division, everything, folder.path))
    together = {
        item.id: [answer for answers in (untrained, *(one.answers for one in trained)) for answer in answers[item.id]]
        for item in division.items
    }
    work = Judging(judge, division.items, together, folder.path / judging.FILE)
    budget = work.budget(exam)
    say(f"judging: {budget.calls:,} calls, about {clock(budget.seconds)} at the speed of the judge's examination")
    graded = work.grade()
    return conclude(folder, settings, everything, division.items, trained, untrained, graded, exam, alike)


def _examined(folder: RunFolder, settings: PPOSettings, judge: RubricJudge, division: Division, say: Say) -> Exam:
    """What the judge is worth; one at chance ends the study here."""
    known = folder.read_json(JUDGE) if (folder.path / JUDGE).exists() else None
    exam = examine_judge(judge, division.labelled, settings.judge_pairs, known, seed=settings.item_seed)
    folder.write_json(JUDGE, exam.model_dump(mode="json"))
    accuracy = exam.judge.accuracy
    ends = "" if accuracy.low is None or accuracy.high is None else f" [{accuracy.low:.3f}, {accuracy.high:.3f}]"
    say(f"judge {exam.judge.address}: {accuracy.value:.3f}{ends} of {accuracy.n:,} labelled pairs right")
    require_able(accuracy, exam.judge.chance, judge=exam.judge.address)
    return exam


def _contenders(trained: Sequence[Trained]) -> list[Contender]:
    return [Contender(one.name, Ranked(address=one.address), one.card, None, one.apart) for one in trained]
