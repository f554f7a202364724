"""The blind check: readers see a profile, a question and two answers in random order, and not the label.

    python suite/blind.py sheets FOLDER            one sheet for each person of the test split, and the key (kept apart)
    python suite/blind.py answers FOLDER           sheets without any person: is one pole simply the better answer?
    python suite/blind.py score FOLDER/key.json readings/*.csv     agreement, and the share judged unequal in quality
    python suite/blind.py poles FOLDER/key.json readings/*.csv     for each axis, how often each pole is preferred

Who would this user prefer, and is either answer worse for everyone? The two halves of a couple are on different sheets,
so that no reader meets the same two answers twice.
"""

import argparse
import csv
import json
import random
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from prbench.data import load_pairs
from prbench.stats import wilson
from prbench.types import Pair

PER_PERSON = 16


def sample(pairs: Sequence[Pair], per_person: int, rng: random.Random) -> list[Pair]:
    """So many pairs of one person: every axis in turn, as few questions twice as possible."""
    by_axis: dict[str, list[Pair]] = defaultdict(list)
    for pair in rng.sample(pairs, len(pairs)):
        by_axis[pair.tags["axis"]].append(pair)
    order = rng.sample(sorted(by_axis), len(by_axis))
    asked: Counter[str] = Counter()
    taken: list[Pair] = []
    while len(taken) < per_person and any(by_axis.values()):
        for axis in order:
            if by_axis[axis] and len(taken) < per_person:
                best = min(by_axis[axis], key=lambda pair: asked[pair.question])
                by_axis[axis].remove(best)
                asked[best.question] += 1
                taken.append(best)
    return rng.sample(taken, len(taken))


def sheet(name: str, pairs: Sequence[Pair], rng: random.Random) -> tuple[str, dict[str, dict[str, str]]]:
    """A reader's sheet for one person, and the key to it."""
    lines = [f"# {name}", "", "## What this person wrote", ""]
    for post in pairs[0].profile:
        lines += [post.text, "", "---", ""]
    lines += ["## Questions this person asks now", ""]
    key = {}
    for number, pair in enumerate(pairs, 1):
        item = f"{name}-{number:02d}"
        chosen_is_a = rng.random() < 0.5
        first, second = (pair.chosen, pair.rejected) if chosen_is_a else (pair.rejected, pair.chosen)
        key[item] = {"pair": pair.id, "label": "A" if chosen_is_a else "B", "axis": pair.tags["axis"]}
        lines += [f"### {item}", "", pair.question, "", "**A.**", first, "", "**B.**", second, ""]
    return "\n".join(lines), key


def write_sheets(folder: Path, seed: int, per_person: int, couples: Sequence[str]) -> None:
    """Write all sheets and the key."""
    rng = random.Random(seed)
    suite = load_pairs("mirror", split="test")
    key: dict[str, dict[str, str]] = {}
    folder.mkdir(parents=True, exist_ok=True)
    people = {user: pairs for user, pairs in suite.by_user().items() if not couples or user[:-1] in couples}
    names = rng.sample([f"P{seed}{number:02d}" for number in range(1, len(people) + 1)], len(people))
    for name, (user, pairs) in zip(names, sorted(people.items()), strict=True):
        text, part = sheet(name, sample(pairs, per_person, rng), rng)
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
        key |= part
        print(f"{name} {user[-1]} {len(part)}")
    (folder / "key.json").write_text(json.dumps(key, indent=1, sort_keys=True), encoding="utf-8")


def write_answers(folder: Path, seed: int, splits: Sequence[str], sheets: int) -> None:
    """Write sheets of answers that differ on one axis, without any posts; no sheet has a question twice."""
    rng = random.Random(seed)
    axes = tomllib.loads((Path(__file__).parent / "axes.toml").read_text(encoding="utf-8"))
    contrasts: dict[str, dict[tuple[str, ...], Pair]] = defaultdict(dict)
    for pair in load_pairs("mirror"):
        if pair.tags["axes"] == "1" and pair.tags["split"] in splits:
            contrasts[pair.question].setdefault(tuple(sorted((pair.chosen, pair.rejected))), pair)
    drawn = {question: rng.sample(list(found.values()), len(found)) for question, found in sorted(contrasts.items())}
    folder.mkdir(parents=True, exist_ok=True)
    key: dict[str, dict[str, str]] = {}
    for number in range(1, sheets + 1):
        name = f"N{seed}{number:02d}"
        lines = [f"# {name}", ""]
        asked = [(question, found[(number - 1) % len(found)]) for question, found in drawn.items()]
        for place, (question, pair) in enumerate(rng.sample(asked, len(asked)), 1):
            item, axis, wanted = f"{name}-{place:03d}", pair.tags["axis"], pair.tags["pole"]
            (unwanted,) = set(axes[axis]["poles"]) - {wanted}
            answers = [(wanted, pair.chosen), (unwanted, pair.rejected)]
            rng.shuffle(answers)
            key[item] = {"pair": pair.id, "axis": axis, "A": answers[0][0], "B": answers[1][0]}
            lines += [f"### {item}", "", question, "", "**A.**", answers[0][1], "", "**B.**", answers[1][1], ""]
        (folder / f"{name}.md").write_text("\n".join(lines), encoding="utf-8")
    (folder / "key.json").write_text(json.dumps(key, indent=1, sort_keys=True), encoding="utf-8")


