"""A part of a suite that looks like the whole: strata in proportion, the same part for the same seed.

The order is made once, so a smaller part lies within a larger one.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from prbench.data.fingerprint import hash_text

Labels = tuple[str, ...]


def stratified_order(strata: Mapping[str, Labels], seed: int) -> list[str]:
    """Order keys so that every beginning of the order holds each stratum in proportion to its size.

    Args:
        strata: For each key its labels, the outermost stratum first; all have equally many.
        seed: Another seed, another order.

    Example:
        >>> order = stratified_order({f"{kind}{number}": (kind,) for kind in "ab" for number in range(50)}, seed=0)
        >>> sum(key.startswith("a") for key in order[:20]) in (9, 10, 11)
        True
    """
    keys = sorted(strata, key=lambda key: hash_text(f"{seed}\0{key}"))
    return _interleaved(keys, strata, (), seed)


def _interleaved(keys: Sequence[str], strata: Mapping[str, Labels], path: Labels, seed: int) -> list[str]:
    """Place each stratum's keys at even distances, from a start of its own, and read off all strata at once.

    The start depends on the whole path, else all outer strata would begin with the same inner one.
    """
    level = len(path)
    if len(keys) < 2 or level == len(strata[keys[0]]):
        return list(keys)
    members: dict[str, list[str]] = defaultdict(list)
    for key in keys:
        members[strata[key][level]].append(key)
    placed = []
    for label, group in members.items():
        inner_path = (*path, label)
        start = int(hash_text("\0".join((str(seed), *inner_path)))[:12], 16) / 16**12
        inner = _interleaved(group, strata, inner_path, seed)
        placed += [((rank + start) / len(inner), key) for rank, key in enumerate(inner)]
    return [key for _, key in sorted(placed)]
