"""Worlds: logs of what real people liked, as mirrored pairs with each person's own other judgments as shots.

`build mirror` makes the pairs. A world is refused if a person is asked about a text of the own shots, if a person of
train is also one of validation or test, or, where items are said to be new, if training has seen a text that is asked.
"""

import csv
import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from prbench.build import MirrorConfig, build_mirror
from prbench.config import digest
from prbench.data.rows import read_rows
from prbench.errors import DataError
from prbench.types import Judgment, Pair, Post

MOST_SHOTS = 24
"""Most judgments of a person that are kept as shots; 16 are shown at most, training varies which."""
SPLITS = ("train", "validation", "test")


class Source(NamedTuple):
    """A log, the texts it speaks of, and what its columns are called."""

    log: Path
    items: Path
    columns: Mapping[str, str] = {}


class Shot(NamedTuple):
    """Something a person has judged: the ids of the two items, and why, where it was said."""

    question: str
    chosen: str
    rejected: str
    reason: str = ""


Shots = Mapping[str, Sequence[Shot]]
Ratings = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class World:
    """What is asked of whom, and what is known of each."""

    name: str
    pairs: Mapping[str, tuple[Pair, ...]]
    """By split; tags `item_pair`, `chosen_item` and `rejected_item` name the items."""
    shots: Shots
    """Of each person, in a seeded order: the first k are the k shots."""
    texts: Mapping[str, str]
    ratings: Ratings
    """What may be learned from: all ratings of people of train, of others those behind the shots. Empty: not known."""
    told: bool = False
    """Whether the reasons of the shots are shown as posts."""
    new_items: bool = True
    """Whether no text that is asked in validation or test has been seen in training."""

    @cached_property
    def learned(self) -> str:
        """A digest of all that a taste may be learned or chosen from."""
        seen = [
            [pair.id, pair.user, pair.chosen, pair.rejected, self.shots[pair.user]]
            for split in ("train", "validation")
            for pair in self.pairs[split]
        ]
        return digest({"pairs": seen, "ratings": self.ratings, "told": self.told})

    def first(self, count: int) -> Shots:
        """The first so many shots of everybody."""
        return {user: shots[:count] for user, shots in self.shots.items()}

    def judgments(self, shots: Sequence[Shot]) -> tuple[Judgment, ...]:
        """Shots with the texts in place of ids."""
        return tuple(
            Judgment(question=shot.question, chosen=self.texts[shot.chosen], rejected=self.texts[shot.rejected])
            for shot in shots
        )

    def posts(self, user: str, shots: Sequence[Shot]) -> tuple[Post, ...]:
        """The reasons that a person gave, where this world tells them."""
        reasons = [shot.reason for shot in shots if shot.reason] if self.told else []
        return tuple(Post(id=f"{user}/{number}", text=reason) for number, reason in enumerate(reasons))


def new_items(source: Source, name: str, options: MirrorConfig, work: Path, *, told: bool = False) -> World:
    """People and items both apart, as `build mirror` splits them; `seen-users` asks people of train about test."""
    built = _build(source, options, work)
    return checked(World(name, built.pairs, built.shots, built.texts, ratings={}, told=told))


def known_items(source: Source, name: str, options: Mapping[str, MirrorConfig], work: Path) -> World:
    """People apart, items shared: one mirrored suite for each group of people, over all items."""
    everybody: dict[str, dict[str, float]] = defaultdict(dict)
    item = source.columns.get("item", "item")
    for row in read_rows(source.log):
        everybody[str(row.values["user"])][str(row.values[item])] = float(row.values["rating"])
    pairs: dict[str, tuple[Pair, ...]] = {}
    shots: dict[str, Sequence[Shot]] = {}
    texts: dict[str, str] = {}
    ratings: dict[str, Mapping[str, float]] = {}
    groups = _divide(everybody, options["train"].seed)
    for split, users in groups.items():
        log = _write_log({user: everybody[user] for user in users}, work / "logs" / f"{name}-{split}.csv")
        built = _build(Source(log, source.items), options[split], work)
        pairs[split] = tuple(_rename(pair, split) for pair in built.pairs["test"])
        shots |= built.shots
        texts |= built.texts
        shown = {user: {i: everybody[user][i] for i in items} for user, items in built.shown.items()}
        ratings |= {user: everybody[user] for user in users} if split == "train" else shown
    return checked(World(name, pairs, shots, texts, ratings, new_items=False))


