"""Send a finished run to an experiment tracker: its settings, its numbers, `config.toml` and `result.json`.

Texts of users and answers stay here. Where a run goes is set as the tracker's own users set it (`WANDB_PROJECT`,
`WANDB_MODE`, `MLFLOW_TRACKING_URI`, `MLFLOW_EXPERIMENT_NAME`); project and experiment are `prbench` otherwise. A run
that is sent twice is still one run there.
"""

import importlib.util
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from prbench.config import digest
from prbench.errors import ConfigError, MissingExtraError, PrbenchError, RunError, did_you_mean
from prbench.report.command import reproduction
from prbench.report.finished import Finished, open_finished
from prbench.results import Result, verdict
from prbench.stats import Estimate

_FILES = ("config.toml", "result.json")


def track(folder: Path | str, to: str) -> str:
    """Send a finished run to a tracker.

    Args:
        folder: A run folder; one that is not finished or does not verify is refused.
        to: `wandb` or `mlflow`.

    Returns:
        Where it can be found there.

    Raises:
        RunError: If the tracker does not take it.
    """
    check_tracker(to)
    run = open_finished(folder)
    try:
        return TRACKERS[to](run)
    except PrbenchError:
        raise
    except Exception as error:  # whatever a tracker raises: no key, no server, no disk
        reason = (str(error).strip().splitlines() or ["no reason given"])[0]
        raise RunError(
            f"{to} did not take the run: {type(error).__name__}: {reason}",
            hint=f"the run is kept in {str(folder)!r}; once {to} is set up, the same command sends it and asks nothing",
        ) from error


def check_tracker(to: str) -> None:
    """Refuse a tracker that is unknown or not installed, before anything is asked."""
    if to not in TRACKERS:
        raise ConfigError(f"unknown tracker {to!r}", hint=did_you_mean(to, TRACKERS))
    found = importlib.util.find_spec(to)
    if found is None or found.origin is None:  # wandb leaves folders of this name, which are no package
        raise MissingExtraError(f"--track {to}", to)


def _to_wandb(run: Finished) -> str:
    import wandb

    with wandb.init(
        project=os.environ.get("WANDB_PROJECT") or "prbench",
        id=_identity(run),
        name=_name(run),
        config={**_settings(run), **_facts(run)},
        resume="allow",
        settings=wandb.Settings(silent=True, console="off"),
    ) as there:
        there.summary.update(numbers(run.result))
        for name in _FILES:
            shutil.copy(run.loaded.path / name, there.dir)  # whatever lies there is uploaded
        return f"{there.sync_dir} (`wandb sync` uploads it)" if there.offline else str(there.url)


def _to_mlflow(run: Finished) -> str:
    import mlflow

    experiment = mlflow.set_experiment(os.environ.get("MLFLOW_EXPERIMENT_NAME") or "prbench")
    same = f"tags.`prbench.run` = '{_identity(run)}'"
    known = mlflow.search_runs([experiment.experiment_id], filter_string=same, output_format="list")
    name = None if known else _name(run)
    with mlflow.start_run(run_id=known[0].info.run_id if known else None, run_name=name) as there:
        mlflow.set_tags({"prbench.run": _identity(run), **_facts(run)})
        if not known:
            mlflow.log_params(_settings(run))
            mlflow.log_metrics(numbers(run.result))
            for file in _FILES:
                mlflow.log_artifact(str(run.loaded.path / file))
    return f"{mlflow.get_tracking_uri()} experiment {experiment.name!r}, run {there.info.run_id}"


TRACKERS: dict[str, Callable[[Finished], str]] = {"mlflow": _to_mlflow, "wandb": _to_wandb}
"""Functions that send a run, by the tracker's name."""


def numbers(result: Result) -> dict[str, float]:
    """Every number that a tracker is told, by name: accuracies with interval and n, effects, what was spent.

    Example:
        >>> from prbench import evaluate
        >>> found = numbers(evaluate(lambda answer: -len(answer), "mirror", contexts=["none"], limit=40))
        >>> found["none/accuracy"], found["none/accuracy_n"], found["baseline/random/accuracy"]
        (0.5, 40.0, 0.5)
    """
    found: dict[str, float] = {}
    for name, context in result.contexts.items():
        found |= _estimate(f"{_plain(name)}/accuracy", context.accuracy)
        found |= _estimate(f"{_plain(name)}/without_verdict", context.without_verdict)
    for key in type(result.effects).model_fields:
        if (effect := getattr(result.effects, key)) is not None:
            found |= _estimate(f"effect/{key}", effect)
    for name, baseline in result.baselines.items():
        found |= _estimate(f"baseline/{_plain(name)}/accuracy", baseline.accuracy)
    usage = result.usage
    found |= {
        "usage/tokens_in": usage.tokens_in,
        "usage/tokens_out": usage.tokens_out,
        "usage/cost_usd": usage.cost_usd,
    }
    return {name: float(value) for name, value in found.items()}


def _estimate(name: str, estimate: Estimate) -> dict[str, float]:
    values = {"": estimate.value, "_low": estimate.low, "_high": estimate.high, "_n": estimate.n}
    return {f"{name}{part}": value for part, value in values.items() if value is not None}


def _plain(name: str) -> str:
    """A context's name with letters that every tracker takes.

    Example:
        >>> _plain("retrieved@5"), _plain("profile+plan")
        ('retrieved-5', 'profile-plan')
    """
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)


def _settings(run: Finished) -> dict[str, Any]:
    """The settings of a run, one level deep, as text where they are lists."""
    return dict(_flat("", run.loaded.config.model_dump(mode="json")))


def _flat(prefix: str, data: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in data.items():
        if isinstance(value, dict):
            yield from _flat(f"{prefix}{_plain(name)}.", value)
        elif value is not None:
            yield f"{prefix}{_plain(name)}", ",".join(map(str, value)) if isinstance(value, list) else value


def _facts(run: Finished) -> dict[str, str]:
    """Return what else tells this run from others: verdict, suite, revision, and the command that makes it again."""
    found = verdict(run.result)
    dataset, card = run.loaded.facts.dataset, run.loaded.facts.card
    return {
        "prbench.grade": str(found.grade),
        "prbench.verdict": found.sentence,
        "prbench.version": run.result.prbench,
        "prbench.suite": dataset.full_name,
        "prbench.suite_fingerprint": dataset.fingerprint,
        "prbench.model_revision": card.revision,
        "prbench.command": reproduction(run.loaded.config),
    }


def _name(run: Finished) -> str:
    return f"{run.loaded.facts.card.address} on {run.loaded.facts.dataset.full_name}"


def _identity(run: Finished) -> str:
    """Return an identity that is the same for the same settings and answers, wherever the folder lies."""
    return digest([run.loaded.config.identity(), run.records_fingerprint])[:16]
