"""Operations are counted from a model's weights, the machine's peak is measured once, and unknown stays unknown."""

from typing import Any

import pytest
import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaForCausalLM,
    LlamaForSequenceClassification,
    MambaConfig,
    MambaForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
)

import tiny_models
from prbench.models.effort import Effort
from prbench.models.local import flops
from prbench.models.local.flops import Arithmetic, causal_keys, matmul_peak

LAYER = 32 * 32 * 2 + 32 * 16 * 2 + 3 * 32 * 64 + 2 * 32
"""Queries and output, keys and values, feed-forward, norms."""


@pytest.mark.parametrize("tied", [True, False])
def test_a_language_model_pays_for_its_head_only_where_it_is_read(tied):
    found = Arithmetic.of(LlamaForCausalLM(tiny_models.llama_config(24, tie_word_embeddings=tied)))
    assert found == (2 * (2 * LAYER + 32), 4 * 2 * 32, 2 * 24 * 32)


def test_a_classifier_has_a_small_head():
    found = Arithmetic.of(LlamaForSequenceClassification(tiny_models.llama_config(24, num_labels=2, pad_token_id=1)))
    assert found == (2 * (2 * LAYER + 32), 4 * 2 * 32, 2 * 2 * 32)


def test_tables_of_positions_are_looked_up_and_not_multiplied():
    small, large = (
        Arithmetic.of(GPT2LMHeadModel(GPT2Config(vocab_size=24, n_positions=size, n_embd=32, n_layer=2, n_head=4)))
        for size in (64, 512)
    )
    assert small == large


def test_queries_wider_than_the_model():
    assert Arithmetic.of(LlamaForCausalLM(tiny_models.llama_config(24, head_dim=16))).per_key == 4 * 2 * 64


def test_encoders_are_counted():
    config = BertConfig(
        vocab_size=24, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_labels=1
    )
    found = Arithmetic.of(BertForSequenceClassification(config))
    assert found.per_key == 4 * 2 * 32
    assert found.per_row == 2 * (32 + 1)


def experts() -> Any:
    return MixtralForCausalLM(
        MixtralConfig(
            vocab_size=24,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            num_local_experts=4,
        )
    )


def without_attention() -> Any:
    return MambaForCausalLM(MambaConfig(vocab_size=24, hidden_size=32, num_hidden_layers=2))


@pytest.mark.parametrize("build", [experts, without_attention])
def test_what_cannot_be_counted_is_not(build):
    assert Arithmetic.of(build()) is None


@pytest.mark.parametrize("start", [0, 3])
def test_keys_are_summed_token_by_token(start):
    assert causal_keys(start, 9) == sum(position + 1 for position in range(start, 9))


def test_the_peak_is_measured_once_per_precision_and_number_of_threads(monkeypatch):
    model = LlamaForCausalLM(tiny_models.llama_config(24))
    asked: list[float] = []

    def clock() -> float:
        asked.append(0.05 * len(asked))
        return asked[-1]

    first = matmul_peak(model, clock)
    assert first == pytest.approx(2 * 1024**3 / 0.05)
    before = len(asked)
    assert matmul_peak(model, clock) == first
    assert len(asked) == before
    matmul_peak(model.to(torch.float64), clock)
    assert len(asked) > before


def test_the_peak_of_this_machine_is_not_absurd():
    """Above what plain Python adds up, below what any processor does."""
    model = LlamaForCausalLM(tiny_models.llama_config(24))
    assert 1e8 < matmul_peak(model) < 1e15
    assert flops._measured_peak.cache_info().currsize >= 1


def test_rates_and_shares():
    effort = Effort(naive_tokens=100, computed_tokens=40, flops=6e9, seconds=2.0)
    assert (effort.tokens_per_s, effort.flops_per_s, effort.share_of(1e10)) == (20.0, 3e9, 0.3)
    assert effort - effort == Effort()
    assert effort + Effort() == effort


@pytest.mark.parametrize("effort", [Effort(), Effort(10, 10), Effort(10, 10, seconds=1.0), Effort(10, 10, flops=1e9)])
def test_what_is_unknown_has_no_share(effort):
    assert effort.flops_per_s is None
    assert effort.share_of(1e10) is None
    assert Effort(10, 10, 1e9, 1.0).share_of(None) is None