def checked(world: World) -> World:
    """Refuse a world in which an answer could be known beforehand; by text, not by id."""
    people = {split: {pair.user for pair in world.pairs.get(split, ())} for split in SPLITS}
    for one, other in (("train", "validation"), ("train", "test"), ("validation", "test")):
        if both := people[one] & people[other]:
            raise DataError(f"{world.name}: {len(both)} people are in {one} and in {other}")
    shown = {user: _texts(world, shots) for user, shots in world.shots.items()}
    learned = {text for pair in world.pairs["train"] for text in (pair.chosen, pair.rejected)}
    learned |= {text for user in people["train"] for text in shown.get(user, ())}
    for split, pairs in world.pairs.items():
        for pair in pairs:
            if {pair.chosen, pair.rejected} & shown.get(pair.user, set()):
                raise DataError(f"{world.name}: {pair.user!r} is asked about a text of the own shots ({pair.id})")
            if world.new_items and split != "train" and {pair.chosen, pair.rejected} & learned:
                raise DataError(f"{world.name}: training has seen a text of {split} ({pair.id})")
    return world


class _Built(NamedTuple):
    """What is kept of a suite: profiles of ratings are long, and only the items in them matter here."""

    pairs: dict[str, tuple[Pair, ...]]
    shots: dict[str, Sequence[Shot]]
    texts: dict[str, str]
    shown: dict[str, list[str]]
    """Of a log of ratings: the items of each person's profile."""


def _build(source: Source, options: MirrorConfig, work: Path) -> _Built:
    """Make the suite, or read what was kept of it."""
    options = options.model_copy(update={"columns": dict(source.columns)})
    content = hashlib.sha256(source.log.read_bytes() + source.items.read_bytes()).hexdigest()
    path = work / "suites" / f"{digest({'content': content, 'options': options.model_dump(mode='json')})[:16]}.json"
    if not path.is_file():
        found = build_mirror(source.log, source.items, options=options)
        kept = {
            "pairs": [_row(pair) for pair in found.suite],
            "shown": {pair.user: [post.id.rpartition("/")[2] for post in pair.profile] for pair in found.suite},
            "context": found.context,
            "texts": {row["id"]: row["text"] for row in found.items},
        }
        write_whole(path, json.dumps(kept))
    return _revive(json.loads(path.read_text(encoding="utf-8")), options.seed)


def _row(pair: Pair) -> dict[str, Any]:
    """A pair without what stands elsewhere: texts are items, and profiles are not shown."""
    return {"id": pair.id, "user": pair.user, "question": pair.question, "tags": dict(pair.tags)}


def _revive(kept: Mapping[str, Any], seed: int) -> _Built:
    texts, pairs = kept["texts"], defaultdict(list)
    for row in kept["pairs"]:
        chosen, rejected = texts[row["tags"]["chosen_item"]], texts[row["tags"]["rejected_item"]]
        pairs[row["tags"]["split"]].append(Pair(**row, chosen=chosen, rejected=rejected))
    rows: dict[str, list[Shot]] = {user: [] for user in kept["shown"]}
    for row in kept["context"]:
        chosen, rejected = (row["a"], row["b"]) if row["choice"] == "a" else (row["b"], row["a"])
        rows[row["user"]].append(Shot(row["question"], chosen, rejected, row.get("reason", "")))
    shots: dict[str, Sequence[Shot]] = {user: _shuffled(found, user, seed) for user, found in rows.items()}
    return _Built({split: tuple(found) for split, found in pairs.items()}, shots, texts, kept["shown"])


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def _shuffled(shots: Sequence[Shot], user: str, seed: int) -> tuple[Shot, ...]:
    """So many shots in an order of the person's own, which does not depend on anybody else."""
    order = np.random.default_rng(_number(user, seed)).permutation(len(shots))[:MOST_SHOTS]
    return tuple(shots[place] for place in order)


def _divide(users: Mapping[str, object], seed: int) -> dict[str, list[str]]:
    """60, 20 and 20 % of the people, by a hash of their ids."""
    groups: dict[str, list[str]] = {split: [] for split in SPLITS}
    for user in sorted(users):
        part = _number(user, seed) % 10
        groups[SPLITS[(part >= 6) + (part >= 8)]].append(user)
    return groups


def _number(user: str, seed: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}:{user}".encode()).digest()[:8], "big")


def _write_log(ratings: Ratings, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(("user", "item", "rating"))
        out.writerows((user, item, rating) for user, rated in ratings.items() for item, rating in rated.items())
    return path


def _rename(pair: Pair, split: str) -> Pair:
    """A pair of one group's suite as a pair of the world: ids of the groups must not meet."""
    tags = {**pair.tags, "split": split, "mirror": f"{split}/{pair.tags['mirror']}"}
    return pair.model_copy(update={"id": f"{split}/{pair.id}", "tags": tags})


def _texts(world: World, shots: Sequence[Shot]) -> set[str]:
    return {world.texts[item] for shot in shots for item in (shot.chosen, shot.rejected)}


def describe(world: World) -> Iterator[tuple[str, int, int, int, float]]:
    """For each split: pairs, people, item pairs, and the median number of shots behind a pair."""
    for split, pairs in world.pairs.items():
        shots = [len(world.shots.get(pair.user, ())) for pair in pairs]
        item_pairs = {pair.tags["item_pair"] for pair in pairs}
        yield split, len(pairs), len({pair.user for pair in pairs}), len(item_pairs), float(np.median(shots))
