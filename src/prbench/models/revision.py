"""Identity of a model folder, as one hash: two folders with the same weights, config and tokenizer are the same model.

Files that training leaves behind (optimizer, logs, notes) do not change an answer and are left out.
"""

import hashlib
from collections.abc import Collection
from pathlib import Path

from prbench.errors import ModelError
from prbench.files import checksum

_SUFFIXES = frozenset({".bin", ".jinja", ".json", ".model", ".pt", ".safetensors", ".tiktoken", ".txt"})
_LEFT_BY_TRAINING = frozenset(
    {"all_results.json", "eval_results.json", "optimizer.bin", "optimizer.pt", "requirements.txt", "scaler.pt"}
    | {"scheduler.bin", "scheduler.pt", "train_results.json", "trainer_state.json", "training_args.bin"}
    | {"delta.safetensors", "prbench_scale.json", "tuning.json"}  # where weights come from, how scores are read
)
_known: dict[tuple[str, int, int], str] = {}  # (path, size, mtime in ns) → digest of the content


def folder_revision(folder: Path, only: Collection[str] | None = None) -> str:
    """Hash the files of a model folder that can change an answer: names and contents, not dates or place.

    A file is read once per process for as long as its size and modification time stay the same. With `only`, no other
    files than these are looked at.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as name:
        ...     _ = Path(name, "config.json").write_text("{}")
        ...     before = folder_revision(Path(name))
        ...     _ = Path(name, "README.md").write_text("notes")
        ...     before == folder_revision(Path(name))
        True
    """
    total = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        if _matters(file) and (only is None or file.name in only):
            total.update(f"{file.name}\0{_digest(file)}\n".encode())
    return total.hexdigest()


def _matters(file: Path) -> bool:
    if file.name in _LEFT_BY_TRAINING or file.name.startswith(("rng_state", ".")):
        return False
    return file.suffix in _SUFFIXES and file.is_file()


def _digest(file: Path) -> str:
    status = file.stat()
    key = (str(file.resolve()), status.st_size, status.st_mtime_ns)
    if key not in _known:
        _known[key] = checksum(file, raises=ModelError)
    return _known[key]
