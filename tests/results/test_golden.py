"""Results are digit for digit what they were: runs kept as golden files, made before results were typed."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from golden_runs import RUNS
from prbench.results import METRICS, Result, RunFolder, read_result, recompute, verify

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(autouse=True)
def _metrics_of_then(monkeypatch):
    """The golden runs were made when `strict` was the only metric that the table computes."""
    for name, metric in METRICS.copy().items():
        if metric.compute is not None and name != "strict":
            monkeypatch.delitem(METRICS, name)


def rounded(value: Any) -> Any:
    """The same with floats of twelve digits: in the last ones, sums differ between processors."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return float(f"{value:.12g}") if isinstance(value, float) else value


def text_of(result: Result) -> str:
    """A result as it is written, whatever version computed it."""
    data = result.to_json()
    data["result"]["prbench"] = "VERSION"
    return json.dumps(rounded(data), ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def stored(folder: Path) -> str:
    """`result.json` as it lies there, whatever version computed it."""
    data = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    data["result"]["prbench"] = "VERSION"
    return json.dumps(rounded(data), ensure_ascii=False, indent=2, allow_nan=False) + "\n"


@pytest.mark.parametrize("name", RUNS)
def test_a_result_computed_again_has_the_same_bytes(name):
    folder = RunFolder(GOLDEN / name)
    timing = read_result(folder).timing
    assert text_of(recompute(folder).model_copy(update={"timing": timing})) == stored(folder.path)


@pytest.mark.parametrize("name", RUNS)
def test_a_result_that_is_read_and_written_has_the_same_bytes(name):
    assert text_of(read_result(RunFolder(GOLDEN / name))) == stored(GOLDEN / name)


@pytest.mark.parametrize("name", RUNS)
def test_an_old_run_verifies(name):
    found = verify(GOLDEN / name)
    assert not found.mismatches
    assert found.numbers > 50


@pytest.mark.parametrize("name", RUNS)
def test_the_same_run_made_today_has_the_same_result(name, tmp_path):
    RUNS[name](RunFolder(tmp_path / name))
    made, golden = (json.loads(stored(folder / name)) for folder in (tmp_path, GOLDEN))
    assert made["result"].pop("timing").keys() == golden["result"].pop("timing").keys()
    assert json.dumps(made) == json.dumps(golden)
    keys = [
        {call.key for record in RunFolder(folder / name).records().values() for call in record.calls}
        for folder in (tmp_path, GOLDEN)
    ]
    assert keys[0] == keys[1]
    one, two = (RunFolder(folder / name).read_config()["digest"] for folder in (tmp_path, GOLDEN))
    assert one == two  # so the same command continues the old run
    for file in ("run.json", "dataset.json", "pairs.jsonl", "baselines.jsonl"):
        assert (tmp_path / name / file).read_bytes() == (GOLDEN / name / file).read_bytes(), file


@pytest.mark.parametrize("name", RUNS)
def test_an_old_run_continues_without_a_call(name, tmp_path):
    shutil.copytree(GOLDEN / name, tmp_path / name)
    RUNS[name](RunFolder(tmp_path / name))
    before, after = (read_result(RunFolder(folder / name)) for folder in (GOLDEN, tmp_path))
    assert after.timing.calls_asked == 0
    assert after.finished == before.finished
    assert text_of(after.model_copy(update={"timing": before.timing})) == text_of(before)
