"""Fixtures that several rooms share. No test may reach the hub, so it is switched off before anything can import it."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from pathlib import Path

import pytest

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
