"""`personal:reference`: the model that ships with the package, as what it learned beside an encoder that it does not.

The encoder is pulled as for `embed:minilm`. A model over the plain encoder is read where it lies in the package. Of a
model over a tuned one the package holds the method's weights, the encoder's heads and the change of its layers, and on
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
_PACKED = (f"encoder/{HEAD}", f"encoder/{AXES}", f"encoder/{DELTA}", f"encoder/{TUNING}", artifact.WEIGHTS)


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
    if (packed / artifact.RECORD).is_file() and not (packed / "encoder").is_dir():
        return packed
    if missing := [file for file in (*_PACKED, artifact.RECORD) if not (packed / file).is_file()]:
        raise ModelError(f"personal:{name}: {str(packed / missing[0])!r} is missing", hint="install the package again")
    contents = {file: files.read_bytes(packed / file).hex() for file in (*_PACKED, artifact.RECORD)}
    folder = target or cache_folder() / "models" / f"personal-{name}-{digest(contents)[:12]}"
    if (folder / artifact.RECORD).is_file():
        return folder
    with files.locked(folder.parent / f".{folder.name}.lock"):
        if not (folder / artifact.RECORD).is_file():  # else another process made it while this one waited
            with files.replacing_folder(folder) as partial:
                _join(packed, partial, f"personal:{name}")
    return folder


def _join(packed: Path, folder: Path, address: str) -> None:
    from prbench.config import ModelOptions
    from prbench.models.local.checkpoint import quiet
    from prbench.models.local.embed import SentenceEncoder
    from prbench.models.personal.delta import add_delta
    from prbench.models.registry import load_encoder
    from prbench.models.revision import folder_revision

    tuning = files.read_json(packed / "encoder" / TUNING, raises=ModelError, hint="install the package again")
    base = load_encoder(tuning["options"]["base"], ModelOptions(device="cpu"))
    if not isinstance(base, SentenceEncoder) or base.checkpoint.revision != tuning["base_revision"]:
        raise ModelError(
            f"{address}: its encoder {tuning['options']['base']} is another one here than it was tuned from",
            hint="pull it again (`prbench models pull minilm`), or train the model here with `make reference`",
        )
    model = base._model
    add_delta(model, files.load_tensors(packed / "encoder" / DELTA, raises=ModelError))
    with quiet():
        model.save_pretrained(folder / "encoder")
        base.checkpoint.tokenizer.save_pretrained(folder / "encoder")
    for name in _PACKED:
        shutil.copyfile(packed / name, folder / name)
    record = artifact.read_record(packed, address)
    if _over_it(record):
        record = record.model_copy(update={"encoder_revision": folder_revision(folder / "encoder")})
    artifact.save_record(folder, record)


def _over_it(record: artifact.PersonalRecord) -> bool:
    """Whether the model's vectors come from the tuned encoder; `contrast` reads only posts or flaws by it."""
    return record.encoder.partition("#")[0] == "encoder"


def pack(folder: Path, target: Path) -> None:
    """Keep of a trained model what `unpack` needs; the record comes last."""
    record = artifact.read_record(folder, f"personal:{folder}")
    tuned = record.settings.get("stances") or record.settings.get("flaws")
    if not _over_it(record) and not tuned:  # over the plain encoder, which is pulled
        target.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / artifact.WEIGHTS, target / artifact.WEIGHTS)
        artifact.save_record(target, record)
        return
    if missing := [name for name in _PACKED if not (folder / name).is_file()]:
        raise ModelError(
            f"{str(folder)!r} cannot be packed: {missing[0]} is missing",
            hint="only a model over an encoder that was tuned here can (`make reference`)",
        )
    (target / "encoder").mkdir(parents=True, exist_ok=True)
    for name in _PACKED:
        shutil.copyfile(folder / name, target / name)
    artifact.save_record(target, record.model_copy(update={"encoder_revision": ""} if _over_it(record) else {}))
