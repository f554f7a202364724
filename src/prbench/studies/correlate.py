"""Does the benchmark's ranking of reward models carry over to downstream use, and better than a rival's?

The primary endpoint is Spearman's ρ, tested once per study and corrected for their number; all other coefficients
describe. Fewer than four reward models are refused: nothing can be said of them.
"""

import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from prbench import stats
from prbench._version import __version__
from prbench.errors import ConfigError, StudyError
from prbench.stats import Clusters, correlation
from prbench.stats.arrays import Floats
from prbench.stats.correlation import COEFFICIENTS, PERMUTATIONS, Coefficient, Items
from prbench.stats.intervals import RESAMPLES
from prbench.studies.benchmark import Benchmark, Earned, Wanted, earned, gather
from prbench.studies.study import Study, read_study
from prbench.types import Context

Json = dict[str, Any]

LEAST_MODELS = 4
PRIMARY: Coefficient = "spearman"


@dataclass(frozen=True, slots=True)
class CorrelateOptions:
    """How a correlation is computed."""

    context: str = "profile"
    """Where a study does not say what a reward model was shown."""
    baseline_context: str | None = None
    """Of rival benchmarks; default: the same as the benchmark's, else `none`."""
    seed: int = 0
    resamples: int = RESAMPLES
    permutations: int = PERMUTATIONS

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
    items: Items | None
    """Per-item downstream scores, where all models have them."""
    items_left_out: int
    apart: list[str]
    unmatched: list[str]
    """In the study, but without a run on the benchmark."""


def correlate(
    benchmark: Sequence[Path],
    downstream: Sequence[Path],
    baseline: Sequence[Path] = (),
    options: CorrelateOptions | None = None,
) -> Json:
    """Correlate a benchmark with downstream studies, and compare it with rival benchmarks.

    Args:
        benchmark: Runs of reward models on one suite.
        downstream: `study.json` files or their folders.
        baseline: Runs of the same reward models on rival suites.
        options: How; default: under the profile, 2,000 resamples, 10,000 permutations.
    """
    options = options or CorrelateOptions()
    studies = [(read_study(path), str(path)) for path in downstream]  # cheap, and the likelier mistake
    if not studies:
        raise ConfigError("no downstream study is named", hint="--downstream STUDY…")
    main = _only(gather(benchmark))
    rivals = gather(baseline)
    matched = [match(study, path, main, options.context) for study, path in studies]
    found = [_study(one, rivals, options) for one in matched]
    _judge(found)
    return {
        "prbench": __version__,
        "benchmark": {"suite": main.suite, "split": main.split, "fingerprint": main.fingerprint},
        "primary": PRIMARY,
        "options": asdict(options),
        "studies": found,
        "models_needed": {str(rho): needed for rho, needed in correlation.power_table().items()},
    }


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
    items, left_out = _downstream_items(study, names)
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
        listed = ", ".join(f"{found.label!r} ({found.fingerprint[:8]})" for found in benchmarks) or "none"
        raise ConfigError(
            f"--benchmark takes the runs of one suite and split; these are of {len(benchmarks)}: {listed}",
            hint="rival benchmarks go to --baseline",
        )
    return benchmarks[0]


def _downstream_items(study: Study, names: Sequence[str]) -> tuple[Items | None, int]:
    """The scores on the items that all models have, and how many items some lack."""
    found = [study.models[name].items for name in names]
    common = sorted(set.intersection(*map(set, found)))
    if not common:
        return None, 0
    labels = [study.items.get(item) for item in common]
    units = [item if label is None else label.unit for item, label in zip(common, labels, strict=True)]
    questions = [item if label is None else label.question for item, label in zip(common, labels, strict=True)]
    scores = np.array([[items[item] for item in common] for items in found], dtype=np.float64)
    return Items(scores, Clusters.of(units, questions)), len(set.union(*map(set, found))) - len(common)


