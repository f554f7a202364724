"""`personal:reference`: the model that ships with the package, as what it learned beside an encoder that it does not.

The encoder is pulled as for `embed:minilm`. The package holds the method's weights and, of each encoder that was tuned
from that one, its heads and the change of its layers; all are read where they lie.
"""

import shutil
from pathlib import Path

from prbench.errors import ModelError
from prbench.models.local.upper import DELTA, TUNING
from prbench.models.personal import artifact, shipped_folder
from prbench.models.personal.stance_encoder import AXES, HEAD

LEARNED = (HEAD, AXES, DELTA, TUNING)
"""Files that hold what a tuned encoder learned."""


def is_shipped(name: str) -> bool:
    """Whether this names a model of the package; a folder of that name goes before.

    Example:
        >>> is_shipped("reference"), is_shipped("runs/mine")
        (True, False)
    """
    folder = shipped_folder(f"personal:{name}")
    return folder is not None and (folder / artifact.RECORD).is_file()


def pack(folder: Path, target: Path) -> None:
    """Keep of a trained model what ships; the record comes last."""
    record = artifact.read_record(folder, f"personal:{folder}")
    if (folder / "encoder").is_dir():
        raise ModelError(
            f"{str(folder)!r} cannot be packed: its vectors come from a tuned encoder, which is too large",
            hint="pack a model over an encoder that is pulled, such as embed:minilm",
        )
    tuned = [name for name in (artifact.POSTS, artifact.ANSWERS) if (folder / name).is_dir()]
    kept = [artifact.WEIGHTS, *(f"{name}/{file}" for name in tuned for file in LEARNED)]
    if missing := [name for name in kept if not (folder / name).is_file()]:
        raise ModelError(f"{str(folder)!r} cannot be packed: {missing[0]} is missing", hint="train the model again")
    for name in (artifact.POSTS, artifact.ANSWERS):
        shutil.rmtree(target / name, ignore_errors=True)
    for name in kept:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / name, target / name)
    artifact.save_record(target, record)
