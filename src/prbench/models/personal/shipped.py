"""`personal:reference`: the model that ships with the package, as what it learned beside an encoder that it does not.

The encoder is pulled as for `embed:minilm`. A model over the plain encoder is read where it lies in the package. Of a
model with tuned ones the package holds the method's weights, the encoders' heads and the change of their layers, and on
first use they are joined with the encoder into an ordinary model folder in the cache.
"""

import shutil
from pathlib import Path

from prbench import files
from prbench.config import cache_folder, digest
from prbench.errors import ModelError
from prbench.models.personal import SHIPPED, artifact, shipped_folder
from prbench.models.personal.stance_encoder import AXES, HEAD

DELTA = "delta.safetensors"
TUNING = "tuning.json"
ENCODER, POSTS, ANSWERS = "encoder", "posts", "answers"
"""Folders of tuned encoders in a model's: the one its vectors come from, and those that read posts and answers."""
_PACKED = (HEAD, AXES, DELTA, TUNING)
"""Files that are kept of a tuned encoder."""


def is_shipped(name: str) -> bool:
    """Whether this names a model of the package; a folder of that name goes before.

    Example:
        >>> is_shipped("reference"), is_shipped("runs/mine")
        (True, False)
    """
    folder = shipped_folder(f"personal:{name}")
    return folder is not None and (folder / artifact.RECORD).is_file()


def unpack(name: str, *, source: Path | None = None, target: Path | None = None) -> Path:
    """The model's folder: in the package, or in the cache, joined from what ships and its encoder on first use."""
    packed = source or SHIPPED / name
    kept = _kept(packed)
    if missing := [file for file in (*kept, artifact.RECORD) if not (packed / file).is_file()]:
        raise ModelError(f"personal:{name}: {str(packed / missing[0])!r} is missing", hint="install the package again")
    if kept == [artifact.WEIGHTS]:
        return packed
    contents = {file: files.read_bytes(packed / file).hex() for file in (*kept, artifact.RECORD)}
    folder = target or cache_folder() / "models" / f"personal-{name}-{digest(contents)[:12]}"
    if (folder / artifact.RECORD).is_file():
        return folder
    with files.locked(folder.parent / f".{folder.name}.lock"):
        if not (folder / artifact.RECORD).is_file():  # else another process made it while this one waited
            with files.replacing_folder(folder) as partial:
                _join(packed, partial, f"personal:{name}")
    return folder


def _kept(folder: Path) -> list[str]:
    """The files of a model that ship, but for its record."""
    tuned = [name for name in (ENCODER, POSTS, ANSWERS) if (folder / name).is_dir()]
    return [artifact.WEIGHTS, *(f"{name}/{file}" for name in tuned for file in _PACKED)]


def _join(packed: Path, folder: Path, address: str) -> None:
    from prbench.models.revision import folder_revision

    for file in _kept(packed):
        if file.endswith(DELTA):
            _join_encoder((packed / file).parent, (folder / file).parent, address)
    for file in _kept(packed):
        shutil.copyfile(packed / file, folder / file)
    record = artifact.read_record(packed, address)
    if _over_it(record):
        record = record.model_copy(update={"encoder_revision": folder_revision(folder / ENCODER)})
    artifact.save_record(folder, record)


def _join_encoder(packed: Path, folder: Path, address: str) -> None:
    from prbench.config import ModelOptions
    from prbench.models.local.checkpoint import quiet
    from prbench.models.local.embed import SentenceEncoder
    from prbench.models.personal.delta import add_delta
    from prbench.models.registry import load_encoder

    tuning = files.read_json(packed / TUNING, raises=ModelError, hint="install the package again")
    base = load_encoder(tuning["options"]["base"], ModelOptions(device="cpu"))
    if not isinstance(base, SentenceEncoder) or base.checkpoint.revision != tuning["base_revision"]:
        raise ModelError(
            f"{address}: its encoder {tuning['options']['base']} is another one here than it was tuned from",
            hint="pull it again (`prbench models pull minilm`), or train the model here with `make reference`",
        )
    model = base._model
    add_delta(model, files.load_tensors(packed / DELTA, raises=ModelError))
    with quiet():
        model.save_pretrained(folder)
        base.checkpoint.tokenizer.save_pretrained(folder)


def _over_it(record: artifact.PersonalRecord) -> bool:
    """Whether the model's vectors come from the tuned encoder; `contrast` reads posts and answers by its own."""
    return record.encoder.partition("#")[0] == ENCODER


def pack(folder: Path, target: Path) -> None:
    """Keep of a trained model what `unpack` needs; the record comes last."""
    record = artifact.read_record(folder, f"personal:{folder}")
    kept = _kept(folder)
    if missing := [name for name in kept if not (folder / name).is_file()]:
        raise ModelError(
            f"{str(folder)!r} cannot be packed: {missing[0]} is missing",
            hint="only a model over an encoder that was tuned here can (`make reference`)",
        )
    for name in kept:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / name, target / name)
    artifact.save_record(target, record.model_copy(update={"encoder_revision": ""} if _over_it(record) else {}))