def poles(key_path: Path, paths: Sequence[Path]) -> None:
    """Print for each axis how often each pole is preferred, and list the answers judged worse for everyone."""
    key = json.loads(key_path.read_text(encoding="utf-8"))
    rows = [row for row in read(paths) if row["item"] in key]
    preferred: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        at = key[row["item"]]
        preferred[at["axis"]].update({at["A"]: row["prefer"] == "A", at["B"]: row["prefer"] == "B"})
    for axis, found in sorted(preferred.items()):
        (pole, count), (rival, rest) = found.most_common()
        share = wilson(count, count + rest)
        mark = " leans" if share.value > 0.65 else ""
        print(
            f"{axis:10s} {pole} over {rival}: {share.value:.2f} [{share.low:.2f}, {share.high:.2f}] n = {share.n}{mark}"
        )
    for row in rows:
        if row["worse"] in ("A", "B"):
            at = key[row["item"]]
            print(f"{at['pair']} ({row['item']}): {at[row['worse']]} is worse: {row.get('note', '')}")


def read(paths: Iterable[Path]) -> list[dict[str, str]]:
    """All readings: item, prefer (A or B), worse (A, B or none), note."""
    rows = []
    for path in paths:
        with path.open(newline="", encoding="utf-8") as handle:
            rows += [{**row, "reader": path.stem.split("-")[0]} for row in csv.DictReader(handle)]
    return rows


def score(key_path: Path, paths: Sequence[Path]) -> None:
    """Print agreement with the label and the share judged unequal, whole and by axis, and list what fails."""
    key = json.loads(key_path.read_text(encoding="utf-8"))
    rows = [row for row in read(paths) if row["item"] in key]
    right = [row["prefer"] == key[row["item"]]["label"] for row in rows]
    unequal = [row["worse"] in ("A", "B") for row in rows]
    items = {row["item"] for row in rows}
    print(f"readings {len(rows)}, pairs {len(items)}, readers {len({row['reader'] for row in rows})}")
    for name, found in (("agreement with the label", right), ("judged unequal in quality", unequal)):
        share = wilson(sum(found), len(found))
        print(f"{name}: {share.value:.3f} [{share.low:.3f}, {share.high:.3f}] n = {share.n}")
    by_axis: dict[str, list[bool]] = defaultdict(list)
    for row, good in zip(rows, right, strict=True):
        for axis in key[row["item"]]["axis"].split("+"):
            by_axis[axis].append(good)
    for axis, found in sorted(by_axis.items()):
        print(f"  {axis:10s} {sum(found)}/{len(found)}")
    for row, good, bad in zip(rows, right, unequal, strict=True):
        if not good or bad:
            what = "; ".join(
                filter(None, ["" if good else "prefers the other", f"{row['worse']} worse" if bad else ""])
            )
            print(f"{key[row['item']]['pair']} ({row['item']}, {row['reader']}): {what}: {row.get('note', '')}")


def main() -> int:
    """Dispatch."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    sheets = commands.add_parser("sheets")
    sheets.add_argument("folder", type=Path)
    sheets.add_argument("--seed", type=int, default=1)
    sheets.add_argument("--couples", nargs="*", default=[], help="only these couples; default all of the test split")
    sheets.add_argument("--per-person", type=int, default=PER_PERSON)
    answers = commands.add_parser("answers")
    answers.add_argument("folder", type=Path)
    answers.add_argument("--seed", type=int, default=1)
    answers.add_argument("--splits", nargs="*", default=["train", "validation", "test"])
    answers.add_argument("--sheets", type=int, default=4)
    for name in ("score", "poles"):
        scoring = commands.add_parser(name)
        scoring.add_argument("key", type=Path)
        scoring.add_argument("readings", type=Path, nargs="+")
    arguments = parser.parse_args()
    if arguments.command == "sheets":
        write_sheets(arguments.folder, arguments.seed, arguments.per_person, arguments.couples)
    elif arguments.command == "answers":
        write_answers(arguments.folder, arguments.seed, arguments.splits, arguments.sheets)
    elif arguments.command == "poles":
        poles(arguments.key, arguments.readings)
    else:
        score(arguments.key, arguments.readings)
    return 0


if __name__ == "__main__":
    sys.exit(main())
