"""Draw the people of version 2 and write them below the mark in `design.toml`: `python suite/design.py`.

The first 25 couples (c01 to c25) are given. Added are c26 to c125: who is in which split, how long a history is, which
axes a couple holds and which pole its first half wants (the second half wants the opposite of everything), and which
life of `lives.toml` each half leads. Two searches by simulated annealing make it balanced: the first moves axes and
poles, until every axis is held equally often and no two axes go together; the second moves lives, until no stance goes
with age, gender, region, work or settlement. Costs are whole numbers and the seed is fixed, so the same sources give
the same bytes.

`--check` says whether `design.toml` is what this makes, and prints how well the constraints are met; `--table` only
prints them, from the file as it is.
"""

import argparse
import itertools
import math
import random
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
FILE = HERE / "design.toml"
SEED = 18
MARK = "# Version 2. Everything below this line is made by design.py: change that (or lives.toml), not this.\n"
UNSEEN = ("humour", "candour", "tools")
"""Axes that only people of the test split hold."""
FIRST = 26
SPLITS = {"train": 60, "validation": 10, "test": 30}
"""New couples in each split."""
HISTORIES = {
    "train": {"short": 15, "medium": 30, "long": 15},
    "validation": {"short": 3, "medium": 5, "long": 2},
    "test": {"short": 7, "medium": 15, "long": 8},
}
POSTS = {"short": range(5, 8), "medium": range(12, 15), "long": range(20, 26)}
STANCES = {"short": range(3, 5), "medium": range(9, 12), "long": range(12, 15)}
TRAITS = ("age", "gender", "region", "work", "settlement", "english")
MOST_SHOWN = 5
"""Stances that one post may show at most."""

Toml = dict[str, Any]
AXES: Toml = tomllib.loads((HERE / "axes.toml").read_text(encoding="utf-8"))
NAMES = list(AXES)
LIVES: Toml = tomllib.loads((HERE / "lives.toml").read_text(encoding="utf-8"))


def band(age: int) -> str:
    """The age group that counts for balance."""
    return next(name for limit, name in ((30, "18-29"), (45, "30-44"), (60, "45-59"), (999, "60+")) if age < limit)


def trait(person: Mapping[str, Any], name: str) -> str:
    """A person's group in one trait."""
    return band(person["age"]) if name == "age" else str(person.get(name, "first"))


class Couple(NamedTuple):
    """Two people who hold the same axes at opposite poles."""

    name: str
    split: str
    history: str
    posts: int
    signs: dict[int, int]
    """The first half's pole of each axis held: 1 for the first named in axes.toml, -1 for the second."""
    new: bool


def given(personas: Toml) -> list[Couple]:
    """The couples of version 1."""
    found = []
    for name in sorted(key[:-1] for key in personas if key.endswith("a")):
        person = personas[name + "a"]
        signs = {NAMES.index(axis): sign(axis, pole) for axis, pole in person["stances"].items()}
        found.append(Couple(name, person["split"], "", 0, signs, new=False))
    return found


def sign(axis: str, pole: str) -> int:
    """1 for an axis's first pole, -1 for its second."""
    return 1 if AXES[axis]["poles"][0] == pole else -1


def anneal(
    rng: random.Random, start: int, move: Callable[[], tuple[int, Callable[[], None]]], steps: int, heat: float
) -> int:
    """Search downwards with ever fewer steps uphill; `move` makes a step, gives its cost and how to take it back."""
    cost = start
    for step in range(steps):
        if cost == 0:
            break
        change, undo = move()
        temperature = heat * (1 - step / steps) ** 2 + 1e-9
        if change > 0 and rng.random() >= math.exp(-change / temperature):
            undo()
        else:
            cost += change
    return cost


