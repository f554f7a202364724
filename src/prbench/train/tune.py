"""`prbench train encoder`: from a split and the passages to an encoder folder, with the same leak checks as a model."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from prbench.config import ModelOptions
from prbench.data import load_pairs
from prbench.data.passages import Passage, load_flaws, load_passages
from prbench.data.portion import RESERVED, Portion
from prbench.errors import ConfigError, ModelError
from prbench.files import checked, checksum, read_json, replacing_folder
from prbench.models.local.upper import TUNING
from prbench.models.personal.shipped import LEARNED
from prbench.train.leaks import check_splits, is_telling
from prbench.train.stance_labels import Axes, Labelled, answer_stances, differences, labelled
from prbench.train.train import learned_from, of_split
from prbench.types import Pair

if TYPE_CHECKING:
    from prbench.train.encoder import EncoderConfig, TuneEpoch, Tuning


def tune(
    options: "EncoderConfig",
    out: Path,
    *,
    suite: str = "mirror",
    split: str = "train",
    validation: str = "validation",
    portion: Portion = Portion(),  # noqa: B008 (frozen)
    listener: "Callable[[TuneEpoch], None] | None" = None,
) -> "Tuning":
    """Tune an encoder on what a split and the shipped passages show; the same call continues an interrupted tuning.

    Args:
        options: Base encoder, and how to tune.
        out: Folder of the encoder, for `embed:DIR`.
        suite: Name or path; its pairs need the tags `axis` and `pole`.
        split: Split that is learned from.
        portion: The part of it that is learned from; default: all.
        validation: Whose answers tell how well it goes; nothing is chosen by them.
        listener: Hears of each epoch.
    """
    everything = load_pairs(suite)
    pairs = learned_from(everything, split, portion, options.seed)
    held = of_split(everything, validation)
    written = portion.written(load_passages(), options.seed) if options.passages else []
    generic = load_pairs(options.flaws) if options.flaws else ()
    flawed = portion.unowned(of_split(generic, split)) if generic else []
    judged = load_flaws() if options.flaws and options.passages else ()
    extra = [*(passage.text for passage in written), *(one.question for one in judged)]
    extra += [text for one in judged for text in (*one.sound, *one.flawed) if is_telling(text)]
    check_splits([*pairs, *flawed], [*everything, *generic], validation, extra=extra)
    from prbench.models import load_encoder
    from prbench.models.local.embed import SentenceEncoder
    from prbench.train.encoder import Tuning
    from prbench.train.tuning_loss import answered

    axes = Axes.of(pairs)
    texts, told = _texts(options, pairs, written, axes), answered(pairs, flawed, judged)
    differing = differences(pairs, written, axes) if options.differences else []
    if not texts and not told and not differing:
        raise ConfigError(
            "there is nothing to tune the encoder on: no texts, no differences of answers, and no flawed answers",
            hint="leave --setting stances=false out, or add --setting differences=true or --setting flaws=generic",
        )
    encoder = load_encoder(options.base, ModelOptions(device="cpu"))  # where its head and its batches are
    if not isinstance(encoder, SentenceEncoder):
        raise ModelError(
            f"{options.base!r} cannot be tuned", hint="name a sentence encoder: --encoder embed:minilm or embed:DIR"
        )
    held_out = list(answer_stances(held, axes).items()) if texts else []
    tuning = Tuning(options, texts, axes, held_out, encoder, out, differing, told, portion.told)
    tuning.run(listener)
    return tuning


def _texts(options: "EncoderConfig", pairs: Sequence[Pair], written: Sequence[Passage], axes: Axes) -> list[Labelled]:
    """The texts that are shown for their stances."""
    if not options.stances:
        return []
    return labelled(
        pairs,
        written,
        axes,
        posts=options.posts,
        answers=options.answers,
        wishes=options.wishes,
        join=options.seed if options.join else None,
    )


class Adopted(NamedTuple):
    """Reference of a model to its encoder."""

    address: str
    """Its folder in the model's, perhaps with its head, where a tuned one was copied there."""
    extra_texts: int = 0
    """Texts it was tuned on."""
    aspects: bool = False
    """Whether rubric aspects of the training split told it where to look."""
    reserve: float | None = None
    """Share of the material that it left to judges; None where it was not tuned here."""


def tuned_on(address: str) -> Adopted:
    """Return what an encoder was tuned on, if it was tuned here."""
    record = _source(address) / TUNING
    if not record.is_file():
        return Adopted(address)
    hint = "tune the encoder again with `prbench train encoder`"
    found = read_json(record, raises=ModelError, hint=hint)
    with checked(record, raises=ModelError, hint=hint):
        shown = found["options"].get("posts") if found["options"].get("stances", True) else None
        aspects = shown not in (None, False, "none")
        portion = found.get("portion", {})
        reserve = float(portion.get("reserve", 0.0)) if portion.get("reserved") == RESERVED else 0.0
        return Adopted(address, int(found["texts"]), aspects, reserve)


def taught(portion: Portion, *encoders: Adopted) -> dict[str, Any]:
    """Return what a model's record says of its portion: nothing is reserved that one of its encoders learned from."""
    reserve = min([portion.reserve, *(one.reserve for one in encoders if one.reserve is not None)])
    return portion.model_copy(update={"reserve": reserve}).told


def adopt_encoder(address: str, folder: Path, name: str = "") -> Adopted:
    """Copy an encoder that was tuned here into a model's folder, so that the folder is all one needs to score.

    Args:
        address: Address of the encoder.
        folder: Folder of the model.
        name: Its name there, for one of which only what it learned is kept, to be read over the plain encoder.
    """
    source = _source(address)
    if not (source / TUNING).is_file():
        return Adopted(address)
    target = folder / (name or "encoder")
    there = (target / TUNING).is_file() and checksum(target / TUNING) == checksum(source / TUNING)
    if name or not there:
        with replacing_folder(target) as partial:
            kept = LEARNED if name else [path.name for path in source.iterdir()]
            for file in kept:
                shutil.copyfile(source / file, partial / file)
    _, hash_, head = address.partition("#")
    return tuned_on(address)._replace(address=f"{target.name}{hash_}{head}")


def _source(address: str) -> Path:
    return Path(address.removeprefix("embed:").partition("#")[0]).expanduser()
