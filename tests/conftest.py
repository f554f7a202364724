"""Fixtures that several rooms share. No test may reach the hub, so it is switched off before anything can import it."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import campaigns
import tiny_models

collect_ignore_glob = ["integrations/*_ask.py", "integrations/verl_config.py", "integrations/trl_step.py"]
"""Programs that trainers' own environments run; they import what is not here."""


@pytest.fixture(scope="session")
def tiny_reward_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved Llama-style sequence classifier: chat template, BOS, no pad token."""
    return tiny_models.save_reward_model(tmp_path_factory.mktemp("tiny_reward_model"))


@pytest.fixture(scope="session")
def tiny_policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved tiny causal language model."""
    return tiny_models.save_causal_model(tmp_path_factory.mktemp("tiny_policy"), seed=1)


@pytest.fixture(scope="session")
def tiny_reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another tiny causal language model, with other weights."""
    return tiny_models.save_causal_model(tmp_path_factory.mktemp("tiny_reference"), seed=2)


@pytest.fixture
def attack(
    record_property: Callable[[str, object], None],
) -> Callable[[str], AbstractContextManager[campaigns.Campaign]]:
    """`with attack("hard kills: run") as campaign`: counted in the table at the end."""
    return partial(campaigns.campaign, note=record_property)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the table of all attacks."""
    rows = campaigns.gathered(report for reports in terminalreporter.stats.values() for report in reports)
    if rows:
        from prbench.show.table import render

        terminalreporter.write_sep("=", "attacks")
        terminalreporter.write_line(render([campaigns.table(rows)], "md"))
