"""The reward models that a downstream study and a benchmark both know, and what each of them earned in both."""

import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from prbench.config import Config
from prbench.errors import StudyError
from prbench.stats import Clusters, Floats, correlation
from prbench.stats.correlation import PERMUTATIONS, ItemScores
from prbench.stats.intervals import RESAMPLES
from prbench.studies.benchmark import Benchmark, Earned, Wanted, earned
from prbench.studies.study import Study
from prbench.types import Context

LEAST_MODELS = 4


class CorrelateConfig(Config):
    """Settings of a correlation."""

    context: str = "profile"
    """Context to assume where a study does not say what a reward model was shown."""
    baseline_context: str | None = None
    """Context of rival benchmarks; default: the same as the benchmark's, else `none`."""
    seed: int = 0
    resamples: int = RESAMPLES
    permutations: int = PERMUTATIONS
    describe: bool = False
    """Figures only, no verdict: for what was not the question fixed beforehand."""

    def rng(self, *names: str) -> np.random.Generator:
        """A generator for one figure, so that no figure depends on which others are computed."""
        return np.random.default_rng([self.seed, zlib.crc32("\x00".join(names).encode())])


class Matched(NamedTuple):
    """A study's reward models that the benchmark knows as well."""

    study: Study
    path: str
    names: list[str]
    wanted: list[Wanted]
    benchmark: Earned
    downstream: Floats
    items: ItemScores | None
    """Per-item downstream scores, where all models have them."""
    items_left_out: int
    apart: list[str]
    unmatched: list[str]
    """Models in the study that have no run on the benchmark."""

    @property
    def readers(self) -> list[int] | None:
        """The models that are shown the user, where all others are tied by construction; None where none are."""
        blind = [at for at, context in enumerate(self.benchmark.contexts) if context == "none"]
        readers = [at for at in range(len(self.names)) if at not in blind]
        tied = len(set(self.benchmark.items.means[blind])) == 1
        return readers if readers and len(blind) > 1 and tied else None

    @property
    def lineages(self) -> list[str] | None:
        """The lineage of each model, a model without one standing for itself; None where they cannot be drawn anew."""
        found = [self.study.models[name].lineage or name for name in self.names]
        named = any(self.study.models[name].lineage for name in self.names)
        return found if named and len(set(found)) >= correlation.LEAST_LINEAGES else None

    def only(self, kept: Sequence[int]) -> "Matched":
        """Return the match with some of the models alone."""
        items = self.items and ItemScores(self.items.scores[kept], self.items.clusters)
        earned = ItemScores(self.benchmark.items.scores[kept], self.benchmark.items.clusters)
        contexts = [self.benchmark.contexts[at] for at in kept]
        return self._replace(
            names=[self.names[at] for at in kept],
            wanted=[self.wanted[at] for at in kept],
            benchmark=self.benchmark._replace(items=earned, contexts=contexts),
            downstream=self.downstream[kept],
            items=items,
        )

    def draws(self, options: CorrelateConfig, *names: str) -> np.random.Generator:
        """A generator for one figure of this study, wherever its file lies."""
        study = self.study
        return options.rng(study.kind, study.suite, study.policy, study.endpoint, study.judge.address, *names)


def match(study: Study, path: str, benchmark: Benchmark, context: str) -> Matched:
    """Find a study's reward models among the benchmark's runs, by address."""
    shown = {name: Wanted(study.address_of(name), study.models[name].context or context) for name in study.models}
    apart = [name for name, want in shown.items() if study.models[name].apart or Context.parse(want.context).leaks]
    names = [name for name, want in shown.items() if want.address in benchmark.runs and name not in apart]
    if len(names) < LEAST_MODELS:
        raise StudyError(
            f"{path}: {len(names)} reward models have a run on {benchmark.label!r}; at least {LEAST_MODELS} are needed",
            hint="in the study: " + ", ".join(sorted(want.address for want in shown.values())),
        )
    wanted = [shown[name] for name in names]
    _same_revisions(study, names, path, benchmark)
    items, left_out = _downstream_items(study, names, path)
    scores = np.array([study.models[name].score.value for name in names]) if items is None else items.means
    return Matched(
        study=study,
        path=path,
        names=names,
        wanted=wanted,
        benchmark=earned(benchmark, wanted),
        downstream=scores,
        items=items,
        items_left_out=left_out,
        apart=apart,
        unmatched=[name for name in shown if name not in names and name not in apart],
    )


def _same_revisions(study: Study, names: Sequence[str], path: str, benchmark: Benchmark) -> None:
    for name in names:
        run = benchmark.runs[study.address_of(name)]
        ours, theirs = study.models[name].revision, run.facts.card.revision
        if ours and theirs and ours != theirs:
            raise StudyError(
                f"{path}: {name!r} was used at revision {ours!r}, but {str(run.path)!r} is a run of {theirs!r}",
                hint="the model has changed in between: make the run or the study again",
            )


def _downstream_items(study: Study, names: Sequence[str], path: str) -> tuple[ItemScores | None, int]:
    """The scores on the items that all models have, and how many items are left out.

    The items of one unit and question (on mirrored suites: both users of a couple) count together or not at all.
    """
    found = [study.models[name].items for name in names]
    every = set().union(*found)
    if not every:
        return None, 0
    shared = set.intersection(*map(set, found))
    cell = {item: (label.unit, label.question) for item, label in study.items.items()}
    broken = {cell.get(item, item) for item in every - shared}
    common = sorted(item for item in shared if cell.get(item, item) not in broken)
    if not common:
        lacking = min(names, key=lambda name: len(study.models[name].items))
        raise StudyError(
            f"{path}: the {len(names)} reward models have no item in common; {lacking!r} has "
            f"{len(study.models[lacking].items)} of {len(every)}",
            hint="scores over different items are not compared; make the study again with the same items for all",
        )
    labels = [study.items.get(item) for item in common]
    units = [item if label is None else label.unit for item, label in zip(common, labels, strict=True)]
    questions = [item if label is None else label.question for item, label in zip(common, labels, strict=True)]
    scores = np.array([[items[item] for item in common] for items in found], dtype=np.float64)
    return ItemScores(scores, Clusters.of(units, questions)), len(every) - len(common)
