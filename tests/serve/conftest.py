"""A reward server in this process, for any model, over the small mirrored suite."""

from contextlib import contextmanager

import httpx
import pytest

from prbench.data import Suite
from prbench.models.python import wrap
from prbench.serve import ServeConfig, serving
from serve_models import Faulty
from small_suite import mirrored


@pytest.fixture(scope="session")
def suite():
    return Suite.of(mirrored(couples=3, questions=4), name="small")


@contextmanager
def started(folder, pairs, model, **settings):
    settings = {"context": "profile", "port": 0, "state": folder / "judged.jsonl", **settings}
    served = wrap(model)
    with (
        serving(ServeConfig.of(model=served.card.address, **settings), model=served, suite=pairs) as url,
        httpx.Client(base_url=url, timeout=30) as client,
    ):
        yield client


@pytest.fixture
def start(tmp_path, suite):
    """`with start(model, context=…) as client`: an HTTP client of a server that has the model."""
    return lambda model, **settings: started(tmp_path, settings.pop("suite", suite), model, **settings)


@pytest.fixture(scope="module")
def faulty(tmp_path_factory, suite):
    """A client of a server that several tests share: its model goes wrong where the answer says so."""
    with started(tmp_path_factory.mktemp("faulty"), suite, Faulty(), max_text=200_000) as client:
        yield client


@pytest.fixture
def ask():
    """Post items, get status and entries."""

    def ask(client, *items, **more):
        response = client.post("/score", json={"items": list(items)}, **more)
        return response.status_code, response.json().get("items")

    return ask
