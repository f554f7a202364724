"""Runs of reward models on one suite, read as a benchmark: what each earned on the pairs that all of them judged."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from prbench.errors import ConfigError, RunError, did_you_mean
from prbench.report.leaderboard import find_runs
from prbench.results import CreditRows, Loaded, load_run
from prbench.stats.correlation import ItemScores
from prbench.types import CHOSEN_ANSWER, ITEM


class Benchmark(NamedTuple):
    """All runs on one suite and split, by model address; some may be of a sample (`--limit`)."""

    suite: str
    split: str
    runs: dict[str, Loaded]

    @property
    def fingerprints(self) -> list[str]:
        """Fingerprints of the pairs of the runs: several where some are of a sample."""
        return sorted({run.facts.dataset.fingerprint for run in self.runs.values()})

    @property
    def label(self) -> str:
        """Name of the benchmark in tables."""
        return f"{self.suite} {self.split}"


class Wanted(NamedTuple):
    """A reward model in a context."""

    address: str
    context: str


class Earned(NamedTuple):
    """Credits that reward models earned on a benchmark."""

    items: ItemScores
    contexts: list[str]
    """Context under which each model was really asked: `none` where it does not read what was wanted."""
    left_out: int
    """Pairs that some of the models have no verdict on."""


def read_benchmarks(paths: Sequence[Path]) -> list[Benchmark]:
    """Sort runs into benchmarks, in the order of their first run.

    Args:
        paths: Run folders, or folders that hold some.
    """
    found: dict[tuple[str, str], Benchmark] = {}
    for path in dict.fromkeys(folder for given in paths for folder in _run_folders(given)):
        run = load_run(path)
        dataset = run.facts.dataset
        key = (dataset.full_name, run.config.split or "all")
        runs = found.setdefault(key, Benchmark(*key, {})).runs
        address = run.facts.card.address
        if address in runs:
            raise ConfigError(
                f"{str(path)!r} and {str(runs[address].path)!r} are both runs of {address!r} on {dataset.name!r}",
                hint="name one of them",
            )
        runs[address] = run
    return list(found.values())


def earned(benchmark: Benchmark, models: Sequence[Wanted], *, fallback: bool = False) -> Earned:
    """The credits of reward models on the pairs that all of them judged.

    Pairs are the same by what they say, not by their ids. A mirrored pair counts with its mirror image or not at all:
    one half alone would move a model that ignores the user away from ½.

    Args:
        benchmark: The runs.
        models: Which models, in which contexts; several may share an address.
        fallback: Whether a run without the context may be read under `none`.
    """
    contexts = [_context(benchmark.runs[model.address], model.context, fallback) for model in models]
    credits = [benchmark.runs[model.address].credits[context] for model, context in zip(models, contexts, strict=True)]
    asked = [set(found.contents) for found in credits]
    judged = sorted(set.intersection(*asked))
    first = credits[0].take(credits[0].positions(judged))
    mirrors = first.labels(first.pairs.tag("mirror"))
    halves = Counter(mirrors)
    first = first.take(np.array([not mirror or halves[mirror] == 2 for mirror in mirrors], dtype=np.bool_))
    if not len(first):
        raise RunError(
            f"the runs on {benchmark.label!r} have no pair that all models judged", hint="see `prbench compare`"
        )
    rows = _rows(first)
    of_models = [found.credit[found.positions(first.contents)].tolist() for found in credits]
    scores = np.array([[_earned([one[at] for at in row]) for row in rows] for one in of_models])
    clusters = first.clusters.take(np.array([row[0] for row in rows], dtype=np.int64))
    return Earned(ItemScores(scores, clusters), contexts, len(set.union(*asked)) - len(first))


def _rows(credits: CreditRows) -> list[list[int]]:
    """Places of pairs that count together: those of one row with one right answer among several, else each alone."""
    listed: dict[str, list[int]] = {}
    items, right = (credits.labels(credits.pairs.tag(name)) for name in (ITEM, CHOSEN_ANSWER))
    for at, (item, chosen) in enumerate(zip(items, right, strict=True)):
        listed.setdefault(f"\0{at}" if item is None or chosen is None else f"{item}\0{chosen}", []).append(at)
    return list(listed.values())


def _earned(credits: Sequence[float]) -> float:
    """Right where the right answer beats all others; a tie for the first place earns its share.

    Example:
        >>> _earned([1.0, 1.0, 0.5]), _earned([1.0, 0.0]), _earned([0.5])
        (0.5, 0.0, 0.5)
    """
    return (
        0.0 if 0.0 in credits else 1 / (1 + sum(credit < 1 for credit in credits)) if len(credits) > 1 else credits[0]
    )


def _run_folders(path: Path) -> list[Path]:
    if (path / "config.toml").is_file():
        return [path]
    found = find_runs(path)
    if not found:
        raise ConfigError(f"{str(path)!r} holds no run", hint="`prbench run … --out FOLDER` makes one")
    return found


def _context(run: Loaded, wanted: str, fallback: bool) -> str:
    if wanted in run.credits:
        return wanted
    # A model that does not read the profile answers the same with and without it.
    if "none" in run.credits and (fallback or wanted in run.facts.unsupported):
        return "none"
    raise RunError(f"run {run.name!r} has no context {wanted!r}", hint=did_you_mean(wanted, run.credits))
