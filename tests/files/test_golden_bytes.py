"""What is written is what has always been written: run folders, suites and cache entries, byte for byte.

A changed byte here means that older folders do not continue and that paid calls are asked again. Parquet is left out,
as its bytes depend on the library's version, and so is `config.toml`, which grows with every new option.
"""

import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from prbench import evaluate
from prbench.data import Suite, write_pairs
from small_suite import Spy, SpyComparer, mirrored

RUNS = {
    "rater": {
        "baselines.jsonl": "e8664f28175da3c22026b07146dbf96c",
        "dataset.json": "4033a56b7086d84371c280e254f20ee1",
        "pairs.jsonl": "bef67479833642ad19c49391ac4daa80",
        "records.jsonl": "63bb2e8c1f002ac9c82f4a1ab7afc92e",
        "run.json": "0a53da9c7be838bb42020bea4c40c88b",
    },
    "comparer": {
        "baselines.jsonl": "e8664f28175da3c22026b07146dbf96c",
        "dataset.json": "4033a56b7086d84371c280e254f20ee1",
        "pairs.jsonl": "bef67479833642ad19c49391ac4daa80",
        "records.jsonl": "d5c360d5752190b0dd4ea761eb71f389",
        "run.json": "c14b61e8501fc3537a39e7fcb55f5b94",
    },
}
RESULTS = {"rater": "ef65ca65903b81e73c5345e3fcaff164", "comparer": "2b2640104940108f7ba6ae092e125ba8"}
SUITES = {
    "suite.csv": "34aa42ff93003a002252fb2fca1ac1ce",
    "suite.jsonl": "20fbf52504df7571d2a4b2b37b74587c",
    "suite.jsonl.gz": "5ab0d9ec6017221bd394778f22efca0f",
}
CACHE = "dff86798d97a0c74814363e602df96c8"


def hash_of(data: bytes) -> str:
    """Enough of a SHA-256 to tell contents apart."""
    return hashlib.sha256(data).hexdigest()[:32]


@pytest.fixture
def suite() -> Suite:
    return Suite.of(mirrored(couples=2, questions=3), name="golden")


def test_runs_and_cache_entries(suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRBENCH_CACHE", str(tmp_path / "cache"))
    for name, model in (("rater", Spy()), ("comparer", SpyComparer(0.5))):
        contexts = ["none", "profile", "other", "oracle"]
        evaluate(model, suite, contexts=contexts, resamples=100, out=tmp_path / name)
        assert {file: hash_of((tmp_path / name / file).read_bytes()) for file in RUNS[name]} == RUNS[name]
        result = json.loads((tmp_path / name / "result.json").read_text())
        del result["result"]["timing"], result["result"]["prbench"]
        assert hash_of(json.dumps(result).encode()) == RESULTS[name]
    with closing(sqlite3.connect(tmp_path / "cache" / "calls.sqlite")) as database:
        rows = sorted(database.execute("SELECT key, outcome FROM calls").fetchall())
    assert hash_of(repr(rows).encode()) == CACHE


@pytest.mark.parametrize("name", SUITES)
def test_suites(suite: Suite, tmp_path: Path, name: str) -> None:
    assert hash_of(write_pairs(suite, tmp_path / name).read_bytes()) == SUITES[name]
