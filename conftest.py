"""For every test and doctest: its own cache of calls, so that none touches the developer's."""

import pytest


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRBENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
