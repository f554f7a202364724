"""The door of the room: what it shows, and what walking in does not load."""

import subprocess
import sys

import numpy as np
import pytest

import prbench.stats
from prbench.stats import Clusters, mean_interval


def test_the_public_names_exist():
    assert all(hasattr(prbench.stats, name) for name in prbench.stats.__all__)


def test_importing_the_room_does_not_load_scipy():
    code = "import sys, prbench.stats; print([name for name in sys.modules if name.startswith('scipy')])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


def test_draws_come_from_the_given_generator_only():
    clusters, values = Clusters.of(range(40), range(40)), np.arange(40) % 2
    before = np.random.get_state()
    estimates = [mean_interval(values, clusters, np.random.default_rng(seed)) for seed in (3, 3, 4)]
    after = np.random.get_state()
    assert before[2] == after[2]
    assert (before[1] == after[1]).all()
    assert estimates[0] == estimates[1] != estimates[2]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, float("nan")], "1 values that are not finite"),
        ([1.0], "1 values where 2 are needed"),
        ([[1.0, 0.0]], "one-dimensional"),
    ],
)
def test_bad_input_is_named(values, message):
    with pytest.raises(ValueError, match=message):
        mean_interval(values, Clusters.of("ab", "xy"), np.random.default_rng(0))
