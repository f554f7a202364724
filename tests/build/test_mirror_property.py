"""What must hold for every log: exactness, true labels, and walls between users, items, contexts and questions."""

import csv
import hashlib
import json
import random
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from prbench.build import MirrorBuild, MirrorConfig, build_mirror
from prbench.errors import DataError
from prbench.types import Pair

SETTINGS = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


REFUSALS = ("no disagreement", "none is left", "has no rows", "so no user")


@dataclass(frozen=True)
class Shape:
    """How a generated log looks."""

    seed: int
    kind: str
    users: int
    items: int
    density: float
    groups: int
    ties: float
    twins: int
    """So many items repeat the text of another one."""


SHAPES = st.builds(
    Shape,
    seed=st.integers(0, 10_000),
    kind=st.sampled_from(["ratings", "judgments"]),
    users=st.integers(4, 60),
    items=st.integers(6, 24),
    density=st.floats(0.3, 1.0),
    groups=st.integers(0, 5),
    ties=st.floats(0, 0.5),
    twins=st.integers(0, 3),
)
OPTIONS = st.builds(
    MirrorConfig,
    seed=st.integers(0, 2**70),
    splits=st.sampled_from([(60.0, 20.0, 20.0), (0.0, 0.0, 1.0), (50.0, 0.0, 50.0), (1.0, 1.0, 1.0)]),
    max_pairs=st.sampled_from([None, 2, 7, 40]),
    max_per_user=st.sampled_from([None, 1, 3]),
    max_posts=st.integers(1, 8),
    context_share=st.sampled_from([0.2, 0.5, 0.8]),
    min_gap=st.sampled_from([None, 1.0, 2.5]),
)


