"""Correlation of the benchmark's ranking of reward models with downstream use, beside that of a rival.

The primary endpoint is Spearman's ρ, tested once per study and corrected for their number; all other coefficients
describe. Fewer than four reward models are refused: nothing can be said of them.

On a mirrored suite all reward models that are not shown the user stand at exactly ½. Such a block is no chance
agreement of many models, so it is held in place: p shuffles, and intervals draw, only those that are shown the user.
These alone carry the verdict, and over these alone rivals are compared.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from prbench import stats
from prbench._version import __version__
from prbench.errors import ConfigError
from prbench.stats import Floats, correlation
from prbench.stats.correlation import (
    COEFFICIENTS,
    Coefficient,
    CorrelationVerdict,
    ItemScores,
    LineageAgreement,
    LineageDifference,
    Rivalry,
)
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
from prbench.studies.benchmark import Benchmark, Wanted, earned, read_benchmarks
from prbench.studies.matched import LEAST_MODELS, CorrelateConfig, Matched, match
from prbench.studies.study import read_study

PRIMARY: Coefficient = "spearman"


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
    main = _only(read_benchmarks(benchmark))
    rivals = read_benchmarks(baseline)
    matched = [match(study, path, main, options.context) for study, path in studies]
    found = [_study(one, rivals, options) for one in matched]
    return Correlated(
        prbench=__version__,
        benchmark=BenchmarkTold(suite=main.suite, split=main.split, fingerprints=tuple(main.fingerprints)),
        primary=PRIMARY,
        options=options.model_dump(),
        studies=tuple(found if options.describe else _judged(found)),
        models_needed={str(rho): needed for rho, needed in correlation.power_table().items()},
    )


def _only(benchmarks: Sequence[Benchmark]) -> Benchmark:
    if len(benchmarks) != 1:
        listed = ", ".join(repr(found.label) for found in benchmarks) or "none"
        raise ConfigError(
            f"--benchmark takes the runs of one suite and split; these are of {len(benchmarks)}: {listed}",
            hint="rival benchmarks go to --baseline",
        )
    return benchmarks[0]


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
        **_lineages(name, matched, options),
    )


def _lineages(name: Coefficient, matched: Matched, options: CorrelateConfig) -> dict[str, LineageAgreement]:
    """Correlate over lineages, where the models come in some."""
    kinds = matched.lineages
    if kinds is None:
        return {}
    x, y = matched.benchmark.items.means, matched.downstream
    draws, how = matched.draws(options, name, "lineages"), {"resamples": options.resamples}
    return {"lineages": correlation.over_lineages(name, x, y, kinds, draws, permutations=options.permutations, **how)}


def _rival(rival: Benchmark, matched: Matched, options: CorrelateConfig) -> RivalAgreement:
    """Correlate the same models and outcome with another benchmark in the place of ours."""
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
        **_rival_lineages(matched.only([known[at] for at in free]), theirs.items, free, rival, options),
    )


def _rival_lineages(
    matched: Matched, theirs: ItemScores, free: Sequence[int], rival: Benchmark, options: CorrelateConfig
) -> dict[str, LineageDifference]:
    kinds = matched.lineages
    if kinds is None or matched.items is None:
        return {}
    scores = ItemScores(theirs.scores[free], theirs.clusters)
    draws = matched.draws(options, "lineages", *rival[:2])
    found = correlation.difference_over_lineages(
        PRIMARY, matched.benchmark.items, scores, matched.items, kinds, draws, resamples=options.resamples
    )
    return {"lineages": found}


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
    """Add verdicts to studies, corrected for how many studies and how many rivals were looked at."""
    tests = [(study.shown_the_user or study).coefficients[PRIMARY] for study in studies]
    corrected = _holm([_p(test) for test in tests])
    rivals = iter(_judged_rivals([rival for study in studies for rival in study.rivals]))
    return [
        study.model_copy(
            update={
                "rivals": tuple(next(rivals) for _ in study.rivals),
                "verdict": _corrected(correlation.verdict(_interval(test), p), p),
            }
        )
        for study, test, p in zip(studies, tests, corrected, strict=True)
    ]


def _p(test: Agreement) -> float | None:
    """The larger of the two p where models come in lineages: neither shuffled models nor drawn lineages may object."""
    known = [test.permutation.two_sided, test.lineages.p if test.lineages else None]
    return max((p for p in known if p is not None), default=None)


def _interval(test: Agreement) -> stats.Estimate:
    return test.lineages.value if test.lineages else test.over_models


def _judged_rivals(rivals: Sequence[RivalAgreement]) -> list[RivalAgreement]:
    tests = [
        (rival.lineages.difference, rival.lineages.p)
        if rival.lineages
        else (rival.coefficients[PRIMARY].difference, rival.coefficients[PRIMARY].swap_p)
        for rival in rivals
    ]
    corrected = _holm([p for _, p in tests])
    return [
        rival.model_copy(update={"verdict": _corrected(correlation.rivalry_verdict(difference, p), p)})
        for rival, (difference, _), p in zip(rivals, tests, corrected, strict=True)
    ]


def _corrected(said: CorrelationVerdict, p: float | None) -> CorrectedVerdict:
    return CorrectedVerdict(significant=said.significant, sentence=said.sentence, p_corrected=p)


def _holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Corrected p-values in their order; one that is undefined stays so and does not count."""
    known = [p for p in p_values if p is not None]
    adjusted = iter(stats.holm(known).tolist())
    return [None if p is None else next(adjusted) for p in p_values]
