"""One policy, one reward model, one seed: trained or continued, then its answers to the held-out items."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import torch

from prbench.config import digest
from prbench.files import slug
from prbench.results import RunFolder
from prbench.studies.best_of_n.candidates import Candidate
from prbench.studies.best_of_n.reward_models import RewardModel
from prbench.studies.ppo.checkpoint import HISTORY, TrainingStep, claim, mean_steps, read_history
from prbench.studies.ppo.conclusion import TRAINING, TRAININGS, TrainingRecord
from prbench.studies.ppo.config import PPOConfig, PPOStudyConfig
from prbench.studies.ppo.held_out import ANSWERS, HeldOutDivision, Write, answer_items
from prbench.studies.ppo.loop import PPOTraining, Speech, answer_texts
from prbench.studies.ppo.rewards import TextReward
from prbench.studies.ppo.speaker import Speaker
from prbench.studies.ppo.trunk import Policy
from prbench.train.checkpoint import alone
from prbench.types import Pair

UNTRAINED = "untrained"
PEOPLE = "people"
Key = dict[str, Any]
Heard = Callable[[TrainingStep, TextReward], None]
_PROMPTS_AT_ONCE = 8


class StudySetup(NamedTuple):
    """Resources that all trainings of a study share."""

    settings: PPOStudyConfig
    speaker: Speaker
    division: HeldOutDivision
    pairs: Sequence[Pair]
    """Pairs of the whole suite."""
    out: Path


def training_key(work: StudySetup, reward: TextReward) -> Key:
    """Return the key of a training: reward model, what it sees, policy, seed, all that decides what comes out."""
    own = {"people": work.settings.people} if work.settings.people else {}
    return {
        "reward": reward.key,
        "policy": {"address": work.settings.policy, "revision": work.speaker.revision},
        "suite": work.settings.suite,
        "split": work.settings.test_split if own else work.settings.train_split,
        **own,
        "options": work.settings.options.identity,
    }


def training_folder(work: StudySetup, reward_model: RewardModel) -> Path:
    """Return the folder of one training: for people to find, and different for whatever trains differently."""
    readable = slug(reward_model.name)[-60:] or "model"
    who = [
        reward_model.card.address,
        reward_model.card.revision,
        str(reward_model.context),
        work.settings.options.algorithm,
    ]
    return work.out / TRAININGS / f"{readable}-{digest(who)[:6]}-s{work.settings.options.seed}"


def train_policy(
    work: StudySetup, reward_model: RewardModel, reward: TextReward, heard: Heard
) -> dict[str, list[Candidate]]:
    """Train with one reward model, or continue; then answer the held-out items."""
    key, folder = training_key(work, reward), training_folder(work, reward_model)
    with alone(folder):
        claim(folder, key)
        if work.settings.people:
            found = _train_people(work, reward, folder, key, heard)
        else:
            found = _train_one(work, reward, folder, key, digest(key), heard)
        record = _record(reward_model, work.settings.options.seed, digest(key))
        RunFolder(folder).write_json(TRAINING, record.model_dump(mode="json"))
        return found


def _train_one(
    work: StudySetup, reward: TextReward, folder: Path, key: Key, who: str, heard: Heard
) -> dict[str, list[Candidate]]:
    """One policy, and its answers."""
    options = work.settings.options
    if options.algorithm == "grpo":
        from prbench.studies.ppo.grpo import train_grpo

        write = train_grpo(work, reward, folder, key, lambda step: heard(step, reward))
    else:
        policy = make_policy(work.speaker.weights, options)
        training = PPOTraining(
            policy, work.division.train, reward, work.speaker.speech, options, folder=folder, key=key
        )
        training.run(lambda step: heard(step, reward))
        write = writer(policy, work.speaker.speech, options)
    return answer_items(folder, work.division.items, write, work.settings, who)


def _train_people(
    work: StudySetup, reward: TextReward, folder: Path, key: Key, heard: Heard
) -> dict[str, list[Candidate]]:
    """A policy for each person, one after the other; their answers together, and the mean of their histories."""
    found, steps = dict[str, list[Candidate]](), list[list[TrainingStep]]()
    for person in dict.fromkeys(item.pair.user for item in work.division.items):
        place = folder / PEOPLE / f"{slug(person)[-40:]}-{digest([person])[:6]}"
        division = work.division._replace(
            train=[pair for pair in work.division.train if pair.user == person],
            items=[item for item in work.division.items if item.pair.user == person],
        )
        own = {**key, "person": person, "taught": digest([pair.id for pair in division.train])}
        with alone(place):
            claim(place, own)
            found |= _train_one(work._replace(division=division), reward, place, own, digest(key), heard)
            steps.append(read_history(place / HISTORY))
    together = RunFolder(folder)
    together.write_lines(ANSWERS, [answer for listed in found.values() for answer in listed])
    together.write_lines(HISTORY, mean_steps(steps))
    return found


def _record(reward_model: RewardModel, seed: int, who: str) -> TrainingRecord:
    return TrainingRecord(
        name=reward_model.name,
        address=reward_model.card.address,
        context=str(reward_model.context),
        apart=reward_model.apart,
        seed=seed,
        card=reward_model.card,
        who=who,
    )


def answer_untrained(work: StudySetup) -> dict[str, list[Candidate]]:
    """Return the base model's answers to the held-out items, against which every training is held."""
    options = work.settings.options
    folder = work.out / UNTRAINED
    with alone(folder):
        write = writer(make_policy(work.speaker.weights, options), work.speaker.speech, options, adapted=False)
        write = _person_by_person(write) if work.settings.people else write
        who = digest([work.settings.policy, work.speaker.revision, work.settings.shared])
        return answer_items(folder, work.division.items, write, work.settings, who)


