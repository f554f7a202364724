"""Cells: what one taste earned on one split with so many shots, kept in the work folder so that nothing is done twice.

Every look at test that is really made is written down in `looks.jsonl`, and what it cost in `spent.jsonl`.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from people.tastes import Numbers, Taste
from people.worlds import World, write_whole
from prbench.config import digest
from prbench.types import Frozen

FINAL = ("test", "seen-users")
"""Splits that are looked at once, when everything is decided."""


class Cell(Frozen):
    """One credit per pair of the split, in its order: 1 right, ½ undecided, 0 wrong."""

    world: str
    taste: str
    setting: str
    split: str
    shots: int
    credits: tuple[float, ...]

    @cached_property
    def accuracy(self) -> float:
        """The mean credit."""
        return float(np.mean(self.credits))


class Book:
    """The work folder of a study.

    Args:
        folder: Outside the repository; holds what real people said.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def cell(
        self, world: World, taste: str, setting: str, basis: str, split: str, shots: int, make: Callable[[], Taste]
    ) -> Cell:
        """Measure a taste, or read what was measured before; `make` is only called where something is to be done."""
        pairs = world.pairs[split]
        known = world.first(shots)
        asked = digest([[pair.id, pair.user, known[pair.user]] for pair in pairs])
        what = {"world": world.name, "learned": world.learned, "taste": taste, "setting": setting, "basis": basis}
        key = digest({**what, "shots": shots, "asked": asked})[:20]
        path = self.folder / "cells" / f"{key}.json"
        if path.is_file():
            return Cell.model_validate_json(path.read_text(encoding="utf-8"))
        found = make()
        with self.spending(f"{world.name} {taste} {split} {shots}"):
            credits = tuple(earned(found.margins(pairs, known)).tolist())
        cell = Cell(world=world.name, taste=taste, setting=setting, split=split, shots=shots, credits=credits)
        if split in FINAL:
            self._note("looks", world=world.name, taste=taste, split=split, shots=shots, setting=setting)
        write_whole(path, cell.model_dump_json())
        return cell

    def spending(self, on: str) -> "_Spending":
        """Write down the time that the body takes."""
        return _Spending(self, on)

    def looks(self) -> Counter[tuple[str, str, str, int]]:
        """How often each taste has been measured on each final split with so many shots."""
        return Counter((row["world"], row["taste"], row["split"], row["shots"]) for row in self._rows("looks"))

    def spent(self) -> tuple[float, float]:
        """Seconds on the clock and of the processor, over all that is kept here."""
        rows = self._rows("spent")
        return sum(row["clock_s"] for row in rows), sum(row["processor_s"] for row in rows)

    def _note(self, name: str, **values: object) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / f"{name}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(values) + "\n")

    def _rows(self, name: str) -> list[dict[str, Any]]:
        path = self.folder / f"{name}.jsonl"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


class _Spending:
    """A stretch of time that is written down when it ends well."""

    def __init__(self, book: Book, on: str) -> None:
        self._book, self._on = book, on

    def __enter__(self) -> None:
        self._clock, self._processor = time.perf_counter(), time.process_time()

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        if failed is None:
            clock, processor = time.perf_counter() - self._clock, time.process_time() - self._processor
            self._book._note("spent", on=self._on, clock_s=round(clock, 2), processor_s=round(processor, 2))


def earned(margins: Numbers | Sequence[float]) -> Numbers:
    """Credits of margins: 1 where the chosen text is ahead, ½ where neither is.

    Example:
        >>> earned([0.2, 0.0, -1.0]).tolist()
        [1.0, 0.5, 0.0]
    """
    values = np.asarray(margins, dtype=np.float64)
    credits: Numbers = (values > 0) + 0.5 * (values == 0)
    return credits
