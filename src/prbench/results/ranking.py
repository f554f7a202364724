"""Models, contexts or baselines in the order of their credits, in groups that the data can tell apart."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np

from prbench import stats
from prbench.results.credits import Credit, CreditRows
from prbench.results.rows import PairRow, PairRows
from prbench.stats import Clusters, Standing

Key = TypeVar("Key", str, tuple[str, str, str, str])
"""Type of the key by which a pair is known."""


def clusters_of(rows: Sequence[Credit]) -> Clusters:
    """Return the units that vary together: users (or couples of users) and questions."""
    if isinstance(rows, CreditRows):
        return rows.clusters
    return Clusters.of([row.row.unit for row in rows], [row.row.item for row in rows])


def rank_rows(judged: Mapping[str, CreditRows]) -> tuple[Standing, ...]:
    """Rank models, contexts or baselines by their credits, as `rank_credits` does; pairs are the same by their ids."""
    tables = {id(rows.pairs): rows.pairs for rows in judged.values() if len(rows)}
    if not tables:
        return ()
    widest = max(tables.values(), key=len)
    within = all(table.place.keys() <= widest.place.keys() for table in tables.values())
    pairs = widest if within else PairRows(_union(widest, tables.values()))
    credits = {}
    anybody = np.zeros(len(pairs), dtype=np.bool_)
    for name, rows in judged.items():
        places = rows.places
        if rows.pairs is not pairs:
            place, ids = pairs.place, rows.pairs.column("id")
            places = np.array([place[ids[one]] for one in rows.places.tolist()], dtype=np.int64)
        credits[name] = np.full(len(pairs), np.nan)
        credits[name][places] = rows.credit
        anybody[places] = True
    order = pairs.in_order[anybody[pairs.in_order]]
    clusters = Clusters(pairs.units, pairs.items).take(order)
    return stats.significance_groups({name: found[order] for name, found in credits.items()}, clusters)


def _union(widest: PairRows, tables: Iterable[PairRows]) -> Iterator[PairRow]:
    """The rows of the widest table, and those of others that it has not."""
    yield from widest
    known = set(widest.place)
    for table in tables:
        for place, id in enumerate(table.column("id")):
            if id not in known:
                known.add(id)
                yield table[place]


def rank_credits(judged: Mapping[str, Mapping[Key, Credit]]) -> tuple[Standing, ...]:
    """Rank models by their credits, in groups that the data can tell apart.

    Every two are compared on the pairs that both judged.

    Args:
        judged: Per model, its credits by pair.
    """
    rows = {pair: credit for found in judged.values() for pair, credit in found.items()}
    pairs = sorted(rows)
    credits = {
        name: [found[pair].credit if pair in found else None for pair in pairs] for name, found in judged.items()
    }
    return stats.significance_groups(credits, clusters_of([rows[pair] for pair in pairs]))
