"""The study of real people on planted ones: tastes of rank 2 are found, who ignores the person stays at exactly ½."""

import csv
import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from people import page
from people.cells import Book
from people.plan import ALL_RATINGS, BLIND, Finding, Plan
from people.worlds import Shot, Source, World, checked, known_items, new_items
from real_people import study

import tiny_models
from prbench.build import MirrorConfig
from prbench.errors import DataError

PEOPLE, ITEMS, RANK = 200, 30, 2
PLAN = Plan(
    shots=(0, 2, 8),
    methods=("lore",),
    grid=({"learning_rate": 0.01}, {"learning_rate": 1e-6}),
    training={"epochs": 5, "patience": 5, "batch": 64},
    pairs={"train": 800, "validation": 200, "test": 300},
    ranks=(2, 8),
    nearest=(20,),
    ridges=(1.0,),
)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    """Ratings of rank 2 with a little noise; the texts say nothing of the taste."""
    folder, random = tmp_path_factory.mktemp("log"), np.random.default_rng(3)
    words = " ".join(tiny_models.CORPUS).split()
    texts = [" ".join(random.choice(words, 6 + item % 5)) for item in range(ITEMS)]
    (folder / "texts.json").write_text(json.dumps([{"id": str(i), "text": text} for i, text in enumerate(texts)]))
    people, items = random.normal(size=(PEOPLE, RANK)), random.normal(size=(ITEMS, RANK))
    ratings = people @ items.T + 0.3 * random.normal(size=(PEOPLE, ITEMS)) + random.normal(size=ITEMS)
    with (folder / "log.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(("user", "thing", "rating"))
        out.writerows((f"u{u}", i, round(ratings[u, i], 3)) for u in range(PEOPLE) for i in range(ITEMS))
    return Source(folder / "log.csv", folder / "texts.json", {"item": "thing"})


@pytest.fixture(scope="module")
def world(source: Source, tmp_path_factory: pytest.TempPathFactory) -> World:
    together = {split: MirrorConfig(splits=(0, 0, 100), max_pairs=most) for split, most in PLAN.pairs.items()}
    return known_items(source, "known items", together, tmp_path_factory.mktemp("work"))


class Study:
    """A study that was made once; the encoder is a tiny one with random weights."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world, self.book = world, Book(folder / "book")
        self.encoder = f"embed:{tiny_models.save_encoder(folder / 'encoder')}"
        self.findings = self.make()

    def make(self) -> dict[str, Finding]:
        return {f.candidate.name: f for f in study(self.world, PLAN, self.book, self.encoder)}

    def accuracy(self, name: str, shots: int) -> float:
        return self.findings[name].cells["test", shots].accuracy


@pytest.fixture(scope="module")
def made(world: World, tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("study")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRBENCH_CACHE", str(folder / "cache"))
        return Study(world, folder)


@pytest.mark.parametrize("name", [*BLIND, "bt"])
def test_who_ignores_the_person_is_right_exactly_half_of_the_time(made: Study, name: str):
    cell = made.findings[name].cells["test", 0]
    assert cell.accuracy == 0.5
    assert page.is_exact(cell.credits, [pair.tags["mirror"] for pair in made.world.pairs["test"]])


@pytest.mark.parametrize("name", ["factors", "neighbours", "lore", "own taste", "length habit"])
def test_without_shots_nothing_is_known(made: Study, name: str):
    assert made.accuracy(name, 0) == 0.5


def test_the_planted_taste_is_found_and_grows_with_shots(made: Study):
    assert made.accuracy("factors", 8) > made.accuracy("factors", 2) > 0.6
    assert made.accuracy("factors", 8) > 0.8
    assert made.accuracy(ALL_RATINGS, 8) > made.accuracy("factors", 8)
    assert made.accuracy("neighbours", 8) > 0.7
    assert made.accuracy("lore", 8) > 0.65


def test_validation_chooses_the_setting(made: Study):
    lore = made.findings["lore"]
    assert lore.setting == "learning_rate 0.01"
    assert lore.tried["learning_rate 0.01"] > lore.tried["learning_rate 1e-06"]
    assert made.findings["own taste"].tried == {}


def test_the_same_command_does_nothing_twice(made: Study):
    looks, spent = made.book.looks(), made.book.spent()
    assert set(looks.values()) == {1}
    shutil.rmtree(made.book.folder / "models")  # were anything trained or measured again, these would come back
    again = made.make()
    assert (made.book.looks(), made.book.spent()) == (looks, spent)
    assert not (made.book.folder / "models").exists()
    assert again["lore"].cells["test", 8].credits == made.findings["lore"].cells["test", 8].credits


def test_what_was_learned_otherwise_is_measured_anew(world: World, tmp_path: Path):
    class Sure:
        def margins(self, pairs, shots):
            return np.ones(len(pairs))

    book, made = Book(tmp_path), []
    other = dataclasses.replace(world, pairs={**world.pairs, "train": world.pairs["train"][:100]})
    for asked, basis in ((world, ""), (world, ""), (world, "more epochs"), (other, "")):
        book.cell(asked, "sure", "", basis, "test", 2, lambda: made.append(1) or Sure())
    assert len(made) == 3
    assert book.looks() == {(world.name, "sure", "test", 2): 3}


def test_the_page_has_the_figures_and_keeps_what_was_written_by_hand(made: Study, tmp_path: Path):
    path = tmp_path / "page.md"
    findings = {made.world.name: (made.world, list(made.findings.values()))}
    page.write(path, PLAN, findings, made.book)
    first = path.read_text()
    assert "| factors | the shots; other people's ratings of these items | 50.0 exactly | " in first
    assert f" {100 * made.accuracy('factors', 8):.1f} [" in first
    path.write_text(first.replace("*No conclusion has been written yet.*", "Taste is foreseeable."))
    page.write(path, PLAN, findings, made.book)
    assert path.read_text() == first.replace("*No conclusion has been written yet.*", "Taste is foreseeable.")


def test_items_and_people_of_a_world_of_new_items_are_apart(source: Source, tmp_path: Path):
    found = new_items(source, "new items", MirrorConfig(max_pairs=600), tmp_path)
    items = {
        s: {p.tags[side] for p in found.pairs[s] for side in ("chosen_item", "rejected_item")} for s in found.pairs
    }
    assert not items["train"] & items["test"]
    assert {pair.user for pair in found.pairs["seen-users"]} & {pair.user for pair in found.pairs["train"]}
    assert found.ratings == {}
    assert new_items(source, "new items", MirrorConfig(max_pairs=600), tmp_path) == found


def test_a_world_that_gives_an_answer_away_is_refused(world: World):
    pair = world.pairs["test"][0]
    shown = Shot(pair.question, pair.tags["chosen_item"], pair.tags["rejected_item"])
    with pytest.raises(DataError, match="is asked about a text of the own shots"):
        checked(dataclasses.replace(world, shots={**world.shots, pair.user: (shown,)}))
    with pytest.raises(DataError, match="people are in train and in test"):
        checked(dataclasses.replace(world, pairs={**world.pairs, "train": world.pairs["test"]}))
    with pytest.raises(DataError, match="training has seen a text of"):
        checked(dataclasses.replace(world, new_items=True))


def test_half_a_couple_is_left_out_with_its_other_half(world: World):
    pairs = world.pairs["test"]
    gone = pairs[0].tags["mirror"]
    rows = page.whole_couples(pairs, [pair is not pairs[0] for pair in pairs])
    assert [pair for pair, kept in zip(pairs, rows, strict=True) if not kept] == [
        pair for pair in pairs if pair.tags["mirror"] == gone
    ]
    assert len(pairs) - rows.sum() == 2