def texts_of(shape: Shape) -> list[str]:
    """The texts of all items, the last ones repeating the first."""
    texts = [f"text number {i}." for i in range(shape.items)]
    for i in range(min(shape.twins, shape.items // 2)):
        texts[-1 - i] = texts[i]
    return texts


def write_log(shape: Shape, folder: Path) -> tuple[Path, Path]:
    """Make up items and a log of this shape."""
    luck = random.Random(shape.seed)
    texts = texts_of(shape)
    items = folder / "texts.jsonl"
    with items.open("w") as file:
        for i, text in enumerate(texts):
            topic = {"topic": f"topic {i % shape.groups}"} if shape.groups else {}
            file.write(json.dumps({"id": i, "text": text, **topic}) + "\n")
    log = folder / "log.csv"
    rows = _ratings(shape, luck) if shape.kind == "ratings" else _judgments(shape, luck)
    with log.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return log, items


def _ratings(shape: Shape, luck: random.Random) -> Iterable[tuple[object, ...]]:
    yield "user", "item", "rating"
    for user in range(shape.users):
        for item in range(shape.items):
            if luck.random() < shape.density:
                yield f"u{user}", item, 3 if luck.random() < shape.ties else luck.randint(1, 5)


def _judgments(shape: Shape, luck: random.Random) -> Iterable[tuple[object, ...]]:
    yield "user", "a", "b", "choice", "reason"
    for user in range(shape.users):
        for _ in range(int(shape.density * 40)):
            a = luck.randrange(shape.items)
            b = (a + 1 + luck.randrange(2)) % shape.items  # few different pairs, so that users meet on them
            choice = "equal" if luck.random() < shape.ties else luck.choice(["a", "b"])
            yield f"u{user}", a, b, choice, luck.choice(["", f"reason {luck.random()}"])


def rows_of(log: Path) -> list[dict[str, str]]:
    with log.open(newline="") as file:
        return list(csv.DictReader(file))


def build_from(shape: Shape, options: MirrorConfig) -> tuple[MirrorBuild, list[dict[str, str]]] | None:
    """The build and the rows of its log; None where the log is rightly refused."""
    with tempfile.TemporaryDirectory() as folder:
        log, items = write_log(shape, Path(folder))
        try:
            build = build_mirror(log, items, options=options)
        except DataError as error:
            refusal = next((words for words in REFUSALS if words in error.message), None)
            if refusal is None:
                raise
            event(f"refused: {refusal}")
            return None
        event("built")
        return build, rows_of(log)


def by_split(pairs: Iterable[Pair]) -> dict[str, list[Pair]]:
    groups: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        groups[pair.tags["split"]].append(pair)
    return groups


def texts_asked(pairs: Iterable[Pair]) -> set[str]:
    return {text for pair in pairs for text in (pair.chosen, pair.rejected)}


def texts_shown(pair: Pair) -> set[str]:
    """The texts between quotation marks in a profile."""
    return {part.split("»")[0] for post in pair.profile for part in post.text.split("«")[1:]}


@given(shape=SHAPES, options=OPTIONS, salt=st.integers(), buckets=st.sampled_from([2, 5, 2**64]))
@SETTINGS
def test_any_function_of_question_and_answers_gets_exactly_half(
    shape: Shape, options: MirrorConfig, salt: int, buckets: int
):
    built = build_from(shape, options)
    if built is None:
        return

    def score(pair: Pair, answer: str) -> int:
        digest = hashlib.sha256(f"{salt}{pair.question}\0{answer}".encode()).digest()
        return int.from_bytes(digest[:8], "big") % buckets  # few buckets make ties

    strata: dict[tuple[str, str], list[Fraction]] = defaultdict(list)
    for pair in built[0].suite:
        chosen, rejected = score(pair, pair.chosen), score(pair, pair.rejected)
        credit = Fraction(1 + (chosen > rejected) - (chosen < rejected), 2)
        for stratum in ("", pair.category, pair.tags["item_pair"]):
            strata[pair.tags["split"], stratum].append(credit)
    assert strata
    assert {sum(credits) / len(credits) for credits in strata.values()} == {Fraction(1, 2)}


@given(shape=SHAPES, options=OPTIONS)
@SETTINGS
def test_couples_are_whole_and_labels_are_what_the_users_said(shape: Shape, options: MirrorConfig):
    built = build_from(shape, options)
    if built is None:
        return
    build, rows = built
    suite = build.suite
    assert suite.is_mirrored
    halves = defaultdict(list)
    for pair in suite:
        halves[pair.tags["mirror"]].append(pair.user)
    assert all(len(set(users)) == 2 == len(users) for users in halves.values())
    said = _said(shape, rows, build.card.options.min_gap)
    for pair in suite:
        assert said[pair.user, pair.tags["chosen_item"], pair.tags["rejected_item"]]
    for row in build.context:
        preferred, other = (row["a"], row["b"]) if row["choice"] == "a" else (row["b"], row["a"])
        assert said[row["user"], preferred, other]


def _said(shape: Shape, rows: list[dict[str, str]], min_gap: float | None) -> dict[tuple[str, str, str], bool]:
    """(user, item, other item) → whether the user preferred the item, worked out the slow and obvious way."""
    found: dict[tuple[str, str, str], bool] = defaultdict(bool)
    if shape.kind == "judgments":
        for row in rows:
            if row["choice"] != "equal":
                first, second = (row["a"], row["b"]) if row["choice"] == "a" else (row["b"], row["a"])
                found[row["user"], first, second] = True
        for user, a, b in [(user, a, b) for user, a, b in found if (user, b, a) in found]:
            found[user, a, b] = False
        return found
    ratings: dict[str, dict[str, float]] = defaultdict(dict)
    texts = texts_of(shape)
    for row in rows:  # the last rating of a text counts for every item with that text
        text = texts[int(row["item"])]
        ratings[row["user"]].update({str(i): float(row["rating"]) for i, other in enumerate(texts) if other == text})
    for user, given_by_user in ratings.items():
        for item, rating in given_by_user.items():
            for other, lower in given_by_user.items():
                found[user, item, other] = rating - lower >= (min_gap or 0)
    return found


@given(shape=SHAPES, options=OPTIONS)
@SETTINGS
def test_users_and_items_do_not_cross_splits(shape: Shape, options: MirrorConfig):
    built = build_from(shape, options)
    if built is None:
        return
    splits = by_split(built[0].suite)
    users = {split: {pair.user for pair in pairs} for split, pairs in splits.items()}
    texts = {split: texts_asked(pairs) for split, pairs in splits.items()}
    for one in splits:
        for other in splits:
            if one < other:
                assert {one, other} == {"seen-users", "train"} or not users[one] & users[other]
                assert {one, other} == {"seen-users", "test"} or not texts[one] & texts[other]
    # Not even a profile shows a text before its split is used.
    for split, later in (("train", "validation"), ("train", "test"), ("validation", "test")):
        for pair in splits.get(split, []):
            assert not texts_shown(pair) & texts.get(later, set())


@given(shape=SHAPES, options=OPTIONS)
@SETTINGS
def test_no_user_is_asked_about_an_item_of_the_context(shape: Shape, options: MirrorConfig):
    built = build_from(shape, options)
    if built is None:
        return
    build, _ = built
    asked: dict[str, set[str]] = defaultdict(set)
    for pair in build.suite:
        asked[pair.user] |= {pair.chosen, pair.rejected}
        assert 1 <= len(pair.profile) <= options.max_posts
    for pair in build.suite:
        assert not texts_shown(pair) & asked[pair.user]
    text_of = {item["id"]: item["text"] for item in build.items}
    for row in build.context:
        assert not {text_of[row["a"]], text_of[row["b"]]} & asked[row["user"]]


@given(shape=SHAPES, options=OPTIONS)
@SETTINGS
def test_bounds_hold_and_every_judgment_is_accounted_for(shape: Shape, options: MirrorConfig):
    built = build_from(shape, options)
    if built is None:
        return
    build, rows = built
    if options.max_pairs is not None:
        assert len(build.suite) <= options.max_pairs
    if options.max_per_user is not None:
        counted = Counter((pair.tags["split"], pair.user) for pair in build.suite)
        assert max(counted.values()) <= options.max_per_user
    assert build.card.log.rows == len(rows)
    if shape.kind == "judgments":
        assert len(rows) == sum(build.card.dropped.values()) + build.card.context["rows"] + len(build.suite)


@pytest.mark.parametrize("kind", ["ratings", "judgments"])
def test_the_same_seed_gives_the_same_suite_whatever_the_order_of_rows(kind: str, tmp_path: Path):
    log, items = write_log(Shape(1, kind, 40, 24, 0.9, 4, 0.1, 0), tmp_path)
    first = build_mirror(log, items)
    assert len(first.suite) > 20
    assert build_mirror(log, items).card == first.card
    assert build_mirror(log, items, options=MirrorConfig(seed=1)).suite.record.fingerprint != first.card.fingerprint
    header, *rows = log.read_text().splitlines()
    if kind == "judgments":  # of repeated judgments the first gives the reason, so keep one of each
        rows = list({tuple(sorted(row.split(",")[:3])): row for row in rows}.values())
        log.write_text("\n".join([header, *rows]))
        first = build_mirror(log, items)
    log.write_text("\n".join([header, *reversed(rows)]))
    assert build_mirror(log, items).card.fingerprint == first.card.fingerprint


@pytest.mark.parametrize("kind", ["ratings", "judgments"])
def test_a_plain_log_fills_every_split(kind: str, tmp_path: Path):
    log, items = write_log(Shape(2, kind, 120, 60, 1.0, 12 if kind == "judgments" else 0, 0.1, 0), tmp_path)
    if kind == "judgments":  # random pairs of 60 items rarely meet: judge neighbours of one topic instead
        luck = random.Random(0)
        rows = ["user,a,b,choice"]
        for user in range(120):
            for _ in range(40):
                a = luck.randrange(48)
                rows.append(f"u{user},{a},{a + 12},{luck.choice('ab')}")
        log.write_text("\n".join(rows))
    card = build_mirror(log, items).card
    assert all(split.pairs >= 10 for split in card.splits.values()), card.splits
    users = {name: split.users for name, split in card.splits.items()}
    assert users["train"] > users["test"] > 5