class Stances:
    """How often axes and poles are held, alone and together, in each split and overall."""

    def __init__(self, couples: Iterable[Couple]) -> None:
        self.couples = list(couples)
        size = len(NAMES)
        self.sum = {split: [[0] * size for _ in NAMES] for split in (*SPLITS, "all")}
        self.both = {split: [[0] * size for _ in NAMES] for split in (*SPLITS, "all")}
        self.alone = {split: [0] * size for split in SPLITS}
        for couple in self.couples:
            held = dict(couple.signs)
            couple.signs.clear()
            for i, value in held.items():
                self.put(couple, i, value)
        self.couples.sort(key=lambda couple: couple.name)
        self.ideal = {
            split: sum(len(c.signs) for c in self.couples if c.split == split) / len(allowed(split)) for split in SPLITS
        }

    def put(self, couple: Couple, i: int, value: int) -> None:
        """Give a couple an axis."""
        self._count(couple, i, value, 1)
        couple.signs[i] = value

    def take(self, couple: Couple, i: int) -> None:
        """Take an axis from a couple."""
        self._count(couple, i, couple.signs.pop(i), -1)

    def _count(self, couple: Couple, i: int, value: int, step: int) -> None:
        for split in (couple.split, "all"):
            sums, both = self.sum[split], self.both[split]
            both[i][i] += step
            for j, other in couple.signs.items():
                if j != i:
                    for a, b in ((i, j), (j, i)):
                        sums[a][b] += step * value * other
                        both[a][b] += step
        self.alone[couple.split][i] += step * value

    def pair_cost(self, split: str, i: int, j: int) -> int:
        """How far the poles of two axes go together beyond what is allowed."""
        together, n = abs(self.sum[split][i][j]), self.both[split][i][j]
        if split == "test":
            return max(0, 10 * together - 3 * n) if n >= 6 else 0
        return 2 * max(0, 5 * together - n)

    def axis_cost(self, split: str, i: int) -> int:
        """How far an axis is from its share and from balance over the first halves."""
        held, ideal = self.both[split][i][i], self.ideal[split]
        far = max(0, held - math.ceil(ideal), math.floor(ideal) - held)
        return 12 * far + 4 * max(0, abs(self.alone[split][i]) - 1)

    def cost(self, split: str, axes: set[int]) -> int:
        """Everything in which these axes of a split take part."""
        total = sum(self.axis_cost(split, i) for i in axes)
        for i in axes:
            for j in range(len(NAMES)):
                if j not in axes or j > i:
                    if split != "validation":
                        total += self.pair_cost(split, i, j)
                    total += self.pair_cost("all", i, j)
        return total


def allowed(split: str) -> list[int]:
    """Axes that people of this split may hold."""
    return [i for i, axis in enumerate(NAMES) if split == "test" or axis not in UNSEEN]


def mixed(signs: Iterable[int]) -> bool:
    """Whether both kinds of axis occur: every couple has something to choose in content and in manner."""
    return len({AXES[NAMES[i]]["kind"] for i in signs}) == 2


def draw_stances(rng: random.Random, old: list[Couple]) -> list[Couple]:
    """The new couples with their splits, histories, axes and poles."""
    new: list[Couple] = []
    for split, kinds in HISTORIES.items():
        histories = [history for history, count in kinds.items() for _ in range(count)]
        rng.shuffle(histories)
        dealt = {h: deal(rng, POSTS[h], STANCES[h], histories.count(h)) for h in kinds}
        for history in histories:
            posts, count = dealt[history].pop()
            axes = rng.sample(allowed(split), count)
            while not mixed(axes):
                axes = rng.sample(allowed(split), count)
            signs = {i: rng.choice((1, -1)) for i in axes}
            new.append(Couple(f"c{FIRST + len(new)}", split, history, posts, signs, new=True))
    state = Stances([*old, *new])

    def move() -> tuple[int, Callable[[], None]]:
        couple = new[rng.randrange(len(new))]
        i = rng.choice(list(couple.signs))
        was = couple.signs[i]
        j, value = i, -was
        free = [k for k in allowed(couple.split) if k not in couple.signs]
        if free and rng.random() < 0.5:
            j, value = rng.choice(free), rng.choice((1, -1))
            if not mixed({*couple.signs, j} - {i}):
                j, value = i, -was
        before = state.cost(couple.split, {i, j})
        state.take(couple, i)
        state.put(couple, j, value)

        def undo() -> None:
            state.take(couple, j)
            state.put(couple, i, was)

        return state.cost(couple.split, {i, j}) - before, undo

    start = sum(state.axis_cost(split, i) for split in SPLITS for i in range(len(NAMES)) if i in allowed(split))
    start += sum(
        state.pair_cost(split, i, j)
        for split in ("train", "test", "all")
        for i, j in itertools.combinations(range(len(NAMES)), 2)
    )
    left = anneal(rng, start, move, 600_000, 5.0)
    print(f"axes and poles: cost {start} -> {left}", file=sys.stderr)
    return new


def deal(rng: random.Random, posts: range, stances: range, count: int) -> list[tuple[int, int]]:
    """Numbers of posts and stances for so many couples, each value about equally often."""
    columns = []
    for values in (posts, stances):
        column = [values[k % len(values)] for k in range(count)]
        rng.shuffle(column)
        columns.append(column)
    return list(zip(*columns, strict=True))


