"""`prbench train METHOD`: checks, vectors, training, model."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from prbench.config import ModelOptions
from prbench.data import Suite, load_pairs
from prbench.data.portion import Portion
from prbench.errors import ConfigError, DataError
from prbench.train.config import TrainConfig
from prbench.train.leaks import check_splits
from prbench.types import Pair

if TYPE_CHECKING:
    from prbench.models.personal.artifact import PersonalRecord
    from prbench.train.method_training import Epoch


def train(
    options: TrainConfig,
    out: Path,
    *,
    suite: str = "mirror",
    split: str = "train",
    validation: str = "validation",
    portion: Portion = Portion(),  # noqa: B008 (frozen)
    listener: "Callable[[Epoch], None] | None" = None,
) -> "PersonalRecord":
    """Train a method on a split and write the model to a folder; the same call continues an interrupted training.

    Args:
        options: Method, encoder, and how to train.
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
    _check(options, pairs)
    other = load_pairs(options.also) if options.also else ()
    added = portion.unowned(of_split(other, split)) if isinstance(other, Suite) else []
    check_splits([*pairs, *added], [*everything, *other], validation)
    from prbench.models import load_encoder
    from prbench.models.personal.artifact import TrainingFacts
    from prbench.models.personal.features import FeatureStore
    from prbench.models.personal.reader import Reader
    from prbench.train.method_training import Training, save

    encoder = FeatureStore(load_encoder(options.encoder, ModelOptions()))
    reader = Reader(encoder, post_window=options.post_window, answer_window=options.answer_window)
    training = Training(options, [*pairs, *added * options.also_repeat], held, reader, out)
    training.run(listener)
    from prbench.train.tune import adopt_encoder, taught

    adopted = adopt_encoder(options.encoder, out)
    facts = TrainingFacts(
        suite=f"{suite}+{options.also}" if options.also else suite,
        fingerprint=everything.record.fingerprint,
        split=split,
        pairs=len(pairs) + len(added),
        users=len({pair.user for pair in pairs}),
        questions=len({pair.question for pair in pairs}),
        aspects=options.aspects or adopted.aspects,
        extra_texts=adopted.extra_texts,
        portion=taught(portion, adopted),
        seed=options.seed,
        steps=training.steps,
        validation={"split": validation, "pairs": len(held), **training.best.kept()},
    )
    return save(training, reader, facts, out, encoder=adopted.address)


def learned_from(suite: Suite, split: str, portion: Portion, seed: int) -> list[Pair]:
    """The pairs of a split that a portion of it holds; nested by seed, so that a curve adds and exchanges nothing."""
    pairs = portion.pairs(of_split(suite, split), seed)
    if not pairs:
        raise ConfigError(
            f"nothing is left of split {split!r} with {portion.told}", hint="take a smaller --reserve, or more people"
        )
    return pairs


def of_split(suite: Suite, name: str) -> list[Pair]:
    """The pairs of a split; one that is not there is refused with the names of those that are."""
    found = [pair for pair in suite if pair.tags.get("split") == name]
    if not found:
        known = sorted({pair.tags.get("split", "") for pair in suite} - {""})
        raise DataError(
            f"{suite.record.name!r} has no split {name!r}",
            hint=f"its splits: {', '.join(known)}" if known else "training needs a suite with splits",
        )
    return found


def _check(options: TrainConfig, pairs: Sequence[Pair]) -> None:
    if options.method != "bt" and len({pair.user for pair in pairs}) < 2:
        raise DataError(
            f"{options.method} needs pairs of at least two users, and these are all of {pairs[0].user!r}",
            hint="one user can only teach one reward: train bt, or bring more users",
        )
    if options.method != "bt" and not options.shots and not any(pair.profile for pair in pairs):
        raise ConfigError(
            f"{options.method}: no user of the split has a post, and --shots is 0: there is nothing to know users by",
            hint="bring profiles, or let the model see labelled pairs with --shots 16",
        )
