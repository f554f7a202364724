"""A trained model on disk: `personal.json` (what it is and what it was trained on) and `weights.safetensors`.

A tuned encoder lies beside them in `encoder/`, or what it learned in a folder of its own. Nothing is pickled: opening a
model runs no code from its folder. `SHA256SUMS` holds the checksums, as `sha256sum --check` reads them; a model that is
older has none.
"""

import difflib
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from torch import Tensor

from prbench import files
from prbench.errors import ModelError
from prbench.models.personal import REFERENCE
from prbench.types import Frozen

RECORD = "personal.json"
WEIGHTS = "weights.safetensors"
SUMS = "SHA256SUMS"
POSTS, ANSWERS = "posts", "answers"
"""Folders of tuned encoders in a model's: the one that reads posts and statements, and the one that reads answers."""


Width = Annotated[int, Field(ge=0, le=2**20)]


class TrainingFacts(Frozen):
    """Facts of a model's training."""

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
    portion: Mapping[str, Any] = Field(default_factory=dict)
    """Part of the training material that it was given, where that was not all of it."""
    seed: int = 0
    steps: int = 0
    validation: Mapping[str, Any] = Field(default_factory=dict)
    """Accuracy and loss on held-out users and questions, as measured while training."""

    @property
    def told(self) -> dict[str, Any]:
        """Return what a model's card says of the training."""
        found = self.model_dump(mode="json", include={"suite", "split", "pairs", "users", "portion"})
        return {name: value for name, value in found.items() if value != {}}


class PersonalRecord(Frozen):
    """Record of a trained model: everything needed to score again, and where it comes from."""

    method: str
    settings: Mapping[str, Any] = Field(default_factory=dict)
    encoder: str
    """Address of the encoder; `encoder` for the tuned one in the model's own folder."""
    encoder_revision: str = ""
    post_window: Width = 2
    answer_window: Width = 1
    width_post: Width
    width_item: Width
    training: TrainingFacts


def save(folder: Path, record: PersonalRecord, weights: Mapping[str, Tensor]) -> None:
    """Write a model; the record comes last, so a folder with a record is whole."""
    from safetensors.torch import save_file

    with files.replacing(folder / WEIGHTS) as partial:
        save_file({name: tensor.contiguous() for name, tensor in weights.items()}, partial)
    save_record(folder, record)


def save_record(folder: Path, record: PersonalRecord) -> None:
    """Write what a model is, once its weights are there, and the checksums of all."""
    text = record.model_dump_json(indent=2) + "\n"
    sums = {RECORD: hashlib.sha256(text.encode()).hexdigest()}
    sums |= {name: files.checksum(folder / name, raises=ModelError) for name in _learned(folder)}
    files.write_whole(folder / SUMS, "".join(f"{digest}  {name}\n" for name, digest in sums.items()))
    files.write_whole(folder / RECORD, text)


def _lack(folder: Path) -> str:
    """Say why a folder is no model."""
    if not folder.exists():
        return f"there is no folder {str(folder)!r}"
    if not folder.is_dir():
        return f"{str(folder)!r} is a file, not the folder of a trained model"
    begun = ", a training that was interrupted" if (folder / "checkpoint.pt").is_file() else ""
    return f"{str(folder)!r} holds no trained model{begun} ({RECORD} is missing)"


def _way_out(name: str) -> str:
    if not name or difflib.get_close_matches(name.lower(), [REFERENCE], cutoff=0.75):
        return f"'personal:{REFERENCE}' is the model that ships; personal:DIR is one that you trained"
    return "train one with `prbench train METHOD --out DIR`; the same command continues a training"


def read_record(folder: Path, address: str) -> PersonalRecord:
    """Read the record of the model in a folder."""
    path = folder / RECORD
    if not files.exists(path, raises=ModelError):
        raise ModelError(f"{address}: {_lack(folder)}", hint=_way_out(address.partition(":")[2]))
    record = files.read_model(path, PersonalRecord, raises=ModelError, hint="train the model again")
    _check_sums(folder, address)
    return record


def _check_sums(folder: Path, address: str) -> None:
    """Refuse a model whose files are not those that its training wrote."""
    if not files.exists(folder / SUMS, raises=ModelError):
        return
    for line in files.read_text(folder / SUMS, raises=ModelError).splitlines():
        digest, _, name = line.partition("  ")
        if not _is_own(name):
            continue
        if not files.exists(folder / name, raises=ModelError):
            raise ModelError(f"{address}: {name} is missing in {str(folder)!r}", hint="train the model again")
        if digest != files.checksum(folder / name, raises=ModelError):
            raise ModelError(
                f"{address}: {str(folder / name)!r} is not what its training wrote: its checksum differs",
                hint=f"train the model again; where the change is your own, remove {SUMS}",
            )


def read_weights(folder: Path, address: str) -> dict[str, Tensor]:
    """The weights of the model in a folder."""
    return files.load_tensors(folder / WEIGHTS, raises=ModelError, hint="train the model again")


def revision(folder: Path) -> str:
    """One hash over record, weights and what tuned encoders learned."""
    total = hashlib.sha256()
    for name in (RECORD, *_learned(folder)):
        total.update(files.read_bytes(folder / name, raises=ModelError) if (folder / name).is_file() else b"")
    return total.hexdigest()


def _learned(folder: Path) -> list[str]:
    """Names of the files that hold what was learned; an encoder that was copied whole has a revision of its own."""
    tuned = (path for name in (POSTS, ANSWERS) for path in sorted((folder / name).glob("*")))
    found = [WEIGHTS, *(path.relative_to(folder).as_posix() for path in tuned)]
    return [name for name in found if (folder / name).is_file()]


def _is_own(name: str) -> bool:
    """Whether a file of this name can be a part of a model; others in its folder do not matter."""
    above, _, file = name.rpartition("/")
    return name in (RECORD, WEIGHTS) or (above in (POSTS, ANSWERS) and file not in ("", ".", ".."))
