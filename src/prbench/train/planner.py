"""Training of a planner, from a split to its folder: checks, examples, training, adapter."""

import json
import shutil
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from prbench.config import ModelOptions, digest
from prbench.contexts import Unfit
from prbench.data import load_pairs
from prbench.data.portion import Portion
from prbench.errors import AddressError, DataError
from prbench.files import write_whole
from prbench.models.local.adapter import BASE, CONFIG, WEIGHTS, AdapterBase, require_peft
from prbench.models.local.checkpoint import quiet
from prbench.models.local.generate import LanguageModelGenerator
from prbench.models.local.language_model import LanguageModel, open_named
from prbench.plan import Need, Planner, needs_of
from prbench.train.leaks import HELD_OUT, _plain, check_splits
from prbench.train.packs import TokenExample
from prbench.train.planner_training import Listener, Look, PlannerConfig, PlannerTraining, closed
from prbench.train.train import learned_from, of_split
from prbench.types import Frozen, Message, Pair, Prompt

RECORD = "planner.json"
_FRAME_BYTES = 1200
"""Number of bytes beyond all that the prompt and a chat template say around question and posts."""


class PlannerRecord(Frozen):
    """Record of a planner's training: `planner.json` of its folder."""

    identity: str
    options: PlannerConfig
    base_revision: str
    suite: str
    fingerprint: str
    split: str
    examples: int
    users: int
    questions: int
    aspects: int
    left_out: int
    """Questions whose prompt does not fit the window."""
    validation_examples: int
    tokens: int
    """Tokens that went through the model in training steps."""
    looks: tuple[Look, ...]
    best: Look


def train_planner(
    options: PlannerConfig,
    out: Path,
    *,
    suite: str = "mirror",
    split: str = "train",
    validation: str = "validation",
    portion: Portion = Portion(),  # noqa: B008 (frozen)
    listener: Listener | None = None,
) -> PlannerRecord:
    """Train a planner on a split's aspects and write its adapter; the same call continues an interrupted training.

    Args:
        options: Language model, and how to train.
        out: Folder of the planner, for `lm:DIR`.
        suite: Name or path; its pairs need posts and rubric aspects.
        split: Split that is learned from.
        portion: The part of it that is learned from; default: all.
        validation: Whose loss decides which weights are kept: other users, other questions.
        listener: Hears of each look at validation.
    """
    require_peft("prbench train planner")
    everything = load_pairs(suite)
    pairs = learned_from(everything, split, portion, options.seed)
    held = of_split(everything, validation)
    check_splits(pairs, everything, validation)
    check_aspects(pairs, everything, validation)
    model = _open(options)
    lessons, tests = (Lessons.of(part, model) for part in (pairs, held))
    looked_at = _mixed(tests.taught, options.seed, options.batch)
    training = PlannerTraining(options, model, lessons.taught, looked_at, out)
    training.run(listener)
    record = PlannerRecord(
        identity=training.identity,
        options=options,
        base_revision=model.checkpoint.revision,
        suite=suite,
        fingerprint=everything.record.fingerprint,
        split=split,
        examples=len(lessons.taught),
        users=len({pair.user for pair in pairs}),
        questions=len({pair.question for pair in pairs}),
        aspects=len({aspect for lesson in lessons.taught for aspect in lesson.need.aspects}),
        left_out=lessons.left_out,
        validation_examples=min(len(tests.taught), options.look),
        tokens=training.tokens,
        looks=tuple(training.looks),
        best=training.best,
    )
    save(training.adapted, record, out)
    return record


