"""The plan of the study: everything that was decided before the first look at test, and what a result is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from people.cells import Cell
from people.tastes import Taste

BLIND = ("random", "longer", "shorter", "overlap")
ALL_RATINGS = "factors, from all ratings"


@dataclass(frozen=True)
class Plan:
    """Everything that was decided before the first look at test."""

    seed: int = 0
    shots: tuple[int, ...] = (0, 1, 2, 4, 8, 16)
    methods: tuple[str, ...] = ("user-bt", "vpl", "pal", "lore", "gpo")
    grid: tuple[Mapping[str, Any], ...] = (
        {"learning_rate": 2e-3, "weight_decay": 0.3},
        {"learning_rate": 5e-4, "weight_decay": 3.0},
    )
    training: Mapping[str, Any] = field(default_factory=lambda: {"epochs": 15, "patience": 4})
    pairs: Mapping[str, int] = field(default_factory=lambda: {"train": 16_000, "validation": 3000, "test": 6000})
    """Most pairs of the splits of `known jokes`."""
    most_pairs: int = 16_000
    """Most pairs of the other suites, over all splits."""
    ranks: tuple[int, ...] = (3, 5, 8, 12, 16, 24)
    nearest: tuple[int, ...] = (100, 300, 1000)
    ridges: tuple[float, ...] = (0.1, 1.0, 10.0)
    shipped: bool = True
    """Whether the reference model is tried as it ships."""
    final: bool = True
    """Whether test is looked at; else validation stands in for it."""


FULL = Plan()
QUICK = Plan(
    methods=("user-bt", "lore"),
    grid=({},),
    training={"epochs": 2, "patience": 2},
    pairs={"train": 1000, "validation": 400, "test": 400},
    most_pairs=1600,
    ranks=(5,),
    nearest=(300,),
    ridges=(1.0,),
    shipped=False,
    final=False,
)


class Candidate(NamedTuple):
    """A way to guess a taste, in one or more settings of which validation chooses."""

    name: str
    knows: str
    settings: Mapping[str, Callable[[], Taste]]
    shots: Sequence[int]
    basis: str = ""
    """Whatever else a result depends on, beyond world and setting: how it is trained, by which encoder."""


class Finding(NamedTuple):
    """A candidate in the chosen setting: its cells by split and shots."""

    candidate: Candidate
    setting: str
    tried: Mapping[str, float]
    """Accuracy of each setting on validation; empty where there was nothing to choose."""
    cells: Mapping[tuple[str, int], Cell]
