"""Does the benchmark's ranking of reward models carry over to downstream use, and better than a rival's?

The primary endpoint is Spearman's ρ, tested once per study and corrected for their number; all other coefficients
describe. Fewer than four reward models are refused: nothing can be said of them.

On a mirrored suite all reward models that are not shown the user stand at exactly ½. Such a block is no chance
agreement of many models, so it is held in place: p shuffles, and intervals draw, only those that are shown the user.
These alone carry the verdict, and over these alone rivals are compared.
"""

import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from prbench import stats
from prbench._version import __version__
from prbench.errors import ConfigError, StudyError
from prbench.stats import Clusters, correlation
from prbench.stats.arrays import Floats
from prbench.stats.correlation import COEFFICIENTS, PERMUTATIONS, Coefficient, CorrelationVerdict, ItemScores, Rivalry
from prbench.stats.intervals import RESAMPLES
from prbench.studies.agreement import (
    Agreement,
    BenchmarkTold,
    CoefficientGap,
    CorrectedVerdict,
    Correlated,
    CorrelatedModel,
    LeftOneOut,
    Readers,
    RivalAgreement,
    StudyAgreement,
)
from prbench.studies.benchmark import Benchmark, Earned, Wanted, earned, gather
from prbench.studies.study import Study, read_study
from prbench.types import Context

LEAST_MODELS = 4
PRIMARY: Coefficient = "spearman"


@dataclass(frozen=True, slots=True)
class CorrelateConfig:
    """How a correlation is computed."""

    context: str = "profile"
    """Where a study does not say what a reward model was shown."""
    baseline_context: str | None = None
    """Of rival benchmarks; default: the same as the benchmark's, else `none`."""
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
    """In the study, but without a run on the benchmark."""

    @property
    def readers(self) -> list[int] | None:
        """The models that are shown the user, where all others are tied by construction; None where none are."""
        blind = [at for at, context in enumerate(self.benchmark.contexts) if context == "none"]
        readers = [at for at in range(len(self.names)) if at not in blind]
        tied = len(set(self.benchmark.items.means[blind])) == 1
        return readers if readers and len(blind) > 1 and tied else None

    def only(self, kept: Sequence[int]) -> "Matched":
        """The same with some of the models alone."""
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


def correlate(
    benchmark: Sequence[Path],
    downstream: Sequence[Path],
    baseline: Sequence[Path] = (),
    options: CorrelateConfig | None = None,
) -> Correlated:
    """Correlate a benchmark with downstream studies, and compare it with rival benchmarks.

    Args:
        benchmark: Runs of reward models on one suite.
        downstream: `study.json` files or their folders.
        baseline: Runs of the same reward models on rival suites.
        options: How; default: under the profile, 2,000 resamples, 10,000 permutations.
    """
    options = options or CorrelateConfig()
    studies = [(read_study(path), str(path)) for path in downstream]  # cheap, and the likelier mistake
    if not studies:
        raise ConfigError("no downstream study is named", hint="--downstream STUDY…")
    main = _only(gather(benchmark))
    rivals = gather(baseline)
    matched = [match(study, path, main, options.context) for study, path in studies]
    found = [_study(one, rivals, options) for one in matched]
    return Correlated(
        prbench=__version__,
        benchmark=BenchmarkTold(suite=main.suite, split=main.split, fingerprints=tuple(main.fingerprints)),
        primary=PRIMARY,
        options=asdict(options),
        studies=tuple(found if options.describe else _judged(found)),
        models_needed={str(rho): needed for rho, needed in correlation.power_table().items()},
    )


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


def _only(benchmarks: Sequence[Benchmark]) -> Benchmark:
    if len(benchmarks) != 1:
        listed = ", ".join(repr(found.label) for found in benchmarks) or "none"
        raise ConfigError(
            f"--benchmark takes the runs of one suite and split; these are of {len(benchmarks)}: {listed}",
            hint="rival benchmarks go to --baseline",
        )
    return benchmarks[0]


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


def _study(matched: Matched, rivals: Sequence[Benchmark], options: CorrelateConfig) -> StudyAgreement:
    study, benchmark = matched.study, matched.benchmark.items.means
    readers = matched.readers
    among = None
    if readers is not None and len(readers) >= LEAST_MODELS:
        shown = matched.only(readers)
        among = Readers(
            n=len(readers),
            names=tuple(shown.names),
            coefficients={name: _coefficient(name, shown, options) for name in COEFFICIENTS},
        )
    return StudyAgreement(
        study=matched.path,
        kind=study.kind,
        suite=study.suite,
        policy=study.policy,
        endpoint=study.endpoint,
        judge=study.judge,
        n=len(matched.names),
        models=_models(matched, benchmark),
        apart={name: study.models[name].score.value for name in matched.apart},
        unmatched=tuple(matched.unmatched),
        pairs=matched.benchmark.items.clusters.n,
        pairs_left_out=matched.benchmark.left_out,
        items=0 if matched.items is None else matched.items.clusters.n,
        items_left_out=matched.items_left_out,
        coefficients={name: _coefficient(name, matched, options) for name in COEFFICIENTS},
        held_in_place=0 if readers is None else len(matched.names) - len(readers),
        shown_the_user=among,
        rivals=tuple(_rival(rival, matched, options) for rival in rivals),
    )


