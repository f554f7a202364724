"""Conclusion of a PPO study: `study.json`, one score per reward model, from whatever trainings are finished.

Seeds of one reward model are averaged item by item; the untrained policy stands beside them, and every gain over it is
paired on the same items.
"""

import math
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from prbench._version import __version__
from prbench.data import Suite
from prbench.errors import RunError
from prbench.graders import HIGHEST
from prbench.models import ModelCard
from prbench.results import RunFolder
from prbench.stats import Clusters, Estimate, mean_interval
from prbench.studies.best_of_n.candidates import Candidate, read_candidates
from prbench.studies.best_of_n.grades import Exam, Graded
from prbench.studies.best_of_n.items import StudyItem
from prbench.studies.best_of_n.reward_models import RewardModel
from prbench.studies.best_of_n.scores import ItemCandidate
from prbench.studies.ppo.checkpoint import HISTORY, TrainingStep, read_history
from prbench.studies.ppo.config import PPOStudyConfig
from prbench.studies.ppo.held_out import ANSWERS, answer_keys
from prbench.studies.ppo.outcome import PolicyDetails, PolicyOutcome, PPODetails, PPOStudy, SeedOutcome, Untrained
from prbench.studies.ppo.rewards import Key, reward_key
from prbench.studies.study import FILE as STUDY
from prbench.studies.study import Labels, Study
from prbench.texts import is_degenerate
from prbench.types import Frozen

Json = dict[str, Any]
TRAINING = "training.json"
TRAININGS = "trainings"


class Trained(NamedTuple):
    """A finished training and its answers to the held-out items."""

    name: str
    address: str
    context: str
    apart: bool
    seed: int
    card: ModelCard
    folder: Path
    answers: Mapping[str, Sequence[Candidate]]
    """Answers to each item."""
    history: Sequence[TrainingStep]


class TrainingRecord(Frozen):
    """`training.json` of a finished training: who rewarded it."""

    name: str
    address: str
    context: str
    apart: bool
    seed: int
    card: ModelCard
    who: str
    """Content hash of everything that the training depends on."""


def _record(file: Path) -> TrainingRecord:
    return RunFolder(file.parent).read_model(file.name, TrainingRecord)


def read_trained(out: Path, items: Sequence[StudyItem], settings: PPOStudyConfig) -> list[Trained]:
    """All finished trainings of a study, by name and seed."""
    found = []
    for file in sorted((out / TRAININGS).glob(f"*/{TRAINING}")):
        record, known = _record(file), read_candidates(file.parent / ANSWERS)
        keys = answer_keys(items, settings, record.who)
        if any(key not in known for listed in keys.values() for key in listed):
            raise RunError(f"{str(file.parent)!r} lacks some of its answers", hint="run its training's command again")
        found.append(
            Trained(
                **record.model_dump(include={"name", "address", "context", "apart", "seed"}),
                card=record.card,
                folder=file.parent,
                answers={item: [known[key] for key in listed] for item, listed in keys.items()},
                history=read_history(file.parent / HISTORY),
            )
        )
    return sorted(found, key=lambda one: (one.name, one.seed))


def refuse_mixed(out: Path, coming: Iterable[RewardModel] = ()) -> None:
    """Refuse one name for two reward models: policies trained with two revisions have no mean in common.

    Args:
        out: Folder of the study.
        coming: Who is to be trained with next; it, too, must be who went by its name before.
    """
    known: dict[str, tuple[Key, str]] = {}
    for file in sorted((out / TRAININGS).glob(f"*/{TRAINING}")):
        record = _record(file)
        _refuse_other(known, record.name, reward_key(record.card, record.context), f"in {str(file.parent)!r}")
    for reward_model in coming:
        _refuse_other(known, reward_model.name, reward_key(reward_model.card, str(reward_model.context)), "now")


def _refuse_other(known: dict[str, tuple[Key, str]], name: str, who: Key, where: str) -> None:
    before, place = known.setdefault(name, (who, where))
    if differing := [key for key, value in who.items() if before[key] != value]:
        key = differing[0]
        raise RunError(
            f"{name!r} stands for two reward models: its {key} is {before[key]!r} {place}, and {who[key]!r} {where}",
            hint="remove the training that is out of date, or give the other a study of its own with -o",
        )