def draw_lives(rng: random.Random, old: list[Couple], personas: Toml, new: list[Couple]) -> dict[str, str]:
    """Who leads which life: the id of a life for each new person."""
    slots = [(couple, half) for couple in new for half in (0, 1)]
    lives = sorted(LIVES)
    rng.shuffle(lives)
    lives.sort(key=lambda life: LIVES[life]["gender"])
    pairs = [lives[k : k + 2] for k in range(0, len(lives), 2)]
    rng.shuffle(pairs)
    lives = [life for pair in pairs for life in pair]
    groups = {life: tuple(trait(LIVES[life], name) for name in TRAITS) for life in lives}
    # how[axis][trait][group] = [people at the first pole less people at the second, people]
    how: list[list[dict[str, list[int]]]] = [[{} for _ in TRAITS] for _ in NAMES]

    def count(couple: Couple, half: int, groups_of: tuple[str, ...], step: int) -> None:
        turn = step if half == 0 else -step
        for i, value in couple.signs.items():
            for table, group in zip(how[i], groups_of, strict=True):
                cell = table.setdefault(group, [0, 0])
                cell[0] += turn * value
                cell[1] += step

    spread: dict[str, list[Counter[str]]] = {split: [Counter() for _ in TRAITS] for split in SPLITS}
    for couple, half in ((couple, half) for couple in old for half in (0, 1)):
        person = personas[couple.name + "ab"[half]]
        count(couple, half, tuple(trait(person, name) for name in TRAITS), 1)
    for (couple, half), life in zip(slots, lives, strict=True):
        count(couple, half, groups[life], 1)
        for counter, group in zip(spread[couple.split], groups[life], strict=True):
            counter[group] += 1
    share = {
        (k, group): n / len(lives)
        for k in range(len(TRAITS))
        for group, n in Counter(groups[life][k] for life in lives).items()
    }

    def tied(i: int) -> int:
        """How far an axis's poles go with a trait beyond V = .19, in thousandths."""
        total = 0
        for table in how[i]:
            people = sum(cell[1] for cell in table.values())
            chi = sum(1000 * cell[0] * cell[0] // cell[1] for cell in table.values() if cell[1])
            total += max(0, chi - 36 * people)
        return total // 20

    def alike(k: int) -> int:
        """How alike the two halves of a couple are."""
        one, two = LIVES[lives[2 * k]], LIVES[lives[2 * k + 1]]
        cost = 60 * (one["region"] == two["region"]) + 60 * (one["work"] == two["work"])
        return cost + 15 * (one["settlement"] == two["settlement"]) + 60 * (abs(one["age"] - two["age"]) < 6)

    def uneven(split: str) -> int:
        """How far the people of a split are from the mixture of all."""
        size = 2 * SPLITS[split]
        return sum(
            15 * max(0, math.ceil(abs(spread[split][k][group] - size * part) - 1.5))
            for (k, group), part in share.items()
        )

    def exchange(s: int, t: int) -> None:
        for k in (s, t):
            couple, half = slots[k]
            count(couple, half, groups[lives[k]], -1)
            spread[couple.split] = [
                c - Counter([g]) for c, g in zip(spread[couple.split], groups[lives[k]], strict=True)
            ]
        lives[s], lives[t] = lives[t], lives[s]
        for k in (s, t):
            couple, half = slots[k]
            count(couple, half, groups[lives[k]], 1)
            for counter, group in zip(spread[couple.split], groups[lives[k]], strict=True):
                counter[group] += 1

    def price(places: Iterable[tuple[int, int]]) -> int:
        touched = {k for place in places for k in place}
        axes = {i for k in touched for i in slots[k][0].signs}
        splits = {slots[k][0].split for k in touched}
        total = sum(tied(i) for i in axes) + sum(alike(k) for k in {k // 2 for k in touched})
        return total + (sum(map(uneven, splits)) if len(splits) > 1 else 0)

    def move() -> tuple[int, Callable[[], None]]:
        s, t = rng.randrange(len(slots)), rng.randrange(len(slots))
        alone = LIVES[lives[s]]["gender"] == LIVES[lives[t]]["gender"]
        places = [(s, t)] if alone else [(s, t), (s ^ 1, t ^ 1)]
        before = price(places)
        for place in places:
            exchange(*place)

        def undo() -> None:
            for place in reversed(places):
                exchange(*place)

        return price(places) - before, undo

    start = sum(tied(i) for i in range(len(NAMES))) + sum(alike(k) for k in range(len(new))) + sum(map(uneven, SPLITS))
    left = anneal(rng, start, move, 120_000, 60.0)
    print(f"lives: cost {start} -> {left}", file=sys.stderr)
    return {couple.name + "ab"[half]: life for (couple, half), life in zip(slots, lives, strict=True)}


def render(new: list[Couple], lives: dict[str, str]) -> str:
    """The part of design.toml below the mark."""
    lines = [MARK]
    for couple, half in ((couple, half) for couple in new for half in "ab"):
        name = couple.name + half
        life = LIVES[lives[name]]
        turn = 1 if half == "a" else -1
        poles = {NAMES[i]: AXES[NAMES[i]]["poles"][couple.signs[i] * turn < 0] for i in sorted(couple.signs)}
        lines += [
            f"[personas.{name}]",
            "version = 2",
            f'split = "{couple.split}"',
            f'history = "{couple.history}"',
            f"posts = {couple.posts}",
            f"age = {life['age']}",
            *(f'{key} = "{life[key]}"' for key in ("gender", "region", "work", "settlement", "english") if key in life),
            f'life = "{lives[name]}"',
            "stances = { " + ", ".join(f'{axis} = "{pole}"' for axis, pole in poles.items()) + " }",
            "",
        ]
    return "\n".join(lines)


def make(kept: str) -> str:
    """The whole of design.toml, from its part above the mark."""
    personas = tomllib.loads(kept)["personas"]
    rng = random.Random(SEED)
    old = given(personas)
    new = draw_stances(rng, old)
    return kept + "\n" + render(new, draw_lives(rng, old, personas, new))


class Line(NamedTuple):
    """One constraint as it is met."""

    what: str
    worst: float
    limit: float
    where: str


def table(personas: Toml) -> list[Line]:
    """How well the constraints are met, measured from the people themselves."""
    lines = []
    for split in SPLITS:
        people = [p for p in personas.values() if p["split"] == split]
        held = Counter(axis for p in people for axis in p["stances"])
        counts = [held[NAMES[i]] // 2 for i in allowed(split)]
        text = f"{min(counts)} to {max(counts)} couples hold an axis"
        lines.append(Line(f"{split}: spread of axes", max(counts) - min(counts), 2, text))
        firsts = [p for name, p in personas.items() if name.endswith("a") and p["split"] == split]
        tilt = {
            axis: abs(sum(sign(axis, p["stances"][axis]) for p in firsts if axis in p["stances"])) for axis in NAMES
        }
        axis = max(tilt, key=lambda name: tilt[name])
        lines.append(Line(f"{split}: poles over first halves", tilt[axis], 2, axis))
    for split, limit, least in (("train", 0.2, 0), ("test", 0.3, 12), ("all", 0.2, 0)):
        people = [p["stances"] for p in personas.values() if split in (p["split"], "all")]
        found = []
        for one, two in itertools.combinations(NAMES, 2):
            signs = [(sign(one, p[one]), sign(two, p[two])) for p in people if one in p and two in p]
            if signs and len(signs) >= least:
                found.append((abs(phi(signs)), f"{one} and {two}, n = {len(signs)}"))
        text = f"{max(found)[1]}; mean {sum(f for f, _ in found) / len(found):.3f} over {len(found)} pairs"
        lines.append(Line(f"{split}: phi of two axes" + (f", n >= {least}" * bool(least)), max(found)[0], limit, text))
    for name in TRAITS:
        worst = {axis: cramer(personas.values(), axis, name) for axis in NAMES}
        axis = max(worst, key=lambda key: worst[key])
        lines.append(Line(f"V of stance and {name}", worst[axis], 0.2, axis))
    return lines


def phi(signs: list[tuple[int, int]]) -> float:
    """Correlation of two poles."""
    n = len(signs)
    one, two = (sum(pair[k] for pair in signs) / n for k in (0, 1))
    spread = math.sqrt((1 - one * one) * (1 - two * two))
    return (sum(a * b for a, b in signs) / n - one * two) / spread if spread else 0.0


def cramer(people: Iterable[Toml], axis: str, name: str) -> float:
    """Cramér's V of an axis's pole and a trait, over those who hold the axis."""
    cells = Counter((p["stances"][axis], trait(p, name)) for p in people if axis in p["stances"])
    total = sum(cells.values())
    poles, groups = (Counter[str]() for _ in range(2))
    for (pole, group), n in cells.items():
        poles[pole] += n
        groups[group] += n
    if len(poles) < 2 or len(groups) < 2:
        return 0.0
    expected = {(p, g): poles[p] * groups[g] / total for p in poles for g in groups}
    return math.sqrt(sum((cells[cell] - e) ** 2 / e for cell, e in expected.items()) / total)


def arithmetic(personas: Toml) -> list[str]:
    """People whose posts cannot hold what they have to show: two posts a stance, a third of the posts showing none."""
    problems = []
    for name, p in personas.items():
        if p.get("version") == 2:
            shows, speaking = 2 * len(p["stances"]), p["posts"] - silent(p["posts"])
            if shows > MOST_SHOWN * speaking or speaking < 2:
                problems.append(f"{name}: {shows} shows in {speaking} posts")
    return problems


def silent(posts: int) -> int:
    """How many posts should show no stance: about a third."""
    return max(1, round(posts / 3))


def report(personas: Toml) -> bool:
    """Print everything; whether all is met."""
    new = {name: p for name, p in personas.items() if p.get("version") == 2}
    for key in ("split", "history", "region", "gender", "work", "settlement", "english"):
        counts = Counter(str(p.get(key, "first")) for p in new.values())
        print(f"new people by {key}: " + ", ".join(f"{group} {n}" for group, n in sorted(counts.items())))
    couples = [(new[name], new[name[:-1] + "b"]) for name in new if name.endswith("a")]
    for key in TRAITS:
        same = sum(trait(one, key) == trait(two, key) for one, two in couples)
        print(f"couples alike in {key}: {same} of {len(couples)}")
    lines = table(personas)
    print(f"{'constraint':38s} {'worst':>6s} {'limit':>6s}")
    for line in lines:
        mark = "" if line.worst <= line.limit + 1e-9 else "  NOT MET"
        print(f"{line.what:38s} {line.worst:6.3f} {line.limit:6.2f}  {line.where}{mark}")
    problems = arithmetic(personas) + structure(personas)
    for problem in problems:
        print(problem)
    return not problems and all(line.worst <= line.limit + 1e-9 for line in lines)


def structure(personas: Toml) -> list[str]:
    """What must hold exactly: opposite halves, numbers of couples, unseen axes in test only, each life led once."""
    problems = []
    for name, p in personas.items():
        other = personas[name[:-1] + ("b" if name.endswith("a") else "a")]
        if any(p.get(key) != other.get(key) for key in ("split", "history", "posts", "version")):
            problems.append(f"{name}: halves differ in split, history or posts")
        if set(p["stances"]) != set(other["stances"]) or any(other["stances"][a] == v for a, v in p["stances"].items()):
            problems.append(f"{name}: halves are not opposite")
        if p["split"] != "test" and set(p["stances"]) & set(UNSEEN):
            problems.append(f"{name}: holds an axis that belongs to test")
        if p.get("version") == 2 and (
            p["posts"] not in POSTS[p["history"]] or len(p["stances"]) not in STANCES[p["history"]]
        ):
            problems.append(f"{name}: numbers do not fit a {p['history']} history")
    sizes = Counter(p["split"] for p in personas.values())
    if sizes != {"train": 140, "validation": 30, "test": 80}:
        problems.append(f"splits of the wrong size: {dict(sizes)}")
    led = Counter(p["life"] for p in personas.values() if "life" in p)
    problems += [f"{life}: led {led[life]} times" for life in LIVES if led[life] != 1]
    for name, p in personas.items():
        if "life" in p and any(p.get(key) != LIVES[p["life"]].get(key) for key in TRAITS):
            problems.append(f"{name}: differs from {p['life']}")
    return problems


def main() -> int:
    """Write the design, or check it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; say whether design.toml is up to date")
    parser.add_argument("--table", action="store_true", help="only print how well the constraints are met")
    arguments = parser.parse_args()
    present = FILE.read_text(encoding="utf-8")
    if arguments.table:
        return 0 if report(tomllib.loads(present)["personas"]) else 1
    kept = present.split("\n" + MARK)[0]
    made = make(kept)
    met = report(tomllib.loads(made)["personas"])
    if arguments.check:
        print("design.toml is up to date" if made == present else "design.toml is not what design.py makes")
        return 0 if met and made == present else 1
    FILE.write_text(made, encoding="utf-8")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