def _models(matched: Matched, benchmark: Floats) -> tuple[CorrelatedModel, ...]:
    return tuple(
        CorrelatedModel(
            name=name,
            address=wanted.address,
            context=context,
            benchmark=float(benchmark[index]),
            downstream=float(matched.downstream[index]),
        )
        for index, (name, wanted, context) in enumerate(
            zip(matched.names, matched.wanted, matched.benchmark.contexts, strict=True)
        )
    )


def _coefficient(name: Coefficient, matched: Matched, options: CorrelateConfig) -> Agreement:
    x, y = matched.benchmark.items.means, matched.downstream
    among = matched.readers
    models = correlation.over_models(
        name, x, y, matched.draws(options, name, "models"), resamples=options.resamples, among=among
    )
    left = correlation.jackknife(name, x, y)
    test = correlation.permutation_test(
        name, x, y, matched.draws(options, name, "orders"), permutations=options.permutations, among=among
    )
    over = None
    if matched.items is not None:
        draws = matched.draws(options, name, "items")
        over = correlation.over_items(name, matched.benchmark.items, matched.items, draws, resamples=options.resamples)
    fisher: dict[str, stats.Estimate] = {}
    if name == "spearman" or name == "pearson":
        fisher["fisher"] = correlation.fisher_interval(models.value, len(x), name=name)
    return Agreement(
        over_models=models,
        over_items=over,
        permutation=test,
        **fisher,
        jackknife=LeftOneOut(
            values=dict(zip(matched.names, left.values, strict=True)),
            low=left.low,
            high=left.high,
            error=left.error,
            leaning=None if left.leaning is None else matched.names[left.leaning],
        ),
    )


def _rival(rival: Benchmark, matched: Matched, options: CorrelateConfig) -> RivalAgreement:
    """The same models and outcome, with another benchmark in the place of ours."""
    known = [index for index, wanted in enumerate(matched.wanted) if wanted.address in rival.runs]
    if len(known) < LEAST_MODELS:
        raise ConfigError(
            f"rival {rival.label!r} has runs of {len(known)} of the {len(matched.names)} reward models in "
            f"{matched.path}; at least {LEAST_MODELS} are needed",
            hint="run the others on it as well",
        )
    wanted = [
        Wanted(matched.wanted[at].address, options.baseline_context or matched.wanted[at].context) for at in known
    ]
    theirs = earned(rival, wanted, fallback=options.baseline_context is None)
    x, y, z = matched.benchmark.items.means[known], matched.downstream[known], theirs.items.means
    readers = matched.readers
    free = [at for at, index in enumerate(known) if readers is None or index in readers]
    return RivalAgreement(
        suite=rival.suite,
        split=rival.split,
        fingerprints=tuple(rival.fingerprints),
        contexts=tuple(sorted(set(theirs.contexts))),
        models={matched.names[at]: float(score) for at, score in zip(known, z, strict=True)},
        missing=tuple(name for at, name in enumerate(matched.names) if at not in known),
        everybody={name: _difference(name, x, z, y) for name in COEFFICIENTS},
        n=len(free),
        coefficients={
            name: _versus(name, (x[free], z[free], y[free]), matched.draws(options, name, *rival[:2]), options)
            for name in COEFFICIENTS
        },
        partial={
            name: correlation.partial_correlation(x[free], y[free], z[free], name=name)
            for name in ("spearman", "pearson")
        },
    )


def _difference(name: Coefficient, benchmark: Floats, rival: Floats, outcome: Floats) -> CoefficientGap:
    one, two = correlation.coefficient(name, benchmark, outcome), correlation.coefficient(name, rival, outcome)
    return CoefficientGap(benchmark=one, rival=two, difference=None if one is None or two is None else one - two)


def _versus(
    name: Coefficient, scores: tuple[Floats, Floats, Floats], draws: np.random.Generator, options: CorrelateConfig
) -> Rivalry:
    return correlation.compare_benchmarks(
        name, *scores, draws, resamples=options.resamples, permutations=options.permutations
    )


def _judged(studies: Sequence[StudyAgreement]) -> list[StudyAgreement]:
    """The same with verdicts, corrected for how many studies and how many rivals were looked at."""
    tests = [(study.shown_the_user or study).coefficients[PRIMARY] for study in studies]
    corrected = _holm([test.permutation.two_sided for test in tests])
    rivals = iter(_judged_rivals([rival for study in studies for rival in study.rivals]))
    return [
        study.model_copy(
            update={
                "rivals": tuple(next(rivals) for _ in study.rivals),
                "verdict": _corrected(correlation.verdict(test.over_models, p), p),
            }
        )
        for study, test, p in zip(studies, tests, corrected, strict=True)
    ]


def _judged_rivals(rivals: Sequence[RivalAgreement]) -> list[RivalAgreement]:
    tests = [rival.coefficients[PRIMARY] for rival in rivals]
    corrected = _holm([test.swap_p for test in tests])
    return [
        rival.model_copy(update={"verdict": _corrected(correlation.rivalry_verdict(test.difference, p), p)})
        for rival, test, p in zip(rivals, tests, corrected, strict=True)
    ]


def _corrected(said: CorrelationVerdict, p: float | None) -> CorrectedVerdict:
    return CorrectedVerdict(significant=said.significant, sentence=said.sentence, p_corrected=p)


def _holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Corrected p-values in their order; one that is undefined stays so and does not count."""
    known = [p for p in p_values if p is not None]
    adjusted = iter(stats.holm(known).tolist())
    return [None if p is None else next(adjusted) for p in p_values]
