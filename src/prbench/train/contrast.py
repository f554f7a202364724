"""`prbench train contrast`: fits what answers differ in, where a user stands, and how far either is to be trusted.

Four fits: the sides that posts and statements show (passages, the training people's posts, wishes, and the lines of
the training split's rubrics), what two answers differ in (pairs of the training split's answers and of passages), what
makes an answer unsound (flawed and spoilt answers), and the gains that set their log-odds against each other.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from prbench.data import Suite, load_pairs
from prbench.data.passages import load_forms, load_passages, load_sayings
from prbench.data.portion import Portion
from prbench.errors import ConfigError, ModelError, RunError
from prbench.files import checked, load_tensors, read_json
from prbench.models.personal import artifact
from prbench.models.personal.contrast import NAME
from prbench.models.personal.stance_encoder import AXES, HEAD
from prbench.train.contrast_fit import AnswerHeads, ContrastConfig, Fitting, Material, Tell, TraitWeights, TunedReaders
from prbench.train.leaks import check_splits, is_telling
from prbench.train.stance_labels import Axes
from prbench.train.train import learned_from, of_split
from prbench.train.tune import Adopted, adopt_encoder, taught, tuned_on
from prbench.types import Pair

__all__ = ["ContrastConfig", "measure", "train_contrast"]


def train_contrast(
    options: ContrastConfig,
    out: Path,
    *,
    suite: str = "mirror",
    split: str = "train",
    validation: str = "validation",
    portion: Portion = Portion(),  # noqa: B008 (frozen)
    tell: Tell | None = None,
) -> artifact.PersonalRecord:
    """Fit the model on a split and write it to a folder.

    Args:
        options: Settings of the fit.
        out: Folder of the model.
        suite: Name or path; its pairs need the tags `axis` and `pole`.
        split: Split that is learned from.
        portion: The part of it that is learned from; default: all.
        validation: What the gains are fitted on; accuracy and loss on it are kept in the record.
        tell: Hears how far it is.
    """
    from prbench.config import ModelOptions
    from prbench.models import load_encoder
    from prbench.models.personal.features import FeatureStore, encoder_revision

    _check_place(out)
    everything = load_pairs(suite)
    material = _material(options, everything, split, validation, portion)
    axes, pairs = material.axes, material.pairs
    encoder = FeatureStore(load_encoder(options.encoder, ModelOptions()))
    tuned = _readers(options, axes, encoder.encoder)
    fitting = Fitting(options, material, encoder, tuned, tell or (lambda line: None))
    weights = fitting.run()
    stances, answers = (
        adopt_encoder(address, out, name) if address else _without(out / name)
        for address, name in ((options.stances, artifact.POSTS), (options.answers, artifact.ANSWERS))
    )
    record = artifact.PersonalRecord(
        method=NAME,
        settings={"axes": axes.poles, "stances": stances.address, "answers": answers.address},
        encoder=options.encoder,
        encoder_revision=encoder_revision(encoder),
        width_post=len(fitting.grams.vocabulary),
        width_item=len(weights["sides"]),
        training=artifact.TrainingFacts(
            suite=f"{suite}+{options.also}" if options.also else suite,
            fingerprint=everything.record.fingerprint,
            split=split,
            pairs=len(pairs) + len(material.flawed),
            users=len({pair.user for pair in pairs}),
            questions=len({pair.question for pair in pairs}),
            aspects=True,
            extra_texts=len({passage.text for passage in material.passages})
            + len(material.forms)
            + len(material.sayings),
            portion=taught(portion, stances, answers, tuned_on(options.encoder)),
            seed=options.seed,
        ),
    )
    _save(out, record, weights)
    return _measured(out, record, material.held, validation)


def _check_place(out: Path) -> None:
    """Refuse a folder that holds a model of another method."""
    if (out / artifact.RECORD).is_file():
        method = artifact.read_record(out, f"personal:{out}").method
        if method != NAME:
            raise RunError(
                f"{str(out)!r} holds another training, of {method}",
                hint="give this one its own folder with --out, or remove that one",
            )


def _material(options: ContrastConfig, everything: Suite, split: str, validation: str, portion: Portion) -> Material:
    """Gather what is learned from and what the gains are fitted on; nothing of it may be held out."""
    pairs = learned_from(everything, split, portion, options.seed)
    generic = load_pairs(options.also) if options.also else ()
    flawed, held_flawed = (portion.unowned(of_split(generic, name)) if generic else [] for name in (split, validation))
    passages = portion.written(load_passages(), options.seed)
    whole = [text for form in load_forms() for text in form if is_telling(text)]
    sayings = load_sayings()
    extra = [*(passage.text for passage in passages), *whole, *(saying.text for saying in sayings)]
    check_splits([*pairs, *flawed], everything, validation, extra=extra)
    held = of_split(everything, validation)
    return Material(Axes.of(pairs), pairs, flawed, passages, held, held_flawed, load_forms(), sayings)


def _measured(out: Path, record: artifact.PersonalRecord, held: Sequence[Pair], split: str) -> artifact.PersonalRecord:
    """Write down how a saved model does on the pairs of a held-out split."""
    found = {"split": split, "pairs": len(held), **measure(out, record, held)}
    facts = record.training.model_copy(update={"validation": found})
    record = record.model_copy(update={"training": facts})
    artifact.save_record(out, record)
    return record


def _without(folder: Path) -> Adopted:
    """No tuned encoder, nor one that an earlier training left."""
    shutil.rmtree(folder, ignore_errors=True)
    return Adopted("")


def _readers(options: ContrastConfig, axes: Axes, base: Any) -> TunedReaders:
    """Open the tuned encoders of the options over the plain one."""
    from prbench.models.local.embed import SentenceEncoder
    from prbench.models.local.upper import TUNING, open_upper
    from prbench.models.personal.features import FeatureStore
    from prbench.models.personal.stance_encoder import StanceEncoder

    named = [address for address in (options.stances, options.answers) if address]
    if named and not isinstance(base, SentenceEncoder):
        raise ConfigError(
            f"{named[0]!r} was not tuned from {options.encoder}", hint="name the encoder it was tuned from: --encoder"
        )
    for address in named:
        if not (_folder(address) / TUNING).is_file():
            raise ConfigError(f"{address!r} is no tuned encoder", hint="tune one with `prbench train encoder -o DIR`")
    stances, answers = (
        open_upper(base, address.removeprefix("embed:")) if address else None
        for address in (options.stances, options.answers)
    )
    if stances is not None and (not isinstance(stances, StanceEncoder) or dict(stances.poles) != axes.poles):
        raise ConfigError(
            f"{options.stances!r} does not tell the stances on this suite's axes",
            hint="tune one with `prbench train encoder -o DIR` and name it embed:DIR#stances",
        )
    return TunedReaders(
        None if stances is None else FeatureStore(stances),
        None if answers is None else FeatureStore(answers),
        None if answers is None else _answer_heads(options.answers, axes),
    )


def _folder(address: str) -> Path:
    return Path(address.removeprefix("embed:").partition("#")[0]).expanduser()


def _answer_heads(address: str, axes: Axes) -> AnswerHeads:
    """The heads of an encoder that was tuned to read answers; one that was not is refused."""
    folder = _folder(address)
    hint = "tune one with `prbench train encoder --setting stances=false --setting differences=true -o DIR`"
    poles = {axis: tuple(both) for axis, both in read_json(folder / AXES, raises=ModelError, hint=hint).items()}
    if poles != axes.poles:
        raise ConfigError(f"{address!r} does not tell differences on this suite's axes", hint=hint)
    found = load_tensors(folder / HEAD, kind="numpy", raises=ModelError, hint=hint)
    with checked(folder / HEAD, raises=ModelError, hint=hint):
        sides, bias, flaw = (found[name].astype(np.float64) for name in ("sides", "sides_bias", "flaw"))
    return AnswerHeads(TraitWeights(sides, bias), flaw)


def measure(folder: Path, record: artifact.PersonalRecord, pairs: Sequence[Pair]) -> dict[str, float]:
    """Accuracy of a model in a folder under the profile, and the loss of its log-odds."""
    from prbench.config import ModelOptions
    from prbench.models.personal.contrast_ranker import ContrastRanker
    from prbench.types import PairView

    model = ContrastRanker(folder, record, ModelOptions())
    views = [PairView(pair.question, pair.chosen, pair.rejected, pair.profile, (), pair.user) for pair in pairs]
    margins = np.array([outcome.margin for _, outcome in model.compare(views)], dtype=np.float64)
    return {
        "accuracy": float(((margins > 0) + 0.5 * (margins == 0)).mean()),
        "loss": float(np.logaddexp(0, -margins).mean()),
    }


def _save(out: Path, record: artifact.PersonalRecord, weights: Mapping[str, Any]) -> None:
    from safetensors.numpy import save_file

    out.mkdir(parents=True, exist_ok=True)
    temporary = out / f".{artifact.WEIGHTS}.{os.getpid()}"
    save_file({name: np.ascontiguousarray(array) for name, array in weights.items()}, temporary)
    temporary.chmod(0o644)
    temporary.replace(out / artifact.WEIGHTS)
    artifact.save_record(out, record)
