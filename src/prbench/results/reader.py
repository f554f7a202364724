"""Reading a run's folder: its settings, facts, pairs, plans and result, and the result computed again."""

from collections.abc import Iterable

from prbench.config import RunConfig
from prbench.data import DatasetRecord
from prbench.errors import RunError
from prbench.files import check_model, checked
from prbench.plan import HeldPlans, Plan
from prbench.results.compute import BaselineScore, BaselineScores, RunFacts, compute_result
from prbench.results.folder import RunFolder
from prbench.results.result import Result
from prbench.results.rows import PairRow, PairRows
from prbench.types import Record

QUALITY = "plan_quality.json"
"""File of the aspects that a run's plans were found to match."""


def read_settings(folder: RunFolder) -> RunConfig:
    """The configuration of a run; one that was kept before the shipped suites had versions was on the first."""
    data = {key: value for key, value in folder.read_config().items() if key != "digest"}
    if data.get("suite") in ("mirror", "generic"):
        data["suite"] += "@1"
    hint = "give this run a new folder with -o"
    return check_model(data, RunConfig, folder.path / "config.toml", raises=RunError, hint=hint)


def check_versions(suites: Iterable[DatasetRecord]) -> None:
    """Refuse to set runs of different versions of one suite against each other.

    Raises:
        RunError: That names both versions.
    """
    versions: dict[str, DatasetRecord] = {}
    for suite in suites:
        plain = suite.full_name.partition("@")[0]
        first = versions.setdefault(plain, suite) if suite.version else suite
        if first.version != suite.version:
            raise RunError(
                f"the runs are on different versions of a suite, {first.full_name} and {suite.full_name}",
                hint=f"compare runs on one version: `prbench run --suite {suite.full_name} …`",
            )


def read_facts(folder: RunFolder) -> RunFacts:
    """Read the facts that a result needs besides rows and records."""
    return folder.read_model("run.json", RunFacts)


def read_rows(folder: RunFolder) -> PairRows:
    """The pairs of a run, without their texts."""
    return PairRows(folder.lines("pairs.jsonl", PairRow))


def read_baselines(folder: RunFolder) -> BaselineScores:
    """Read the scores of the content-blind baselines."""
    return BaselineScores(folder.lines("baselines.jsonl", BaselineScore))


def read_plans(folder: RunFolder) -> dict[str, Plan]:
    """The plans of a run, by key."""
    return {plan.key: plan for plan in folder.lines("plans.jsonl", Plan)}


def read_quality(folder: RunFolder) -> HeldPlans | None:
    """Read what plans were found to match; None where that was not measured."""
    if not (folder.path / QUALITY).exists():
        return None
    return folder.read_model(QUALITY, HeldPlans)


def read_result(folder: RunFolder) -> Result:
    """The result of a finished run."""
    data = folder.read_json("result.json")
    hint = "the command that made the run computes it anew from its records, without a call"
    with checked(folder.path / "result.json", raises=RunError, hint=hint):
        return Result.from_json(data)


def recompute(
    folder: RunFolder,
    records: Iterable[Record] | None = None,
    rows: PairRows | None = None,
    baselines: BaselineScores | None = None,
) -> Result:
    """All aggregates of a run from the files in its folder.

    Args:
        folder: The run.
        records: Those in its file, where they were read before; so with the others.
        rows: Its pairs.
        baselines: Scores of the baselines.
    """
    return compute_result(
        read_settings(folder),
        read_facts(folder),
        read_rows(folder) if rows is None else rows,
        folder.records() if records is None else records,
        read_baselines(folder) if baselines is None else baselines,
        read_plans(folder).values(),
        read_quality(folder),
    )
