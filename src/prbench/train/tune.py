"""`prbench train encoder`: from a split and the passages to an encoder folder, with the same leak checks as a model."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from prbench.config import ModelOptions
from prbench.data import load_pairs
from prbench.data.passages import load_passages
from prbench.errors import ModelError
from prbench.files import checked, read_json, replacing_folder
from prbench.models.personal.shipped import TUNING
from prbench.train.leaks import check_splits
from prbench.train.stances import Axes, answer_stances, labelled
from prbench.train.train import learned_from, of_split

if TYPE_CHECKING:
    from prbench.train.encoder import EncoderConfig, TuneEpoch, Tuning


def tune(
    options: "EncoderConfig",
    out: Path,
    *,
    suite: str = "mirror",
    split: str = "train",
    validation: str = "validation",
    people: int | None = None,
    listener: "Callable[[TuneEpoch], None] | None" = None,
) -> "Tuning":
    """Tune an encoder on what a split and the shipped passages show; the same call continues an interrupted tuning.

    Args:
        options: Base encoder, and how to tune.
        out: Folder of the encoder, for `embed:DIR`.
        suite: Name or path; its pairs need the tags `axis` and `pole`.
        split: What is learned from.
        people: Learn from so many couples of it by seed (or users, where they come alone); default: all.
        validation: Whose answers tell how well it goes; nothing is chosen by them.
        listener: Hears of each epoch.
    """
    everything = load_pairs(suite)
    pairs = learned_from(everything, split, people, options.seed)
    held = of_split(everything, validation)
    written = load_passages() if options.passages else ()
    check_splits(pairs, everything, validation, extra=[passage.text for passage in written])
    from prbench.models import load_encoder
    from prbench.models.local.embed import SentenceEncoder
    from prbench.train.encoder import Tuning

    axes = Axes.of(pairs)
    texts = labelled(
        pairs,
        written,
        axes,
        posts=options.posts,
        answers=options.answers,
        wishes=options.wishes,
        join=options.seed if options.join else None,
    )
    encoder = load_encoder(options.base, ModelOptions(device="cpu"))  # where its head and its batches are
    if not isinstance(encoder, SentenceEncoder):
        raise ModelError(
            f"{options.base!r} cannot be tuned", hint="name a sentence encoder: --encoder embed:minilm or embed:DIR"
        )
    tuning = Tuning(options, texts, axes, list(answer_stances(held, axes).items()), encoder, out)
    tuning.run(listener)
    return tuning


class Adopted(NamedTuple):
    """How a model refers to its encoder."""

    address: str
    """`encoder`, perhaps with its head, where a tuned one was copied into the model's folder."""
    extra_texts: int = 0
    """Texts it was tuned on."""
    aspects: bool = False
    """Whether rubric aspects of the training split told it where to look."""


def tuned_on(address: str) -> Adopted:
    """What an encoder was tuned on, if it was tuned here."""
    record = _source(address) / TUNING
    if not record.is_file():
        return Adopted(address)
    hint = "tune the encoder again with `prbench train encoder`"
    found = read_json(record, raises=ModelError, hint=hint)
    with checked(record, raises=ModelError, hint=hint):
        return Adopted(address, int(found["texts"]), found["options"].get("posts") not in (None, False, "none"))


def adopt_encoder(address: str, folder: Path) -> Adopted:
    """Copy an encoder that was tuned here into a model's folder, so that the folder is all one needs to score."""
    source = _source(address)
    if not (source / TUNING).is_file():
        return Adopted(address)
    target = folder / "encoder"
    if not target.is_dir():
        with replacing_folder(target) as partial:
            shutil.copytree(source, partial, dirs_exist_ok=True)
    _, hash_, head = address.partition("#")
    return tuned_on(address)._replace(address=f"encoder{hash_}{head}")


def _source(address: str) -> Path:
    return Path(address.removeprefix("embed:").partition("#")[0]).expanduser()
