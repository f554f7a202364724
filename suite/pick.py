"""Which pairs of a split are kept: at most so many for each couple and question, balanced over axes and domains.

A couple and a question that concerns it are a *cell*. All pairs that a cell could give are the same question with other
answers, so a few of each cell tell nearly as much as all of them, at a fraction of the cost. The rule, the same for
every split, and by seed:

1. A cell gives as many pairs as are asked for, or all that it has.
2. Where a couple holds both axes of a question, one of its five pairs differs on both. The same share of what is kept
   does: cells are taken for it evenly over domains and couples.
3. Every other pair differs on one axis. It is the one that is least crowded so far, counted over its axis, its axis in
   its domain, its axis with its couple, and its two answers; all are chosen once in turn, and then again with all the
   others given, until no choice changes.

Both halves of a couple get what the cell was given, with opposite labels, so nothing here can favour an answer.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from prbench.data.sampling import stratified_order

SEED = 18
_PASSES = 50


class Choice(NamedTuple):
    """Two answers that one couple meets: what decides, and which answer the first half wants."""

    axes: tuple[str, ...]
    wanted: tuple[str, ...]
    """Poles that the first half wants on these axes."""
    chosen: str
    rejected: str
    """Keys of the answers, from the first half's point of view."""


class Cell(NamedTuple):
    """A couple and a question, with the pairs that they could give."""

    couple: str
    question: str
    domain: str
    offers: tuple[Choice, ...]


class _Slot(NamedTuple):
    """A place for a pair on one axis."""

    cell: str
    number: int


def pick(cells: Sequence[Cell], most: int, seed: int = SEED) -> Mapping[tuple[str, str], tuple[Choice, ...]]:
    """Choose at most so many pairs of each cell, by couple and question; the order of a cell's offers is kept."""
    named = {f"{cell.couple} {cell.question}": cell for cell in cells}
    twofold = _twofold(named, most, seed)
    slots = []
    for name in stratified_order({name: (cell.domain, cell.couple) for name, cell in named.items()}, seed):
        single = sum(len(offer.axes) == 1 for offer in named[name].offers)
        slots += [_Slot(name, number) for number in range(min(most - (name in twofold), single))]
    chosen = _settle(slots, named)
    kept: dict[str, set[Choice]] = {name: set() for name in named}
    for slot, offer in chosen.items():
        kept[slot.cell].add(offer)
    for name in twofold:
        kept[name].update(offer for offer in named[name].offers if len(offer.axes) == 2)
    return {
        (cell.couple, cell.question): tuple(offer for offer in cell.offers if offer in kept[name])
        for name, cell in named.items()
    }


def _twofold(named: Mapping[str, Cell], most: int, seed: int) -> set[str]:
    """The cells that give their pair on two axes."""
    able = {name: cell for name, cell in named.items() if any(len(offer.axes) == 2 for offer in cell.offers)}
    wanted = sum(most * 1000 // len(cell.offers) for cell in able.values()) // 1000
    return set(stratified_order({name: (cell.domain, cell.couple) for name, cell in able.items()}, seed)[:wanted])


def _settle(slots: Sequence[_Slot], named: Mapping[str, Cell]) -> dict[_Slot, Choice]:
    crowd: Counter[tuple[str, ...]] = Counter()
    weights = _weights(named.values())
    chosen: dict[_Slot, Choice] = {}
    for _ in range(_PASSES):
        changed = False
        for slot in slots:
            cell, before = named[slot.cell], chosen.pop(slot, None)
            if before is not None:
                crowd.subtract(_groups(cell, before))
            taken = {chosen.get(_Slot(slot.cell, number)) for number in range(slot.number + 2)}
            free = [offer for offer in cell.offers if len(offer.axes) == 1 and offer not in taken]
            best = min(free, key=lambda offer: _crowding(cell, offer, crowd, weights))
            if before in free and _crowding(cell, before, crowd, weights) == _crowding(cell, best, crowd, weights):
                best = before
            chosen[slot] = best
            crowd.update(_groups(cell, best))
            changed |= best != before
        if not changed:
            break
    return chosen


def _groups(cell: Cell, offer: Choice) -> list[tuple[str, ...]]:
    """Everything over which pairs are to be spread evenly."""
    (axis,) = offer.axes
    return [
        ("axis", axis),
        ("domain", cell.domain, axis),
        ("couple", cell.couple, axis),
        ("answers", cell.question, *sorted((offer.chosen, offer.rejected))),
    ]


def _weights(cells: Iterable[Cell]) -> dict[str, int]:
    """How many groups there are of each kind: a kind of many small groups weighs as much as one of few large ones."""
    groups = {
        group for cell in cells for offer in cell.offers if len(offer.axes) == 1 for group in _groups(cell, offer)
    }
    return dict(Counter(kind for kind, *_ in groups))


def _crowding(cell: Cell, offer: Choice, crowd: Mapping[tuple[str, ...], int], weights: Mapping[str, int]) -> int:
    return sum(weights[group[0]] * crowd.get(group, 0) for group in _groups(cell, offer))
