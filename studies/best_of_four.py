"""A rival in the manner of RewardBench 2: one sound answer among three that are none, and no user at all.

    python studies/best_of_four.py -o runs/downstream-2/best-of-four.jsonl

From the suite `generic`: for each question a sound answer, its flawed sibling, and a sound and a flawed answer to two
other questions of the same category. Three pairs share the tag `item`; `study correlate` counts such a row once, right
where the sound answer beats all others.
"""

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from prbench.data import load_pairs, write_pairs
from prbench.data.fingerprint import hash_text
from prbench.types import CHOSEN_ANSWER, ITEM, REJECTED_ANSWER, Pair


def main() -> None:
    """Read the options, write the suite."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", default="generic")
    parser.add_argument("--split", default="test")
    parser.add_argument("-o", "--out", type=Path, required=True)
    given = parser.parse_args()
    made = best_of_four(list(load_pairs(given.suite, split=given.split)))
    given.out.parent.mkdir(parents=True, exist_ok=True)
    print(f"{len(made):,} pairs: {write_pairs(made, given.out)}")


def best_of_four(pairs: Sequence[Pair]) -> list[Pair]:
    """Three pairs for each question, all with one chosen answer."""
    asked: dict[str, Pair] = {}
    for pair in sorted(pairs, key=lambda pair: hash_text(f"four\0{pair.id}")):
        asked.setdefault(pair.question, pair)
    by_category: dict[str, list[Pair]] = defaultdict(list)
    for pair in asked.values():
        by_category[pair.category].append(pair)
    made = []
    for pair in asked.values():
        others = [other for other in by_category[pair.category] if other is not pair]
        others = others if len(others) > 1 else [other for other in asked.values() if other is not pair]
        near = sorted(others, key=lambda other: hash_text(f"{pair.question}\0{other.question}"))[:2]
        wrong = [pair.rejected, *(other.chosen for other in near[:1]), *(other.rejected for other in near[1:])]
        for number, text in enumerate(wrong, start=1):
            tags = {
                "split": pair.tags.get("split", ""),
                ITEM: pair.id,
                CHOSEN_ANSWER: "0",
                REJECTED_ANSWER: str(number),
            }
            changes = {"id": f"{pair.id}/{number}", "rejected": text, "tags": tags}
            made.append(pair.model_copy(update=changes))
    return made


if __name__ == "__main__":
    main()