def _study(matched: Matched, rivals: Sequence[Benchmark], options: CorrelateOptions) -> Json:
    study, benchmark = matched.study, matched.benchmark.items.means
    return {
        "study": matched.path,
        "kind": study.kind,
        "suite": study.suite,
        "policy": study.policy,
        "endpoint": study.endpoint,
        "judge": study.judge.model_dump(mode="json"),
        "n": len(matched.names),
        "models": _models(matched, benchmark),
        "apart": {name: study.models[name].score.value for name in matched.apart},
        "unmatched": matched.unmatched,
        "pairs": matched.benchmark.items.clusters.n,
        "pairs_left_out": matched.benchmark.left_out,
        "items": 0 if matched.items is None else matched.items.clusters.n,
        "items_left_out": matched.items_left_out,
        "coefficients": {name: _coefficient(name, matched, options) for name in COEFFICIENTS},
        "rivals": [_rival(rival, matched, options) for rival in rivals],
    }


def _models(matched: Matched, benchmark: Floats) -> list[Json]:
    return [
        {
            "name": name,
            "address": wanted.address,
            "context": context,
            "benchmark": float(benchmark[index]),
            "downstream": float(matched.downstream[index]),
        }
        for index, (name, wanted, context) in enumerate(
            zip(matched.names, matched.wanted, matched.benchmark.contexts, strict=True)
        )
    ]


def _coefficient(name: Coefficient, matched: Matched, options: CorrelateOptions) -> Json:
    x, y = matched.benchmark.items.means, matched.downstream
    models = correlation.over_models(name, x, y, options.rng(matched.path, name, "models"), resamples=options.resamples)
    left = correlation.jackknife(name, x, y)
    test = correlation.permutation_test(
        name, x, y, options.rng(matched.path, name, "orders"), permutations=options.permutations
    )
    found: Json = {"over_models": models.to_json(), "over_items": None, "permutation": asdict(test)}
    if matched.items is not None:
        draws = options.rng(matched.path, name, "items")
        over = correlation.over_items(name, matched.benchmark.items, matched.items, draws, resamples=options.resamples)
        found["over_items"] = over.to_json()
    if name in ("spearman", "pearson"):
        found["fisher"] = correlation.fisher_interval(models.value, len(x), name=name).to_json()
    leaning = None if left.leaning is None else matched.names[left.leaning]
    values = dict(zip(matched.names, left.values, strict=True))
    found["jackknife"] = {**asdict(left), "values": values, "leaning": leaning}
    return found


def _rival(rival: Benchmark, matched: Matched, options: CorrelateOptions) -> Json:
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
    found: Json = {}
    for name in COEFFICIENTS:
        draws = options.rng(matched.path, name, "rival", rival.fingerprint, rival.split)
        versus = correlation.compare_benchmarks(
            name, x, z, y, draws, resamples=options.resamples, permutations=options.permutations
        )
        found[name] = {**asdict(versus), "difference": versus.difference.to_json()}
    return {
        "suite": rival.suite,
        "split": rival.split,
        "fingerprint": rival.fingerprint,
        "contexts": sorted(set(theirs.contexts)),
        "models": {matched.names[at]: float(score) for at, score in zip(known, z, strict=True)},
        "missing": [name for at, name in enumerate(matched.names) if at not in known],
        "coefficients": found,
        "partial": {
            name: asdict(correlation.partial_correlation(x, y, z, name=name)) for name in ("spearman", "pearson")
        },
    }


def _judge(studies: Sequence[Json]) -> None:
    """Add verdicts, corrected for how many studies and how many rivals were looked at."""
    tests = [study["coefficients"][PRIMARY] for study in studies]
    for study, test, p in zip(studies, tests, _holm([test["permutation"]["two_sided"] for test in tests]), strict=True):
        said = correlation.verdict(stats.Estimate(**test["over_models"]), p)
        study["verdict"] = {**asdict(said), "p_corrected": p}
    rivals: list[Json] = [rival for study in studies for rival in study["rivals"]]
    corrected = _holm([rival["coefficients"][PRIMARY]["swap_p"] for rival in rivals])
    for rival, p in zip(rivals, corrected, strict=True):
        said = correlation.rivalry_verdict(stats.Estimate(**rival["coefficients"][PRIMARY]["difference"]), p)
        rival["verdict"] = {**asdict(said), "p_corrected": p}


def _holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Corrected p-values in their order; one that is undefined stays so and does not count."""
    known = [p for p in p_values if p is not None]
    adjusted = iter(stats.holm(known).tolist())
    return [None if p is None else next(adjusted) for p in p_values]
