"""The blind check: readers see a profile, a question and two answers in random order, and not the label.

    python suite/blind.py sheets FOLDER KEY               a person's own posts, one sheet for each person
    python suite/blind.py sheets FOLDER KEY --arm other   a person's questions under the posts of another one
    python suite/blind.py answers FOLDER KEY              no posts at all: is one pole simply the better answer?
    python suite/blind.py score KEY readings/*.csv     agreement, and the share judged unequal in quality; by relation
    python suite/blind.py poles KEY readings/*.csv     for each axis, how often each pole is preferred

Which answer would this person rather have, and is either one worse for everyone? A sheet is the same to look at whoever
is shown. FOLDER has a folder of sheets for each reader (R1, R2 …); no reader meets both halves of a couple. KEY is a
file, never in FOLDER: a reader should not have it at hand.

Under another person's posts, the key says how that person stands to what decides the pair: agrees, opposes, or is
silent. Who follows the posts agrees with the label always, never, and in half of the cases.
"""

import argparse
import csv
import itertools
import json
import random
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from prbench.data import load_pairs
from prbench.stats import wilson
from prbench.types import Pair

HERE = Path(__file__).parent
PER_PERSON = 16
RELATIONS = ("agrees", "opposes", "silent")

People = Mapping[str, Sequence[Pair]]
Key = dict[str, dict[str, str]]


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


class Sheet(NamedTuple):
    """What one reader is given of one person."""

    shown: Pair
    """A pair of the person whose posts are shown."""
    pairs: Sequence[Pair]

    @property
    def couples(self) -> set[str]:
        """Whose posts or wishes are on it."""
        return {pair.tags["couple"] for pair in (self.shown, *self.pairs)}


def own_sheets(people: People, per_person: int, rng: random.Random) -> list[Sheet]:
    """A sheet for each person."""
    return [Sheet(pairs[0], sample(pairs, per_person, rng)) for _, pairs in sorted(people.items())]


def other_sheets(people: People, per_person: int, rng: random.Random) -> list[Sheet]:
    """A sheet for one half of each couple, as far as possible a third of it for each relation to whoever is shown."""
    sheets: list[Sheet] = []
    free = rng.sample(sorted(people), len(people))
    stances = read_stances()
    for couple in sorted({user[:-1] for user in people}):
        asks = couple + rng.choice("ab")
        sorted_out = {
            user: sort_out([pair for pair in people[asks] if pair.tags["axes"] == "1"], stances[user])
            for user in free
            if user[:-1] != couple
        }
        # Who can show most of each relation; the first in random order among equals.
        shown = max(sorted_out, key=lambda user: sum(min(len(sorted_out[user][r]), per_person) for r in RELATIONS))
        free.remove(shown)
        parts = [rng.sample(sorted_out[shown][relation], len(sorted_out[shown][relation])) for relation in RELATIONS]
        in_turn = [pair for row in itertools.zip_longest(*parts) for pair in row if pair is not None]
        taken = in_turn[:per_person]
        sheets.append(Sheet(people[shown][0], rng.sample(taken, len(taken))))
    return sheets


def read_stances() -> Mapping[str, Mapping[str, str]]:
    """What each person wants, by axis."""
    design = tomllib.loads((HERE / "design.toml").read_text(encoding="utf-8"))
    return {user: person["stances"] for user, person in design["personas"].items()}


def relation_of(pair: Pair, stances: Mapping[str, str]) -> str:
    """How somebody with these stances stands to what decides a pair."""
    held = [stances.get(axis) for axis in pair.stances]
    wanted = list(pair.stances.values())
    if all(pole is None for pole in held):
        return "silent"
    return "agrees" if held == wanted else "opposes" if not {*held} & {*wanted, None} else "mixed"


def sort_out(pairs: Iterable[Pair], stances: Mapping[str, str]) -> dict[str, list[Pair]]:
    """Pairs by relation."""
    found: dict[str, list[Pair]] = {relation: [] for relation in RELATIONS}
    for pair in pairs:
        found.setdefault(relation_of(pair, stances), []).append(pair)
    return found


def bundles(sheets: Sequence[Sheet], readers: int, rng: random.Random) -> list[list[Sheet]]:
    """Deal sheets to readers evenly, so that no reader has two sheets that touch the same couple."""
    for _ in range(1000):
        dealt: list[list[Sheet]] = [[] for _ in range(readers)]
        for one in rng.sample(sheets, len(sheets)):
            fitting = [bundle for bundle in dealt if not any(one.couples & other.couples for other in bundle)]
            if not fitting:
                break
            min(fitting, key=len).append(one)
        else:
            if max(map(len, dealt)) - min(map(len, dealt)) <= 2:
                return dealt
    raise SystemExit(f"{len(sheets)} sheets cannot be dealt to {readers} readers without a couple's two halves meeting")


def render(name: str, sheet: Sheet, stances: Mapping[str, str], rng: random.Random) -> tuple[str, Key]:
    """A sheet as it is read, and its part of the key."""
    lines = [f"# {name}", "", "## What this person wrote", ""]
    for post in sheet.shown.profile:
        lines += [post.text, "", "---", ""]
    lines += ["## Questions this person asks now", ""]
    key = {}
    for number, pair in enumerate(sheet.pairs, 1):
        item = f"{name}-{number:02d}"
        chosen_is_a = rng.random() < 0.5
        first, second = (pair.chosen, pair.rejected) if chosen_is_a else (pair.rejected, pair.chosen)
        key[item] = {"pair": pair.id, "label": "A" if chosen_is_a else "B", "axis": pair.tags["axis"]}
        if pair.user != sheet.shown.user:
            key[item] |= {"shown": sheet.shown.user, "relation": relation_of(pair, stances)}
        lines += [f"### {item}", "", pair.question, "", "**A.**", first, "", "**B.**", second, ""]
    return "\n".join(lines), key


