"""`prbench train cross`: fine-tuning of a small encoder that reads posts, question and answer together.

An epoch is a sample of the pairs, drawn by whole couples: on a few cores a whole split takes too long between two looks
at validation, and half a couple would teach which answer is liked by all.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from prbench.config import Config, digest
from prbench.data import load_pairs
from prbench.data.fingerprint import fingerprint
from prbench.data.portion import Portion
from prbench.errors import ConfigError, DataError, ModelError
from prbench.files import replacing_folder
from prbench.models.local import weights
from prbench.models.local.batching import pad, plan_batches
from prbench.models.local.checkpoint import Checkpoint, quiet, translated
from prbench.models.local.encoding import Encoding, PromptEncoder
from prbench.models.local.precision import Products, multiplying, told
from prbench.models.personal import artifact
from prbench.models.personal.cross import FOLDER, PieceChooser
from prbench.models.personal.method import bradley_terry
from prbench.train.leaks import check_splits
from prbench.train.loop import HeldOutScore, Listener, Loop
from prbench.train.train import learned_from, of_split
from prbench.train.tune import taught, tuned_on
from prbench.types import Message, Pair, Prompt

_LOOK_TOKENS = 8192
"""Most tokens of a forward pass at validation."""


class CrossConfig(Config):
    """Settings of a cross-encoder's training; everything here changes the weights and names what is resumed."""

    method: Literal["cross"] = "cross"
    base: str = "embed:minilm"
    """Address of the encoder to start from."""
    budget: int = Field(default=224, ge=16)
    """Most tokens of posts, question and answer together; posts give way."""
    post_window: int = Field(default=2, ge=0)
    """Sentences in a piece of a post; 0 takes the post whole."""
    epochs: int = Field(default=8, ge=1)
    pairs_per_epoch: int = Field(default=1000, ge=1)
    batch: int = Field(default=8, ge=1)
    learning_rate: float = Field(default=5e-5, gt=0)
    weight_decay: float = Field(default=0.01, ge=0)
    patience: int = Field(default=3, ge=1)
    """Epochs without a better validation after which training stops."""
    strangers: float = Field(default=0.05, ge=0, le=1)
    """Share of training examples in which no post is shown."""
    products: Products = "auto"
    """Precision of the matrix products: `auto` takes bfloat16 where the processor has instructions for it."""
    seed: int = 0


class CrossTraining(Loop[Any]):
    """One training of a cross-encoder.

    Args:
        options: Settings of the training.
        train: The pairs to learn from.
        validation: Pairs of other users and other questions, for early stopping.
        folder: Where checkpoint and model are kept.
    """

    def __init__(self, options: CrossConfig, train: Sequence[Pair], validation: Sequence[Pair], folder: Path) -> None:
        self.base = open_base(options.base)
        super().__init__(options, _with_head(self.base, options.seed), folder)
        self._cross = options
        self._train, self._validation = tuple(train), tuple(validation)
        self._encoder = PromptEncoder(self.base.tokenizer, self.base.address)
        self._chooser = PieceChooser(self.base.tokenizer, budget=options.budget, window=options.post_window)
        self._couples = _couples(train)
        self._check_length()

    @cached_property
    def _identity(self) -> str:
        pairs = [[[pair.id for pair in part], fingerprint(part)] for part in (self._train, self._validation)]
        options = {**self._cross.model_dump(mode="json", exclude={"products"}), **told(self._cross.products)}
        return digest({"options": options, "base": self.base.revision, "pairs": pairs})

    def _losses(self) -> Iterator[Tensor]:
        chosen = self._sample()
        strangers = torch.rand(len(chosen), generator=self._random) < self._cross.strangers
        size = self._cross.batch
        for start in range(0, len(chosen), size):
            pairs = zip(chosen[start : start + size], strangers[start : start + size].tolist(), strict=True)
            texts = [text for pair, stranger in pairs for text in self._encode(pair, stranger=stranger)]
            yield bradley_terry(self._rewards(texts).view(-1, 2))

    def _sample(self) -> list[Pair]:
        """Whole couples in a random order, until there are enough pairs."""
        pairs: list[Pair] = []
        for place in torch.randperm(len(self._couples), generator=self._random).tolist():
            if len(pairs) >= self._cross.pairs_per_epoch:
                break
            pairs += self._couples[place]
        order = torch.randperm(len(pairs), generator=self._random).tolist()
        return [pairs[place] for place in order]

    def _measure(self) -> HeldOutScore:
        self.method.eval()
        texts = [text for pair in self._validation for text in self._encode(pair)]
        rewards = torch.zeros(len(texts))
        with torch.inference_mode():
            for batch in plan_batches([len(text.ids) for text in texts], _LOOK_TOKENS):
                rewards[batch] = self._rewards([texts[place] for place in batch])
        margins = rewards[::2] - rewards[1::2]
        credit = torch.sign(margins) / 2 + 0.5
        return HeldOutScore(float(credit.mean()), float(bradley_terry(rewards.view(-1, 2))))

    def _encode(self, pair: Pair, *, stranger: bool = False) -> tuple[Encoding, Encoding]:
        """The chosen and the rejected answer, each as the model reads it."""
        texts = () if stranger else tuple(post.text for post in pair.profile)
        chosen, rejected = (
            Prompt((Message("user", self._chooser.beside(texts, pair.question, answer)), Message("assistant", answer)))
            for answer in (pair.chosen, pair.rejected)
        )
        return self._encoder.encode(chosen), self._encoder.encode(rejected)

    def _rewards(self, texts: Sequence[Encoding]) -> Tensor:
        pad_id = self.base.tokenizer.pad_token_id or 0
        ids, mask, types = pad(texts, pad_id, "cpu")
        extra = {} if types is None else {"token_type_ids": types}
        with multiplying(self._cross.products):
            rewards: Tensor = self.method(input_ids=ids, attention_mask=mask, **extra).logits
        return rewards.float().squeeze(-1)

    def _check_length(self) -> None:
        limit, name = self.base.positions, self.base.address
        if limit is None:
            return
        if self._cross.budget > limit:
            raise ConfigError(
                f"a budget of {self._cross.budget} tokens, and {name} reads {limit}", hint="--setting budget=TOKENS"
            )
        for pair in (*self._train, *self._validation):
            longest = max(len(text.ids) for text in self._encode(pair, stranger=True))
            if longest > limit:
                raise DataError(
                    f"pair {pair.id!r}: question and answer are {longest} tokens, and {name} reads {limit}",
                    hint="leave such pairs out of the training, or take an encoder that reads more: --encoder",
                )