class PlanLesson:
    """One question: what the planner is asked, and the aspects that it should say."""

    def __init__(self, need: Need, planner: Planner, model: LanguageModel) -> None:
        self.need = need
        self._planner, self._model = planner, model

    @property
    def user(self) -> str:
        """User whose question it is."""
        return self.need.pair.user

    @property
    def identity(self) -> str:
        """Question, posts, aspects and the wording of the request as one hash."""
        return digest([self.need.id, self.user, self.need.aspects, self._planner.template])

    @cached_property
    def fits(self) -> bool:
        """Whether question and at least one post fit the window; where few bytes make few tokens, without counting."""
        pair, window = self.need.pair, self._planner.window
        sizes = [len(post.text.encode()) for post in pair.profile]
        if window is None or len(pair.question.encode()) + min(sizes) + _FRAME_BYTES <= window:
            return True
        return not isinstance(self._planner.prompt(pair), Unfit)

    def example(self) -> TokenExample:
        """Prompt and titles as tokens; the text ends with the token that ends a reply."""
        prompt = self._planner.prompt(self.need.pair)
        if isinstance(prompt, Unfit):
            raise DataError(f"pair {self.need.pair.id!r}: {prompt.reason}", hint="raise --setting window=TOKENS")
        answer = Message("assistant", "\n".join(f"- {aspect}" for aspect in self.need.aspects))
        encoding = self._model.encoder.encode_answer(Prompt((*prompt.messages, answer)))
        end = self._model.checkpoint.tokenizer.eos_token_id
        return TokenExample(closed(encoding.ids, self._model.closing_tokens, end), encoding.answer_start)


class Lessons(NamedTuple):
    """Lessons that can be learned from some pairs."""

    taught: list[PlanLesson]
    left_out: int

    @classmethod
    def of(cls, pairs: Sequence[Pair], model: LanguageModel) -> "Lessons":
        """One lesson for each question of each user; those that do not fit the window are left out and counted."""
        planner = Planner(LanguageModelGenerator(model))
        needs = [need for need in needs_of(pairs) if need.aspects and need.pair.profile]
        if not needs:
            raise DataError(
                "no pair of the split has both posts and rubric aspects: there is nothing to plan from or to learn",
                hint="a planner is trained on a suite with profiles and rubrics, as mirror, prb or one of your own",
            )
        taught = [lesson for need in needs if (lesson := PlanLesson(need, planner, model)).fits]
        if not taught:
            raise DataError("not one prompt fits the window", hint="raise --setting window=TOKENS")
        return cls(taught, len(needs) - len(taught))


def check_aspects(train: Sequence[Pair], everything: Iterable[Pair], validation: str) -> None:
    """Refuse to learn an aspect that a held-out split is measured by; case, punctuation and spacing do not matter."""
    learned = {_plain(aspect.aspect) for pair in train for aspect in pair.rubric_aspects}
    for name in dict.fromkeys((validation, *HELD_OUT)):
        held = {a.aspect for pair in everything if pair.tags.get("split") == name for a in pair.rubric_aspects}
        if shared := sorted(aspect for aspect in held if _plain(aspect) in learned):
            raise DataError(
                f"{len(shared)} aspects of the {name} split are in the training split too; first: {shared[0]!r}",
                hint="a planner must not learn the very words that it is measured by: hold out whole questions",
            )


def save(adapted: Any, record: PlannerRecord, folder: Path) -> None:
    """Write the adapter beside its checkpoint; the note of its base comes last, so that a folder with it is whole."""
    partial = folder / ".adapter.partial"
    shutil.rmtree(partial, ignore_errors=True)
    with quiet():
        adapted.save_pretrained(partial)
    for name in (WEIGHTS, CONFIG):
        (partial / name).replace(folder / name)
    shutil.rmtree(partial)
    _write(folder / RECORD, record.model_dump(mode="json"))
    base = AdapterBase(base=record.options.policy, revision=record.base_revision, window=record.options.window)
    _write(folder / BASE, base.model_dump(mode="json"))


def _write(path: Path, data: Any) -> None:
    write_whole(path, json.dumps(data, ensure_ascii=False, indent=2) + "\n")


def _open(options: PlannerConfig) -> LanguageModel:
    scheme, _, name = options.policy.partition(":")
    if scheme != "lm" or not name:
        raise AddressError(
            f"a planner cannot be trained from {options.policy!r}",
            hint="name a local language model: lm:smollm2, lm:DIR or lm:ORG/NAME",
        )
    return LanguageModel(open_named(name, options.policy), ModelOptions(window=options.window))


def _mixed(lessons: Sequence[PlanLesson], seed: int, size: int) -> list[PlanLesson]:
    """Lessons in a fixed random order that takes users in turn, so many of each at a time: the first few packs."""
    by_user: dict[str, list[PlanLesson]] = {}
    for lesson in sorted(lessons, key=lambda lesson: digest([seed, lesson.identity])):
        by_user.setdefault(lesson.user, []).append(lesson)
    longest = max(map(len, by_user.values()))
    return [one for start in range(0, longest, size) for mine in by_user.values() for one in mine[start : start + size]]
