"""The on-policy arm: mirrored pairs of the policy's own answers, one clearly better to each half of a couple.

    python studies/on_policy.py runs/downstream-2/poles -o runs/downstream-2/on-policy.jsonl --margin 0.5

Reads a finished best-of-N study: its candidates and the judge's grades. For each couple and question the two answers
that lie farthest apart are taken for which both halves disagree by at least the margin, and, where candidates were
written under poles, for which judge and instruction agree. Meant for candidates that are not the endpoint's own: else
the pairs and the best-of-N would be the same measurement.
"""

import argparse
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import permutations
from pathlib import Path

from prbench.data import load_pairs, write_pairs
from prbench.data.fingerprint import hash_text
from prbench.studies.best_of_n.candidates import Candidate, read_candidates
from prbench.studies.best_of_n.grades import read_grades
from prbench.studies.best_of_n.items import StudyItem, split_pairs, study_items
from prbench.types import Pair, read_stances

Grades = Mapping[tuple[str, str], float]


def main() -> None:
    """Read the options, write the suite."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", type=Path, help="folder of a finished best-of-N study")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--suite", default="mirror")
    parser.add_argument("--split", default="test")
    parser.add_argument("--margin", type=float, default=0.5, help="of the truth, on its scale of 0 to 2")
    given = parser.parse_args()
    items = study_items(split_pairs(load_pairs(given.suite), given.split))
    grades = {
        place: graded.grade.score
        for (place, _), graded in read_grades(given.study / "grades.jsonl").items()
        if graded.grade.score is not None
    }
    made = on_policy_pairs(items, read_candidates(given.study / "candidates.jsonl"), grades, given.margin)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    print(f"{len(made):,} pairs: {write_pairs(made, given.out)}")


def on_policy_pairs(
    items: Sequence[StudyItem], candidates: Mapping[str, Candidate], grades: Grades, margin: float
) -> list[Pair]:
    """Two pairs, mirror images, for each couple and question that has two answers far enough apart."""
    graded: dict[str, list[str]] = defaultdict(list)
    for item, candidate in grades:
        if candidate in candidates:
            graded[item].append(candidate)
    cells: dict[tuple[str, str], list[StudyItem]] = defaultdict(list)
    for one in items:
        if graded[one.id]:
            cells[one.unit, one.question].append(one)
    made = []
    for both in cells.values():
        if len(both) == 2:
            made += _pairs(both[0], both[1], sorted(set(graded[both[0].id])), candidates, grades, margin)
    return made


def _pairs(
    one: StudyItem,
    two: StudyItem,
    keys: Sequence[str],
    candidates: Mapping[str, Candidate],
    grades: Grades,
    margin: float,
) -> list[Pair]:
    best, gap = None, margin
    for first, second in permutations(keys, 2):
        if (two.id, first) not in grades or (two.id, second) not in grades:
            continue
        ours = grades[one.id, first] - grades[one.id, second]
        theirs = grades[two.id, second] - grades[two.id, first]
        found = [candidates[key] for key in (first, second)]
        if min(ours, theirs) >= gap and found[0].text != found[1].text and _as_told(one, *found):
            best, gap = (found[0].text, found[1].text), min(ours, theirs) + 1e-9
    if best is None:
        return []
    mirror = f"{one.unit}:{hash_text(one.pair.question)[:12]}"
    return [_pair(one, *best, mirror), _pair(two, *reversed(best), mirror)]


def _as_told(item: StudyItem, first: Candidate, second: Candidate) -> bool:
    """Whether instructions, where there were some, say the same as the judge."""
    wanted = read_stances(item.tags)
    if not first.poles or not second.poles:
        return True
    met = [sum(one.poles.get(axis) == pole for axis, pole in wanted.items()) for one in (first, second)]
    return met[0] > met[1]


def _pair(item: StudyItem, chosen: str, rejected: str, mirror: str) -> Pair:
    kept = {name: item.tags[name] for name in ("split", "couple", "axis", "pole") if name in item.tags}
    tags = {**kept, "mirror": mirror}
    return item.pair.model_copy(
        update={"id": f"{item.id}:on-policy", "chosen": chosen, "rejected": rejected, "tags": tags}
    )


if __name__ == "__main__":
    main()
