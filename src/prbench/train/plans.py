"""From a split to a planner's folder: checks, examples, training, adapter."""

import json
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from prbench.config import ModelOptions, digest
from prbench.contexts import Unfit
from prbench.data import load_pairs
from prbench.errors import AddressError, DataError
from prbench.models._adapter import BASE, CONFIG, WEIGHTS, AdapterBase, require_peft
from prbench.models._checkpoint import quiet
from prbench.models._lm_generate import LanguageModelGenerator
from prbench.models._lm_model import LanguageModel, open_named
from prbench.plan import Need, Planner, needs_of
from prbench.train.leaks import HELD_OUT, _plain, check_splits
from prbench.train.packs import Example
from prbench.train.planner import Listener, Look, PlannerOptions, PlannerTraining, closed
from prbench.train.train import of_split
from prbench.types import Frozen, Message, Pair, Prompt

RECORD = "planner.json"


class PlannerRecord(Frozen):
    """How a planner came to be: `planner.json` of its folder."""

    identity: str
    options: PlannerOptions
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
    options: PlannerOptions,
    out: Path,
    *,
    suite: str = "mirror",
    split: str = "train",
    validation: str = "validation",
    listener: Listener | None = None,
) -> PlannerRecord:
    """Train a planner on a split's aspects and write its adapter; the same call continues an interrupted training.

    Args:
        options: Language model, and how to train.
        out: Folder of the planner, for `lm:DIR`.
        suite: Name or path; its pairs need posts and rubric aspects.
        split: What is learned from.
        validation: Whose loss decides which weights are kept: other users, other questions.
        listener: Hears of each look at validation.
    """
    require_peft("prbench train planner")
    everything = load_pairs(suite)
    pairs, held = of_split(everything, split), of_split(everything, validation)
    check_splits(pairs, everything, validation)
    check_aspects(pairs, everything, validation)
    model = _open(options)
    taught, tested = (Lessons(part, model) for part in (pairs, held))
    training = PlannerTraining(
        options, model, taught.examples, _mixed(tested.examples, options.seed, options.batch), out
    )
    training.run(listener)
    record = PlannerRecord(
        identity=training.identity,
        options=options,
        base_revision=model.checkpoint.revision,
        suite=suite,
        fingerprint=everything.record.fingerprint,
        split=split,
        examples=len(taught.examples),
        users=len({pair.user for pair in pairs}),
        questions=len({pair.question for pair in pairs}),
        aspects=len({aspect for need in taught.needs for aspect in need.aspects}),
        left_out=taught.left_out,
        validation_examples=min(len(tested.examples), options.look),
        tokens=training.tokens,
        looks=tuple(training.looks),
        best=training.best,
    )
    save(training.adapted, record, out)
    return record


class Lessons:
    """The examples of some pairs: what the planner is asked, and what it should say."""

    def __init__(self, pairs: Sequence[Pair], model: LanguageModel) -> None:
        self.needs: list[Need] = [need for need in needs_of(pairs) if need.aspects and need.pair.profile]
        if not self.needs:
            raise DataError(
                "no pair of the split has both posts and rubric aspects: there is nothing to plan from or to learn",
                hint="a planner is trained on a suite with profiles and rubrics, as mirror, prb or one of your own",
            )
        self._model = model
        planner = Planner(LanguageModelGenerator(model))
        prompts = [(need, planner.prompt(need.pair)) for need in self.needs]
        self.examples = [self._example(need, prompt) for need, prompt in prompts if not isinstance(prompt, Unfit)]
        self.left_out = len(self.needs) - len(self.examples)
        if not self.examples:
            raise DataError("not one prompt fits the window", hint="raise --setting window=TOKENS")

    def _example(self, need: Need, prompt: Prompt) -> Example:
        answer = Message("assistant", "\n".join(f"- {aspect}" for aspect in need.aspects))
        encoding = self._model.encoder.encode_answer(Prompt((*prompt.messages, answer)))
        tokenizer = self._model.checkpoint.tokenizer
        ids = closed(encoding.ids, self._model.closing_tokens, tokenizer.eos_token_id)
        return Example(need.pair.user, ids, encoding.answer_start)


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
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(json.dumps(data, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    temporary.replace(path)


def _open(options: PlannerOptions) -> LanguageModel:
    scheme, _, name = options.policy.partition(":")
    if scheme != "lm" or not name:
        raise AddressError(
            f"a planner cannot be trained from {options.policy!r}",
            hint="name a local language model: lm:smollm2, lm:DIR or lm:ORG/NAME",
        )
    return LanguageModel(open_named(name, options.policy), ModelOptions(window=options.window))


def _mixed(examples: Sequence[Example], seed: int, size: int) -> list[Example]:
    """Examples in a fixed random order that takes users in turn, so many of each at a time: the first few packs."""
    by_user: dict[str, list[Example]] = {}
    for example in sorted(examples, key=lambda example: digest([seed, list(example.ids)])):
        by_user.setdefault(example.user, []).append(example)
    longest = max(map(len, by_user.values()))
    return [one for start in range(0, longest, size) for mine in by_user.values() for one in mine[start : start + size]]
