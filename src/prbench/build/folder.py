"""A built suite on disk: a folder that appears whole or not at all."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from prbench.build.card import MirrorCard
from prbench.data import Suite, write_pairs
from prbench.errors import ConfigError
from prbench.files import replacing, replacing_folder

PAIRS, CONTEXT, ITEMS, CARD = "pairs.parquet", "context.jsonl", "items.jsonl", "card.json"


def refuse_foreign(folder: Path) -> None:
    """Only a folder that an earlier build made, or an empty one, is replaced."""
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"--out {str(folder)!r} is a file", hint="name a folder")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / CARD).is_file():
        raise ConfigError(
            f"--out {str(folder)!r} holds files of something else", hint="name a new folder, or empty this one"
        )


def write_folder(
    folder: Path,
    suite: Suite,
    context: Iterable[Mapping[str, Any]],
    items: Iterable[Mapping[str, str]],
    card: MirrorCard,
) -> None:
    """Write everything beside its place, and move it there together."""
    refuse_foreign(folder)
    with replacing_folder(folder) as made:
        write_pairs(suite, made / PAIRS)
        _write(made / CONTEXT, (json.dumps(row, ensure_ascii=False) for row in context))
        _write(made / ITEMS, (json.dumps(row, ensure_ascii=False) for row in items))
        _write(made / CARD, [json.dumps(card.model_dump(mode="json"), ensure_ascii=False, indent=2)])


def _write(path: Path, lines: Iterable[str]) -> None:
    with replacing(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)
