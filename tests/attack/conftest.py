"""Processes that attacks start and end: forked from one that has imported everything."""

import multiprocessing
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import attack_jobs
from prbench.calls.worker import THREAD_VARIABLES

FORKS = multiprocessing.get_context("forkserver")


@pytest.fixture(scope="module")
def forks() -> Iterator[Any]:
    """A process that has imported everything, and from which jobs are forked."""
    with pytest.MonkeyPatch.context() as patch:
        support = str(Path(attack_jobs.__file__).parent)
        patch.setenv("PYTHONPATH", os.pathsep.join([support, os.environ.get("PYTHONPATH", "")]))
        for variable in THREAD_VARIABLES:
            patch.setenv(variable, "1")
        FORKS.set_forkserver_preload(attack_jobs.PRELOADED)
        first = FORKS.Process(target=attack_jobs.nothing)
        first.start()
        first.join()  # so that the imports are in nobody's time
        yield FORKS
