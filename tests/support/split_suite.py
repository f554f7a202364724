"""A mirrored suite on disk with a training, a validation and a test split that share no text."""

from collections.abc import Iterable
from pathlib import Path

from prbench.types import Pair
from small_suite import mirrored

SPLITS = ("train", "validation", "test")


def split_pairs(split: str, couples: int = 3, questions: int = 4) -> list[Pair]:
    """The small suite with every text marked as this split's own."""
    return [
        pair.model_copy(
            update={
                "id": f"{split}:{pair.id}",
                "user": f"{split}-{pair.user}",
                "question": f"{split}: {pair.question}",
                "profile": tuple(
                    post.model_copy(update={"text": f"{post.text}, in {split}."}) for post in pair.profile
                ),
                "chosen": f"{pair.chosen} It is {split}.",
                "rejected": f"{pair.rejected} It is {split}.",
                "tags": {**pair.tags, **{tag: f"{split}-{pair.tags[tag]}" for tag in ("mirror", "couple")}},
            }
        )
        for pair in mirrored(couples, questions, split)
    ]


def write_suite(path: Path, pairs: Iterable[Pair] | None = None) -> Path:
    """Write pairs, by default of all three splits, as JSONL."""
    chosen = pairs if pairs is not None else [pair for split in SPLITS for pair in split_pairs(split)]
    path.write_text("".join(pair.model_dump_json() + "\n" for pair in chosen), encoding="utf-8")
    return path