def _person_by_person(write: Write) -> Write:
    """Ask the questions of each person apart: the draws are then those of policies of their own."""

    def each(pairs: Sequence[Pair], answers: int, seed: int) -> list[tuple[str, bool]]:
        people = groupby(pairs, key=lambda pair: pair.user)
        return [text for _, own in people for text in write(list(own), answers, seed)]

    return each


def make_policy(weights: Any, options: PPOConfig) -> Policy:
    """A fresh policy over a base model."""
    return Policy(weights, rank=options.rank, layers=options.layers, temperature=options.temperature, seed=options.seed)


def writer(policy: Policy, speech: Speech, options: PPOConfig, *, adapted: bool = True) -> Write:
    """Return the function by which a policy answers held-out questions: at its own temperature, with shared draws."""

    def write(pairs: Sequence[Pair], answers: int, seed: int) -> list[tuple[str, bool]]:
        texts: list[tuple[str, bool]] = []
        for number, part in enumerate(_parts(pairs)):
            # How many draws a part takes depends on how long the policy's answers are.
            draws = torch.Generator().manual_seed(7_368_787 * (seed + 1) + number)
            prefix = policy.read_prompts([speech.encode(pair) for pair in part], answers)
            written = policy.write(prefix, options.new_tokens, speech.ends, draws, adapted=adapted)
            texts += answer_texts(written.tokens, speech)
        return texts

    return write


def _parts(pairs: Sequence[Pair]) -> Iterator[Sequence[Pair]]:
    for start in range(0, len(pairs), _PROMPTS_AT_ONCE):
        yield pairs[start : start + _PROMPTS_AT_ONCE]


def step_status(step: TrainingStep, dropped: Counter[str]) -> str:
    """A step in a line, with the most common reason why answers were dropped.

    Example:
        >>> step = TrainingStep(step=3, reward=0.5, kl=1.25, entropy=2.0, length=40, ended=1, dropped=0, seconds=9.1)
        >>> step_status(step, Counter())
        'reward 0.500 · KL 1.25 · entropy 2.00 · length 40 · dropped 0 · 9.1 s'
    """
    reward = "–" if step.reward is None else f"{step.reward:.3f}"
    entropy = "–" if step.entropy is None else f"{step.entropy:.2f}"
    why = "".join(f" ({reason})" for reason, _ in dropped.most_common(1))
    return (
        f"reward {reward} · KL {step.kl:.2f} · entropy {entropy} · "
        f"length {step.length:.0f} · dropped {step.dropped}{why} · {step.seconds:.1f} s"
    )
