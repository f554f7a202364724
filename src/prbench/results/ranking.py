"""Models, contexts or baselines in the order of their credits, in groups that the data can tell apart."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from prbench import stats
from prbench.results.credits import Credit, CreditRows
from prbench.results.rows import PairRow, PairRows
from prbench.stats import Clusters, Standing


def clusters_of(rows: Sequence[Credit]) -> Clusters:
    """Return the units that vary together: users (or couples of users) and questions."""
    if isinstance(rows, CreditRows):
        return rows.clusters
    return Clusters.of([row.row.unit for row in rows], [row.row.item for row in rows])


def rank_rows(judged: Mapping[str, CreditRows]) -> tuple[Standing, ...]:
    """Rank models, contexts or baselines by their credits, in groups that the data can tell apart.

    Every two are compared on the pairs that both judged; pairs are the same by their content.
    """
    tables = {id(rows.pairs): rows.pairs for rows in judged.values() if len(rows)}
    if not tables:
        return ()
    widest = max(tables.values(), key=len)
    others = [table for table in tables.values() if table is not widest]
    within = all(table.content_place.keys() <= widest.content_place.keys() for table in others)
    pairs = widest if within else PairRows(_union(widest, others))
    credits = {}
    anybody = np.zeros(len(pairs), dtype=np.bool_)
    for name, rows in judged.items():
        places = rows.places
        if rows.pairs is not pairs:
            places = np.array([pairs.content_place[content] for content in rows.contents], dtype=np.int64)
        credits[name] = np.full(len(pairs), np.nan)
        credits[name][places] = rows.credit
        anybody[places] = True
    order = pairs.in_order[anybody[pairs.in_order]]
    clusters = Clusters(pairs.units, pairs.items).take(order)
    return stats.significance_groups({name: found[order] for name, found in credits.items()}, clusters)


def _union(widest: PairRows, tables: Iterable[PairRows]) -> Iterator[PairRow]:
    """The rows of the widest table, and those of others that it has not."""
    yield from widest
    known = set(widest.contents)
    for table in tables:
        for place, content in enumerate(table.contents):
            if content not in known:
                known.add(content)
                yield table[place]