def conclude(
    folder: RunFolder,
    settings: PPOStudyConfig,
    everything: Suite,
    items: Sequence[StudyItem],
    trained: Sequence[Trained],
    untrained: Mapping[str, Sequence[Candidate]],
    graded: Mapping[ItemCandidate, Graded],
    exam: Exam,
    alike: Mapping[str, str],
) -> PPOStudy:
    """Compute all scores and write `study.json`."""
    grades = {place: found.grade.score for place, found in graded.items()}
    ungraded = Counter(found.grade.reason for found in graded.values() if found.grade.status != "ok")
    start = item_scores(untrained, grades)
    by_name: dict[str, list[Trained]] = defaultdict(list)
    for one in trained:
        by_name[one.name].append(one)
    labels = {item.id: item for item in items}
    outcomes = _held_against_best(
        {name: _outcome(runs, start, grades, labels) for name, runs in by_name.items()}, labels
    )
    study = PPOStudy(
        kind="ppo",
        suite=everything.record.name,
        policy=settings.policy,
        endpoint=f"mean aspect score from 0 to 2 of the policy after {settings.options.steps} steps of "
        f"{settings.options.algorithm.upper()}, on held-out "
        + ("questions of its own person" if settings.people else "users and questions"),
        judge=exam.judge,
        items={item.id: Labels(unit=item.unit, question=item.question) for item in items},
        models={name: outcome for name, outcome in outcomes.items() if outcome is not None},
        details=PPODetails(
            prbench=__version__,
            settings=settings,
            fingerprint=everything.record.fingerprint,
            ungraded=dict(sorted(ungraded.items())),
            taught_alike=dict(alike),
            left_out={
                name: _seeds(by_name[name], grades) for name, outcome in sorted(outcomes.items()) if outcome is None
            },
            untrained=Untrained(score=_mean(start, labels, "untrained"), items=start),
        ),
    )
    written = study.to_json()
    Study.model_validate(written)
    folder.write_json(STUDY, written)
    return study


def item_scores(
    answers: Mapping[str, Sequence[Candidate]], grades: Mapping[ItemCandidate, float | None]
) -> dict[str, float]:
    """The mean grade of a policy's answers to each item; an item without a grade is left out."""
    found = {}
    for item, listed in answers.items():
        known = [grade for answer in listed if (grade := grades.get((item, answer.key))) is not None]
        if known:
            found[item] = math.fsum(known) / len(known)
    return found


def _outcome(
    runs: Sequence[Trained],
    start: Mapping[str, float],
    grades: Mapping[ItemCandidate, float | None],
    labels: Mapping[str, StudyItem],
) -> PolicyOutcome | None:
    """The entry of one reward model: its seeds, averaged item by item; None where they have no graded item in common.

    A seed whose policy fell silent takes its reward model with it: the mean of the others would flatter it.
    """
    first = runs[0]
    seeds = {one.seed: item_scores(one.answers, grades) for one in runs}
    common = sorted(set.intersection(*(set(scores) for scores in seeds.values())))
    if not common:
        return None
    scores = {item: math.fsum(found[item] for found in seeds.values()) / len(seeds) for item in common}
    gains = {item: scores[item] - start[item] for item in common if item in start}
    apart: Json = {"apart": True} if first.apart else {}
    return PolicyOutcome(
        address=first.address,
        context=first.context,
        revision=first.card.revision,
        score=_mean(scores, labels, first.name),
        items=scores,
        **apart,
        details=PolicyDetails(
            gain=_mean(gains, labels, f"{first.name} gain", least=-HIGHEST), seeds=_seeds(runs, grades)
        ),
    )


def _held_against_best(
    outcomes: Mapping[str, PolicyOutcome | None], labels: Mapping[str, StudyItem]
) -> dict[str, PolicyOutcome | None]:
    """Say of each reward model how far the best one is ahead, item by item."""
    ranked = {name: one for name, one in outcomes.items() if one is not None and not one.apart}
    best = max(ranked, key=lambda name: (ranked[name].score.value or 0.0, name), default=None)
    found = dict(outcomes)
    for name, one in outcomes.items():
        if best is None or one is None or name == best:
            continue
        ahead = {item: score - one.items[item] for item, score in ranked[best].items.items() if item in one.items}
        if ahead:
            behind = _mean(ahead, labels, f"{best} over {name}", least=-HIGHEST)
            found[name] = one.model_copy(update={"details": one.details.model_copy(update={"behind": behind})})
    return found


def _seeds(runs: Sequence[Trained], grades: Mapping[ItemCandidate, float | None]) -> dict[str, SeedOutcome]:
    return {str(one.seed): _seed(one, item_scores(one.answers, grades)) for one in runs}


def _seed(one: Trained, scores: Mapping[str, float]) -> SeedOutcome:
    answers = [answer for listed in one.answers.values() for answer in listed]
    last = one.history[-1]
    return SeedOutcome(
        score=math.fsum(scores.values()) / len(scores) if scores else None,
        steps=last.step,
        reward_first=_early(one.history),
        reward_last=_early(one.history[::-1]),
        kl=last.kl,
        dropped=sum(step.dropped for step in one.history),
        seconds=sum(step.seconds for step in one.history),
        answers=len(answers),
        empty=sum(answer.status != "ok" for answer in answers),
        degenerate=sum(is_degenerate(answer.text) for answer in answers),
        words=float(np.mean([len(answer.text.split()) for answer in answers])),
        folder=one.folder.name,
    )


def _early(history: Sequence[TrainingStep], steps: int = 5) -> float | None:
    """Mean reward of the first few steps that have one."""
    known = [step.reward for step in history[:steps] if step.reward is not None]
    return math.fsum(known) / len(known) if known else None


def _mean(scores: Mapping[str, float], labels: Mapping[str, StudyItem], name: str, least: float = 0.0) -> Estimate:
    """A mean over items with its interval, clustered as in every result."""
    chosen = sorted(scores)
    clusters = Clusters.of([labels[item].unit for item in chosen], [labels[item].question for item in chosen])
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    return mean_interval([scores[item] for item in chosen], clusters, rng, bounds=(least, HIGHEST))