def train_cross(
    options: CrossConfig,
    out: Path,
    *,
    suite: str = "mirror",
    split: str = "train",
    validation: str = "validation",
    portion: Portion = Portion(),  # noqa: B008 (frozen)
    listener: Listener | None = None,
) -> artifact.PersonalRecord:
    """Train a cross-encoder on a split and write the model to a folder; the same call continues a training.

    Args:
        options: Base encoder, and how to train.
        out: Folder of the model.
        suite: Name or path.
        split: Split that is learned from.
        portion: The part of it that is learned from; default: all.
        validation: What early stopping looks at: other users, other questions.
        listener: Hears of each epoch.
    """
    everything = load_pairs(suite)
    pairs = learned_from(everything, split, portion, options.seed)
    held = of_split(everything, validation)
    _check(pairs)
    check_splits(pairs, everything, validation)
    training = CrossTraining(options, pairs, held, out)
    training.run(listener)
    tuned = tuned_on(options.base)
    facts = artifact.TrainingFacts(
        suite=suite,
        fingerprint=everything.record.fingerprint,
        split=split,
        pairs=len(pairs),
        users=len({pair.user for pair in pairs}),
        questions=len({pair.question for pair in pairs}),
        aspects=tuned.aspects,
        extra_texts=tuned.extra_texts,
        portion=taught(portion, tuned),
        seed=options.seed,
        steps=training.steps,
        validation={"split": validation, "pairs": len(held), **training.best.kept()},
    )
    return save(training, options, facts, out)


def save(
    training: CrossTraining, options: CrossConfig, facts: artifact.TrainingFacts, folder: Path
) -> artifact.PersonalRecord:
    """Write the trained model beside its checkpoint; the record comes last, so a folder with a record is whole."""
    with replacing_folder(folder / FOLDER) as partial, quiet():
        training.method.save_pretrained(partial)
        training.base.tokenizer.save_pretrained(partial)
    record = artifact.PersonalRecord(
        method=options.method,
        settings={"budget": options.budget, **told(options.products)},
        encoder=options.base,
        encoder_revision=training.base.revision,
        post_window=options.post_window,
        width_post=0,
        width_item=0,
        training=facts,
    )
    artifact.save_record(folder, record)
    return record


def open_base(address: str) -> Checkpoint:
    """The encoder to start from: its config and tokenizer."""
    scheme, _, name = address.partition(":")
    if scheme not in ("embed", "hf") or not name:
        raise ModelError(
            f"cross cannot start from {address!r}", hint="name an encoder: embed:minilm, embed:DIR or hf:ORG/NAME"
        )
    is_folder = name not in weights.SOURCES and Path(name).expanduser().is_dir()
    return Checkpoint.open(str(weights.pull(name)) if not is_folder and weights.can_pull(name) else name, address)


def _with_head(base: Checkpoint, seed: int) -> Any:
    """The encoder under a head for one score, which is new and the same for the same seed."""
    from transformers import AutoModelForSequenceClassification

    with torch.random.fork_rng(devices=[]), translated(base.address), quiet():
        torch.manual_seed(seed)
        return AutoModelForSequenceClassification.from_pretrained(
            base.source,
            revision=base.commit,
            num_labels=1,
            dtype=torch.float32,
            trust_remote_code=False,
            ignore_mismatched_sizes=True,  # a classifier of several labels gives its encoder, not its head
        )


def _couples(pairs: Sequence[Pair]) -> list[list[Pair]]:
    """Pairs that meet the same two answers with opposite labels, together; any other pair alone."""
    found: dict[str, list[Pair]] = {}
    for pair in pairs:
        found.setdefault(pair.tags.get("mirror") or f"{pair.id} alone", []).append(pair)
    return list(found.values())


def _check(pairs: Sequence[Pair]) -> None:
    if len({pair.user for pair in pairs}) < 2 or not any(pair.profile for pair in pairs):
        raise DataError(
            "cross needs pairs of at least two users, and posts to know them by",
            hint="without posts, user-bt learns from judgments; one user can only teach one reward: train bt",
        )
