"""Checkpoints: what a training needs to continue as if it had never stopped, in one file, and one training a folder."""

import contextlib
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from prbench.errors import RunError
from prbench.files import locked, replacing

CHECKPOINT = "checkpoint.pt"


def keep(folder: Path, identity: str, content: Mapping[str, Any]) -> None:
    """Replace the checkpoint of a folder; a reader sees the old one or the new one, never a part."""
    with replacing(folder / CHECKPOINT) as partial, partial.open("wb") as file:
        torch.save({"identity": identity, **content}, file)


def read(folder: Path, identity: str) -> Mapping[str, Any] | None:
    """The checkpoint of a folder, None where there is none; refused where it is damaged or another training's."""
    path = folder / CHECKPOINT
    if not path.exists():
        return None
    try:
        _check_sums(path)
        kept: Mapping[str, Any] = torch.load(path, weights_only=True)
        found = kept["identity"]
    except Exception as error:  # what is read is untrusted bytes, and torch raises nearly every type over them
        raise RunError(
            f"{str(path)!r} is damaged, or is not a checkpoint of a training ({type(error).__name__})",
            hint="restore it, or remove that file to train from the start, or give --out another folder",
        ) from error
    if found != identity:
        raise RunError(
            f"{str(folder)!r} holds another training (its options, its encoder or its pairs differ)",
            hint="give this training its own folder with --out, or remove that one",
        )
    return kept


def _check_sums(path: Path) -> None:
    """Compare every part of the file with the checksum that torch wrote beside it; torch itself does not look."""
    with zipfile.ZipFile(path) as archive:
        if part := archive.testzip():
            raise zipfile.BadZipFile(f"{part} is not what was written")


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep a second training out of a folder while this one runs."""
    if folder.is_file():
        raise RunError(f"{str(folder)!r} is a file", hint="--out names the folder of the model")
    busy = RunError(f"another process is training in {str(folder)!r}", hint="wait for it, or give --out another folder")
    with locked(folder / ".lock", busy):
        for left in folder.glob(f".{CHECKPOINT}.*.part"):  # of a training that was killed while it wrote
            left.unlink(missing_ok=True)
        yield
