"""A trained model on disk: `personal.json` (what it is and what it was trained on) and `weights.safetensors`.

A tuned encoder lies beside them in `encoder/`. Nothing is pickled: opening a model runs no code from its folder.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError
from torch import Tensor

from prbench.errors import ModelError
from prbench.types import Frozen

RECORD = "personal.json"
WEIGHTS = "weights.safetensors"


class TrainingFacts(Frozen):
    """What a model has seen."""

    suite: str
    fingerprint: str
    split: str
    pairs: int
    users: int
    questions: int
    aspects: bool = False
    """Whether the rubric aspects of the training split were used, by the method or for its encoder."""
    extra_texts: int = 0
    """Texts that the encoder was tuned on: passages from outside the split, and windows of its answers and posts."""
    seed: int = 0
    steps: int = 0
    validation: Mapping[str, Any] = Field(default_factory=dict)
    """Accuracy and loss on held-out users and questions, as measured while training."""


class PersonalRecord(Frozen):
    """What a trained model is: everything needed to score again, and where it comes from."""

    method: str
    settings: Mapping[str, Any] = Field(default_factory=dict)
    encoder: str
    """Address of the encoder; `encoder` for the tuned one in the model's own folder."""
    encoder_revision: str = ""
    post_window: int = 2
    answer_window: int = 1
    width_post: int
    width_item: int
    training: TrainingFacts


def save(folder: Path, record: PersonalRecord, weights: Mapping[str, Tensor]) -> None:
    """Write a model; the record comes last, so a folder with a record is whole."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".{WEIGHTS}.{os.getpid()}"
    save_file({name: tensor.contiguous() for name, tensor in weights.items()}, temporary)
    temporary.chmod(0o644)  # safetensors writes for its owner alone, and a model is to be shared
    temporary.replace(folder / WEIGHTS)
    save_record(folder, record)


def save_record(folder: Path, record: PersonalRecord) -> None:
    """Write what a model is, once its weights are there."""
    temporary = folder / f".{RECORD}.{os.getpid()}"
    temporary.write_text(record.model_dump_json(indent=2) + "\n", encoding="utf-8")
    temporary.replace(folder / RECORD)


def read_record(folder: Path, address: str) -> PersonalRecord:
    """What the model in a folder is."""
    path = folder / RECORD
    if not path.is_file():
        begun = ", a training that was interrupted" if (folder / "checkpoint.pt").is_file() else ""
        raise ModelError(
            f"{address}: {str(folder)!r} holds no trained model{begun} ({RECORD} is missing)",
            hint="train one with `prbench train METHOD --out DIR`; the same command continues a training",
        )
    try:
        return PersonalRecord.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except (ValidationError, ValueError) as error:
        raise ModelError(
            f"{address}: {str(path)!r} cannot be read: {str(error).splitlines()[0]}", hint="train the model again"
        ) from error


def read_weights(folder: Path, address: str) -> dict[str, Tensor]:
    """The weights of the model in a folder."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return dict(load_file(folder / WEIGHTS))
    except (OSError, SafetensorError) as error:
        raise ModelError(
            f"{address}: {str(folder / WEIGHTS)!r} cannot be read: {error}", hint="train the model again"
        ) from error


def revision(folder: Path) -> str:
    """One hash over record and weights."""
    total = hashlib.sha256()
    for name in (RECORD, WEIGHTS):
        total.update((folder / name).read_bytes() if (folder / name).is_file() else b"")
    return total.hexdigest()
