"""Real people: does any method know what *this* person likes, by how much, and how does it grow with shots?

    make real-people          # or: python studies/real_people.py [--quick | --before-test] [--data DIR] [--work DIR]

Two public logs (arguments judged, jokes rated) are made into mirrored pairs: whoever ignores the person is right on
exactly half of them. Everything learned is kept in the work folder, so the same command continues; nothing of the logs
enters the repository. `--quick` is a small rehearsal, `--before-test` the whole study on validation: neither looks at
test.
"""

import argparse
import dataclasses
import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from people import page
from people.cells import FINAL, Book
from people.plan import ALL_RATINGS, BLIND, FULL, QUICK, Candidate, Finding, Plan
from people.tastes import Blind, Factors, Habit, Neighbours, OwnTaste, RatedFactors, Taste, tabulate
from people.trained import Shipped, Trained, open_reader, train_method
from people.worlds import Source, World, known_items, new_items

from prbench.build import MirrorConfig
from prbench.config import cache_folder, digest
from prbench.errors import DataError
from prbench.models.personal.reader import Reader
from prbench.train import TrainConfig

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Read the options, make the study, write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of the two logs")
    parser.add_argument("--work", type=Path, help="what is learned and measured; default: under the cache folder")
    parser.add_argument("--quick", action="store_true", help="a small rehearsal that never looks at test")
    parser.add_argument("--before-test", action="store_true", help="the whole study, but stop before test is looked at")
    parser.add_argument("--page", type=Path, help="default: docs/lab/real-people.md; before test, the work folder")
    given = parser.parse_args()
    plan = QUICK if given.quick else dataclasses.replace(FULL, final=not given.before_test)
    work = given.work or cache_folder() / "studies" / ("real-people-quick" if given.quick else "real-people")
    if work.resolve().is_relative_to(ROOT):
        raise DataError(f"--work {str(work)!r} is inside the repository", hint="what people said must stay outside")
    book = Book(work)
    findings = {world.name: (world, study(world, plan, book)) for world in worlds(given.data, plan, work)}
    default = ROOT / "docs" / "lab" / "real-people.md" if plan.final else work / "real-people.md"
    print(page.write(given.page or default, plan, findings, book))


def worlds(data: Path, plan: Plan, work: Path) -> Iterator[World]:
    """Four worlds of two logs, from the easiest to the hardest."""
    jokes = Source(data / "jester5k_ratings.csv.gz", data / "jester_jokes.json", {"item": "joke"})
    arguments = Source(data / "ukpconvarg1_judgments.csv.gz", data / "ukpconvarg1_arguments.jsonl.gz")
    for path in (*jokes[:2], *arguments[:2]):
        if not path.is_file():
            raise DataError(f"{str(path)!r} is not at hand", hint="--data names the folder of the logs")
    mirror = MirrorConfig(seed=plan.seed, max_pairs=plan.most_pairs)
    together = {
        split: MirrorConfig(seed=plan.seed, splits=(0, 0, 100), max_pairs=most) for split, most in plan.pairs.items()
    }
    yield known_items(jokes, "known jokes", together, work)
    yield new_items(jokes, "new jokes", mirror, work)
    yield new_items(arguments, "new arguments", mirror, work)
    yield new_items(arguments, "new arguments, with reasons", mirror, work, told=True)


def study(world: World, plan: Plan, book: Book, encoder: str = "embed:minilm") -> list[Finding]:
    """Choose each candidate's setting on validation, then look at test once."""
    return [_find(world, candidate, plan, book) for candidate in candidates(world, plan, book, encoder)]


