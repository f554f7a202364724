"""Evaluation results for a model's repository on the Hugging Face Hub: `.eval_results/*.yaml` and a `model-index`.

The first is what the Hub reads today (one file for each variant, here for each context, whose name is the task's id in
the benchmark's `eval.yaml`); the second is the older block for the top of a model card. A context that leaks the
standard is left out: such a number does not belong on a leaderboard.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prbench.errors import ConfigError
from prbench.files import slug, write_whole
from prbench.report.export.cards import model_name
from prbench.report.finished import Finished
from prbench.show import interval

Json = dict[str, Any]
INDEX = "model-index.yaml"
_WORDS = frozenset({"y", "yes", "n", "no", "on", "off", "true", "false", "null"})
"""Keys that older YAML readers take for values."""


def write(run: Finished, out: Path, dataset_id: str | None) -> list[Path]:
    """Write all files into the folder of a model's repository."""
    dataset = _dataset_id(run, dataset_id)
    suite = slug(run.loaded.facts.dataset.name, mark="-", keep="")
    files = {
        out / ".eval_results" / f"prbench-{suite}-{slug(name, mark='-', keep='')}.yaml": to_yaml(
            [_entry(run, dataset, name)]
        )
        for name in _contexts(run)
    }
    files[out / INDEX] = to_yaml({"model-index": [_index(run, dataset)]})
    for path, text in files.items():
        write_whole(path, text)
    return list(files)


def _dataset_id(run: Finished, given: str | None) -> str:
    source = run.loaded.facts.dataset.source
    found = given or (source.removeprefix("hub:") if source.startswith("hub:") else None)
    if found is None:
        raise ConfigError(
            f"the suite {run.loaded.facts.dataset.name!r} has no id on the hub, and results there belong to a dataset",
            hint="--dataset-id ORG/NAME says where the benchmark lives",
        )
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", found):
        raise ConfigError(f"{found!r} is no dataset id", hint="ORG/NAME, as in the dataset's address")
    return found


def _contexts(run: Finished) -> list[str]:
    contexts = run.result.contexts
    return [name for name, found in contexts.items() if not found.leaks and found.accuracy.value is not None]


def _entry(run: Finished, dataset: str, name: str) -> Json:
    result, suite = run.result, run.result.suite
    accuracy = result.contexts[name].accuracy
    pinned = {"revision": suite.revision} if suite.source.startswith("hub:") and suite.revision else {}
    notes = (
        f"prbench {result.prbench}, context {name}, accuracy in percent {interval(accuracy)} (95 %), "
        f"n = {accuracy.n}, split {result.split or 'all'}, pairs {suite.fingerprint[:16]}, "
        f"records {run.records_fingerprint[:16]}"
    )
    return {
        "dataset": {"id": dataset, "task_id": name, **pinned},
        "value": round(100 * (accuracy.value or 0.0), 4),
        "date": result.finished,
        "evaluation_framework": "prbench",
        "notes": notes,
    }


def _index(run: Finished, dataset: str) -> Json:
    suite = run.result.suite
    about = {"type": dataset, "name": f"{suite.name} (prbench)", "split": run.result.split or "all"}
    entries = []
    for name in _contexts(run):
        accuracy = run.result.contexts[name].accuracy
        metric = {
            "type": "accuracy",
            "name": f"personal accuracy, context {name}",
            "value": accuracy.value,
            "args": {"low": accuracy.low, "high": accuracy.high, "n": accuracy.n, "context": name},
        }
        entries.append(
            {
                "task": {"type": "text-ranking", "name": "personal preference"},
                "dataset": {**about, "args": {"context": name, "fingerprint": suite.fingerprint}},
                "metrics": [metric],
            }
        )
    return {"name": model_name(run), "results": entries}


def to_yaml(data: Any) -> str:
    """Plain mappings, lists and scalars as YAML; scalars are written as JSON, which YAML reads as it is.

    Example:
        >>> print(to_yaml([{"dataset": {"id": "org/name"}, "value": 50.5}]), end="")
        - dataset:
            id: "org/name"
          value: 50.5
    """
    return "\n".join(_lines(data)) + "\n"


def _lines(data: Any) -> Iterator[str]:
    if isinstance(data, dict) and data:
        for key, value in data.items():
            nested = isinstance(value, dict | list) and value
            label = json.dumps(key) if key.lower() in _WORDS else key
            yield f"{label}:" if nested else f"{label}: {json.dumps(value, ensure_ascii=False)}"
            if nested:
                yield from (f"  {line}" for line in _lines(value))
    elif isinstance(data, list) and data:
        for value in data:
            lines = list(_lines(value))
            yield f"- {lines[0]}"
            yield from (f"  {line}" for line in lines[1:])
    else:
        yield json.dumps(data, ensure_ascii=False)
