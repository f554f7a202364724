"""What happens inside a worker, whoever started it: the model is opened by its address, and shards are answered.

A worker that would open another model than the run's (other weights in a folder of the same name, other code) is
refused: its answers would be kept under keys that are not theirs.
"""

import os
import sys
from collections.abc import Generator, Sequence
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Self

from prbench.config import ModelOptions, digest
from prbench.errors import ModelError
from prbench.models import Model, load_model
from prbench.models._flops import Effort
from prbench.run.asking import Tally, effort_of, reply
from prbench.run.shards import View
from prbench.types import Outcome

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


class Place(NamedTuple):
    """What a worker must know to open the model as this process did."""

    address: str
    options: ModelOptions
    identity: str
    """Hash over the identity of the model's card, which the worker's own model must have as well."""
    folder: str
    """Where relative paths start."""
    path: tuple[str, ...]
    """Where modules are looked for."""
    threads: int

    @classmethod
    def here(cls, model: Model, address: str, options: ModelOptions, threads: int) -> Self:
        """As it is in this process."""
        if options.template is not None:
            options = options.model_copy(update={"template": options.template.resolve()})
        folder = str(Path.cwd())
        path = tuple(entry or folder for entry in sys.path)
        return cls(address, options, digest(model.card.identity), folder, path, threads)


class Desk:
    """Holds a model and answers calls with it."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._answered = False
        self._told = Effort()

    @cached_property
    def model(self) -> Model:
        """Opened and loaded on first use."""
        place = self._place
        _settle(place)
        model = load_model(place.address, place.options)
        if digest(model.card.identity) != place.identity:
            raise ModelError(
                f"{place.address}: a worker in {place.folder!r} opened another model than the run's: "
                f"revision {model.card.revision!r}, parameters {dict(model.card.parameters)}",
                hint="every worker needs the same files and code under the same address; --workers 1 needs none",
            )
        if hasattr(model, "prepare"):
            model.prepare()
        _limit_torch(place.threads)
        return model

    def answer(self, calls: Sequence[tuple[str, View]]) -> Generator[tuple[str, Outcome]]:
        """Answer calls as the model would in one process.

        A model may raise where the very first call that it sees is one that it cannot answer, and yield a failure where
        a later one is. What comes first here is chance, so all others are asked before the error is believed.
        """
        try:
            yield from self._ask(calls)
        except ModelError:
            first = None if self._answered else self._first_answer(calls)
            if first is None:
                raise
            yield first
            yield from self._ask([call for call in calls if call[0] != first[0]])

    def tally(self, *, final: bool = False) -> Tally:
        """What was done since this was last asked; `final` measures what the machine could have done as well."""
        now = effort_of(self.model) + Effort()  # a copy, for it goes on
        since, self._told = now - self._told, now
        peak = getattr(self.model, "peak_flops", None) if final else None
        return Tally(since, peak, getattr(self.model, "note", None))

    def _ask(self, calls: Sequence[tuple[str, View]]) -> Generator[tuple[str, Outcome]]:
        with closing(reply(self.model, [view for _, view in calls])) as replies:
            for index, outcome in replies:
                self._answered = True
                yield calls[index][0], outcome

    def _first_answer(self, calls: Sequence[tuple[str, View]]) -> tuple[str, Outcome] | None:
        for call in calls:
            try:
                return next(self._ask([call]), None)
            except ModelError:
                continue
        return None


def _settle(place: Place) -> None:
    """Look for files and modules where the run's own process does, and leave cores to the other workers."""
    for variable in THREAD_VARIABLES:
        os.environ[variable] = str(place.threads)
    if Path(place.folder).is_dir():
        os.chdir(place.folder)
    sys.path += [entry for entry in place.path if entry not in sys.path and Path(entry).exists()]


def _limit_torch(threads: int) -> None:
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(threads)
