"""Attention branch by branch equals attention under one mask, and other threads do not notice it."""

import threading
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import Gemma2Config, Gemma2ForCausalLM, LlamaForCausalLM

import tiny_models
from prbench.models.local.prefix.attention import NAME, Branch, Layout, attend, attending
from prbench.models.local.prefix.forward import CausalForward
from prbench.models.local.prefix.support import choose_way

LOWEST = torch.finfo(torch.float32).min


def visible_within(size: int, random: torch.Generator | None) -> torch.Tensor:
    """Causal, or with some earlier tokens hidden, as those of a sibling are."""
    seen = torch.ones(size, size).tril().bool()
    if random is not None:
        seen &= torch.rand(size, size, generator=random) > 0.5
        seen |= torch.eye(size).bool()
    return seen


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 40),
    st.lists(st.tuples(st.integers(1, 20), st.booleans()), min_size=1, max_size=5),
    st.sampled_from([(4, 4), (4, 2), (3, 1)]),
    st.sampled_from([None, 0.7]),
    st.integers(0, 5),
)
def test_branches_equal_one_mask(prefix, sizes, heads, scale, seed):
    random = torch.Generator().manual_seed(seed)
    count = sum(size for size, _ in sizes)
    query = 3 * torch.randn(1, heads[0], count, 8, generator=random)
    key, value = (3 * torch.randn(1, heads[1], prefix + count, 8, generator=random) for _ in range(2))
    branches, blocks, start = [], [], 0
    for size, is_tree in sizes:
        seen = visible_within(size, random if is_tree else None)
        mask = torch.zeros(size, size).masked_fill(~seen, LOWEST)[None, None] if is_tree else None
        branches.append(Branch(start, start + size, mask))
        blocks.append(seen)
        start += size
    whole = torch.cat([torch.ones(count, prefix).bool(), torch.block_diag(*blocks).bool()], dim=1)
    times = heads[0] // heads[1]
    keys, values = (states.repeat_interleave(times, dim=1) for states in (key, value))
    weights = query @ keys.transpose(2, 3) * (scale or 8**-0.5)
    expected = weights.masked_fill(~whole, -torch.inf).softmax(-1) @ values
    found = attend(query, key, value, Layout(prefix, tuple(branches)), scale)
    torch.testing.assert_close(found.transpose(1, 2), expected, atol=3e-5, rtol=1e-5)


def llama() -> Any:
    torch.manual_seed(0)
    return LlamaForCausalLM(tiny_models.llama_config(24)).eval()


def test_the_config_is_as_it_was_also_after_an_error():
    model = llama()

    def interrupted() -> None:
        with attending(model.config, Layout(0, (Branch(0, 1),)), None):
            raise ValueError(model.config._attn_implementation)

    with pytest.raises(ValueError, match=NAME):
        interrupted()
    assert model.config._attn_implementation == "sdpa"


def test_another_thread_runs_the_same_model_as_ever():
    model = llama()
    ids, mask = torch.tensor([[3, 1, 4, 1, 5], [2, 7, 0, 0, 0]]), torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]])
    found: list[torch.Tensor] = []

    def run() -> None:
        with torch.inference_mode():
            found.append(model(ids, attention_mask=mask).logits[mask.bool()])

    run()
    with attending(model.config, Layout(0, (Branch(0, 1),)), None):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    torch.testing.assert_close(found[0], found[1])


def test_a_model_with_an_attention_of_its_own_keeps_its_mask():
    """Softcapping changes the weights and is only there in transformers' eager attention."""
    torch.manual_seed(0)
    config = Gemma2Config(
        vocab_size=24, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, head_dim=8,
        num_key_value_heads=2, layer_types=["full_attention"] * 2, attn_implementation="eager",
    )  # fmt: skip
    forward = CausalForward(Gemma2ForCausalLM(config).eval())
    assert choose_way(forward) is None
    assert not forward.by_branch


def test_a_model_that_bears_no_branches_keeps_its_mask(monkeypatch):
    model = llama()
    original = type(model.model.layers[0].self_attn).forward

    def with_sinks(self: Any, *args: Any, **fields: Any) -> Any:
        return original(self, *args, **{**fields, "s_aux": torch.zeros(4)})

    monkeypatch.setattr(type(model.model.layers[0].self_attn), "forward", with_sinks)
    forward = CausalForward(model)
    assert choose_way(forward) is None
    assert not forward.by_branch
