"""Suites on disk for planted models, and a cache of their own."""

import pytest

import planted_models
from prbench.data import write_pairs
from small_suite import mirrored


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("PRBENCH_CACHE", str(tmp_path / "cache"))
    planted_models.CALLS.clear()


@pytest.fixture(scope="session")
def suites(tmp_path_factory):
    """A mirrored suite and a generic one."""
    folder = tmp_path_factory.mktemp("suites")
    write_pairs(mirrored(8, 12), folder / "pairs.jsonl")
    write_pairs(planted_models.generic_pairs(), folder / "generic.jsonl")
    return folder


@pytest.fixture
def values(suites):
    """What is common to all scorecards here."""
    return {
        "suite": str(suites / "pairs.jsonl"),
        "generic": str(suites / "generic.jsonl"),
        "resamples": 100,
        "latency_pairs": 0,
    }