def candidates(world: World, plan: Plan, book: Book, encoder: str) -> Iterator[Candidate]:
    """Everything that is tried: who knows nothing, who knows the shots, who knows other people too."""
    basic = TrainConfig(method="bt", encoder=encoder, seed=plan.seed, shots=max(plan.shots), **plan.training)
    reader = functools.cache(lambda: open_reader(basic))
    trained = functools.partial(_trained, world, book, reader)
    if not world.told:  # who reads no reasons earns what the world without reasons says
        yield from _simple(world, plan, reader, encoder)
    basis = digest(basic.model_dump(mode="json"))
    yield Candidate("bt", "the two texts", {"": trained(basic)}, (0,), basis)
    for method in plan.methods:
        settings = {
            ", ".join(f"{name} {value:g}" for name, value in grid.items()): trained(
                TrainConfig.model_validate({**basic.model_dump(), "method": method, **grid})
            )
            for grid in plan.grid
        }
        yield Candidate(method, f"{knows_of(world)}; trained on other people", settings, plan.shots, basis)
    if plan.shipped:
        shipped = functools.partial(Shipped, world)
        yield Candidate("reference", f"{knows_of(world)}; trained on written personas", {"": shipped}, plan.shots)
    if world.ratings:
        yield from _collaborative(world, plan)


def knows_of(world: World) -> str:
    """What of a person a candidate is shown."""
    return "the shots and their reasons" if world.told else "the shots"


def _simple(world: World, plan: Plan, reader: Callable[[], Reader], encoder: str) -> Iterator[Candidate]:
    """Who learns from nobody else."""
    for name in BLIND:
        yield Candidate(name, "the two texts", {"": functools.partial(Blind, name)}, (0,))
    yield Candidate("length habit", "the shots", {"": functools.partial(Habit, world)}, plan.shots)
    own = {f"ridge {ridge:g}": _later(lambda ridge: OwnTaste(world, reader(), ridge), ridge) for ridge in plan.ridges}
    yield Candidate("own taste", "the shots", own, plan.shots, basis=encoder)


def _collaborative(world: World, plan: Plan) -> Iterator[Candidate]:
    """What other people's ratings of the same items say; the texts are not read."""
    table = functools.cache(lambda: tabulate(world))
    learn = functools.cache(lambda rank: Factors.learn(table(), rank, ridge=1.0))
    knows = "the shots; other people's ratings of these items"
    near = {f"nearest {count}": _later(lambda count: Neighbours(table(), count), count) for count in plan.nearest}
    yield Candidate("neighbours", knows, near, plan.shots)
    yield Candidate("factors", knows, {f"rank {rank}": _later(learn, rank) for rank in plan.ranks}, plan.shots)
    rated = {f"rank {rank}": _later(lambda rank: RatedFactors(learn(rank), world.ratings), rank) for rank in plan.ranks}
    yield Candidate(ALL_RATINGS, "all ratings behind the shots; other people's ratings", rated, (max(plan.shots),))


def _find(world: World, candidate: Candidate, plan: Plan, book: Book) -> Finding:
    most = max(candidate.shots)
    makers = {setting: functools.cache(make) for setting, make in candidate.settings.items()}
    tried = {
        setting: book.cell(world, candidate.name, setting, candidate.basis, "validation", most, make).accuracy
        for setting, make in makers.items()
        if len(makers) > 1
    }
    setting = max(tried, key=lambda setting: tried[setting]) if tried else next(iter(makers))
    splits = [split for split in FINAL if split in world.pairs] if plan.final else ["validation"]
    cells = {
        (split, shots): book.cell(world, candidate.name, setting, candidate.basis, split, shots, makers[setting])
        for split in splits
        for shots in candidate.shots
    }
    told = ", ".join(f"{split} {shots}: {100 * cell.accuracy:.1f}" for (split, shots), cell in cells.items())
    print(f"{world.name} · {candidate.name} ({setting or 'as it is'}) · {told}", flush=True)
    return Finding(candidate, setting, tried, cells)


def _trained(world: World, book: Book, reader: Callable[[], Reader], options: TrainConfig) -> Callable[[], Taste]:
    """Train when it is asked for; the folder's name says everything that the weights depend on."""

    def make() -> Taste:
        known = {"learned": world.learned, "options": options.model_dump(mode="json")}
        folder = book.folder / "models" / f"{options.method}-{digest(known)[:16]}"
        with book.spending(f"{world.name} {options.method} training"):
            train_method(world, options, reader(), folder)
        return Trained(world, folder)

    return make


def _later(make: Callable[[Any], Taste], value: object) -> Callable[[], Taste]:
    """A taste that is made when it is asked for."""
    return functools.partial(make, value)


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    main()
