"""Checkpoints that know whose they are: another reward model's, policy's or seed's is refused, not continued."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prbench.config import digest
from prbench.errors import RunError
from prbench.files import read_json, write_whole
from prbench.train import checkpoint

KEY = "key.json"


def claim(folder: Path, key: Mapping[str, Any]) -> None:
    """Mark a folder as one training's; refuse one that is another's, naming what differs."""
    file = folder / KEY
    if not file.exists():
        write_whole(file, json.dumps(key, ensure_ascii=False, indent=2) + "\n")
        return
    found = read_json(file, raises=RunError, hint="remove that folder, and the training begins anew")
    if found == json.loads(json.dumps(key)):
        return
    name, theirs, ours = next(_differences(found, key))
    raise RunError(
        f"{str(folder)!r} holds the training of another policy: its {name} is {theirs!r}, not {ours!r}",
        hint="give this study a folder of its own with -o, or remove that one",
    )


def keep(folder: Path, key: Mapping[str, Any], content: Mapping[str, Any]) -> None:
    """Replace the checkpoint of a folder."""
    checkpoint.keep(folder, digest(key), content)


def read(folder: Path, key: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The checkpoint of a folder, None where there is none; another training's is refused."""
    claim(folder, key)
    return checkpoint.read(folder, digest(key))


def _differences(left: Any, right: Any, path: str = "") -> Any:
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        for name in dict.fromkeys([*left, *right]):
            yield from _differences(left.get(name), right.get(name), f"{path} {name}".strip())
    elif left != right:
        yield path, left, right