def write_sheets(
    folder: Path, key_file: Path, arm: str, seed: int, per_person: int, couples: str, readers: int
) -> None:
    """Write all sheets, and the key apart from them."""
    rng = random.Random(seed)
    wanted = named_couples(couples)
    suite = load_pairs("mirror", split="test")
    people = {user: pairs for user, pairs in suite.by_user().items() if not wanted or user[:-1] in wanted}
    sheets = (own_sheets if arm == "own" else other_sheets)(people, per_person, rng)
    letter = "P" if arm == "own" else "Q"
    names = iter(rng.sample([f"{letter}{seed}{number:02d}" for number in range(1, len(sheets) + 1)], len(sheets)))
    stances, key = read_stances(), {}
    for number, bundle in enumerate(bundles(sheets, readers, rng), 1):
        (folder / f"R{number}").mkdir(parents=True, exist_ok=True)
        for one in bundle:
            name = next(names)
            text, part = render(name, one, stances[one.shown.user], rng)
            (folder / f"R{number}" / f"{name}.md").write_text(text, encoding="utf-8")
            key |= part
        print(f"R{number}: {len(bundle)} sheets, {sum(len(one.pairs) for one in bundle)} pairs")
    write_key(key_file, folder, key)


def named_couples(text: str) -> set[str]:
    """Couples as they are typed: `c96-c125`, `c16,c18`; none for all."""
    found: set[str] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found |= {f"c{number:02d}" for number in range(int(first[1:]), int((last or first)[1:]) + 1)}
    return found


def write_key(file: Path, folder: Path, key: Key) -> None:
    """Write a key where its readers will not find it."""
    if folder.resolve() in file.resolve().parents:
        raise SystemExit(f"{file} is beside the sheets: keep the key elsewhere")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(key, indent=1, sort_keys=True), encoding="utf-8")


def write_answers(folder: Path, key_file: Path, seed: int, splits: Sequence[str], sheets: int) -> None:
    """Write sheets of answers that differ on one axis, without any posts; no sheet has a question twice."""
    rng = random.Random(seed)
    axes = tomllib.loads((HERE / "axes.toml").read_text(encoding="utf-8"))
    contrasts: dict[str, dict[tuple[str, ...], Pair]] = defaultdict(dict)
    for pair in load_pairs("mirror"):
        if pair.tags["axes"] == "1" and pair.tags["split"] in splits:
            contrasts[pair.question].setdefault(tuple(sorted((pair.chosen, pair.rejected))), pair)
    drawn = {question: rng.sample(list(found.values()), len(found)) for question, found in sorted(contrasts.items())}
    folder.mkdir(parents=True, exist_ok=True)
    key: Key = {}
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
    write_key(key_file, folder, key)


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
    by_relation: dict[str, list[bool]] = defaultdict(list)
    for row, good in zip(rows, right, strict=True):
        if relation := key[row["item"]].get("relation"):
            by_relation[relation].append(good)
    for relation, found in sorted(by_relation.items()):
        share = wilson(sum(found), len(found))
        print(f"  the person shown {relation:8s} {share.value:.3f} [{share.low:.3f}, {share.high:.3f}] n = {share.n}")
    by_axis: dict[str, list[bool]] = defaultdict(list)
    for row, good in zip(rows, right, strict=True):
        for axis in key[row["item"]]["axis"].split("+"):
            by_axis[axis].append(good)
    for axis, found in sorted(by_axis.items()):
        print(f"  {axis:10s} {sum(found)}/{len(found)}")
    for row, good, bad in zip(rows, right, unequal, strict=True):
        if (not good and "relation" not in key[row["item"]]) or bad:
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
    sheets.add_argument("key", type=Path)
    sheets.add_argument("--arm", choices=("own", "other"), default="own", help="whose posts are shown")
    sheets.add_argument("--seed", type=int, default=1)
    sheets.add_argument("--couples", default="", help="only these, as c96-c125 or c16,c18; default all of the split")
    sheets.add_argument("--per-person", type=int, default=PER_PERSON)
    sheets.add_argument("--readers", type=int, default=8)
    answers = commands.add_parser("answers")
    answers.add_argument("folder", type=Path)
    answers.add_argument("key", type=Path)
    answers.add_argument("--seed", type=int, default=1)
    answers.add_argument("--splits", nargs="*", default=["train", "validation", "test"])
    answers.add_argument("--sheets", type=int, default=4)
    for name in ("score", "poles"):
        scoring = commands.add_parser(name)
        scoring.add_argument("key", type=Path)
        scoring.add_argument("readings", type=Path, nargs="+")
    arguments = parser.parse_args()
    if arguments.command == "sheets":
        write_sheets(
            arguments.folder,
            arguments.key,
            arguments.arm,
            arguments.seed,
            arguments.per_person,
            arguments.couples,
            arguments.readers,
        )
    elif arguments.command == "answers":
        write_answers(arguments.folder, arguments.key, arguments.seed, arguments.splits, arguments.sheets)
    elif arguments.command == "poles":
        poles(arguments.key, arguments.readings)
    else:
        score(arguments.key, arguments.readings)
    return 0


if __name__ == "__main__":
    sys.exit(main())
