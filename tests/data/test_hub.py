"""The hub's own library on a local copy, offline, in a process of its own: it reads its settings on import."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from prbench.data import hub, load_pairs
from prbench.errors import MissingExtraError

TABLES = ("Art_and_Entertainment", "Lifestyle_and_Personal_Development", "Society_and_Culture")
CODE = """
import json, sys
from prbench.data import load, registry
from prbench.errors import DataError

prb = registry.published()["prb"]._replace(repo=sys.argv[1])
registry.published = load.published = lambda: {"prb": prb}
hub, copy = load.load_pairs("prb"), load.load_pairs("prb=" + sys.argv[1])
part = load.load_pairs("prb", split="test")
failures = []
for repo, options in [(sys.argv[1], {"split": "tests"}), ("nobody/nothing", {"revision": "abc"})]:
    prb = prb._replace(repo=repo)
    try:
        load.load_pairs("prb", **options)
    except DataError as error:
        failures.append([error.message, error.hint])
print(json.dumps({
    "hub": hub.record.model_dump(mode="json"), "copy": copy.record.fingerprint, "part": len(part), "failures": failures,
}))
"""


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    if find_spec("datasets") is None:
        pytest.skip("needs the extra 'hub'")
    folder = tmp_path_factory.mktemp("prb")
    for number, table in enumerate(TABLES):
        row = {
            "id": str(number),
            "question": f"Question {number}?",
            "profile": [{"id": "p", "category": "x", "text": f"Post {number}."}],
            "rubric_aspects": [{"aspect": "a", "evidence": "e", "reason": "r"}],
            "narrative": "hidden",
            "category": table,
            "chosen": "good",
            "rejected": "bad",
        }
        (folder / table).mkdir()
        for split in ("test", "train"):
            pq.write_table(
                pa.Table.from_pylist([{**row, "id": f"{split}{number}"}]),
                folder / table / f"{split}-00000-of-00001.parquet",
            )
    configs = [
        f"- config_name: {table}\n  data_files:\n"
        + "".join(f"  - split: {split}\n    path: {table}/{split}-*\n" for split in ("test", "train"))
        for table in TABLES
    ]
    (folder / "README.md").write_text("---\nconfigs:\n" + "".join(configs) + "---\n")
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path_factory.mktemp("cache"))}
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(folder)],
        capture_output=True,
        text=True,
        env={**os.environ, **offline},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_hub_and_a_local_copy_give_the_same_pairs(outcome):
    assert outcome["hub"]["fingerprint"] == outcome["copy"]
    assert outcome["hub"]["splits"] == {"test": 3, "train": 3}
    assert outcome["hub"]["source"].startswith("hub:")
    assert outcome["part"] == 3


def test_an_unknown_split_on_the_hub(outcome):
    message, _ = outcome["failures"][0]
    assert "tests" in message
    assert "train" in message


def test_a_hub_out_of_reach_says_what_to_do(outcome):
    message, hint = outcome["failures"][1]
    assert "'prb' cannot be loaded from nobody/nothing" in message
    assert "pass prb=DIR" in hint


@pytest.mark.parametrize("absent", ["datasets", "huggingface_hub"])
def test_without_the_extra(monkeypatch, absent):
    monkeypatch.setitem(sys.modules, absent, None)
    if absent == "datasets":
        monkeypatch.setattr(hub.HubTables, "revision", "")
    with pytest.raises(MissingExtraError) as caught:
        load_pairs("prb")
    assert "personalized-rewardbench[hub]" in caught.value.hint
