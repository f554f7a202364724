"""Shared prefixes give the same numbers as one prompt at a time, for any tree, any budget, any kind of position."""

import itertools
from functools import cache
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    GPT2Config,
    GPT2ForSequenceClassification,
    GPT2LMHeadModel,
    LlamaForCausalLM,
    LlamaForSequenceClassification,
)

import tiny_models
from prbench.models.local.prefix import LogitRequest, PrefixScorer, last_logits, log_likelihood
from prbench.models.local.prefix.plan import Cost

VOCABULARY = 24
KINDS = ["llama classifier", "gpt2 classifier", "llama", "gpt2"]


@cache
def model(kind: str) -> Any:
    torch.manual_seed(3)
    llama = tiny_models.llama_config(VOCABULARY, pad_token_id=1, num_labels=2)
    gpt2 = GPT2Config(
        vocab_size=VOCABULARY, n_positions=512, n_embd=32, n_layer=2, n_head=4, initializer_range=0.3,
        pad_token_id=1, bos_token_id=0, eos_token_id=1, num_labels=2,
    )  # fmt: skip
    made = {
        "llama classifier": lambda: LlamaForSequenceClassification(llama),
        "llama": lambda: LlamaForCausalLM(llama),
        "gpt2 classifier": lambda: GPT2ForSequenceClassification(gpt2),
        "gpt2": lambda: GPT2LMHeadModel(gpt2),
    }
    return made[kind]().eval()


def ids_of(lengths: tuple[int, int]) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, VOCABULARY - 1), min_size=lengths[0], max_size=lengths[1])


@st.composite
def trees(draw: st.DrawFn) -> list[list[int]]:
    """Sequences that share beginnings to any depth: each new one continues a cut of an earlier one."""
    sequences = [draw(ids_of((1, 30)))]
    for _ in range(draw(st.integers(0, 9))):
        stem = draw(st.sampled_from(sequences))
        cut = draw(st.integers(0, len(stem)))
        sequences.append((stem[:cut] + draw(ids_of((0, 12)))) or [draw(st.integers(0, VOCABULARY - 1))])
    return sequences


BUDGETS = st.sampled_from([1, 7, 40, 1000])
COSTS = [
    None,
    Cost(per_key=1e-9, per_pass=1e-9),  # every shared token is worth a pass of its own
    Cost(per_key=1e-9, per_pass=1e9),  # nothing is
    Cost(per_key=0.5, per_pass=1.0),
    Cost(per_key=0.5, per_pass=1.0, siblings=False),
]


def scorer(kind: str, budget: int, cost: Cost | None = None, *, by_branch: bool = True, **options: Any) -> PrefixScorer:
    made = PrefixScorer(model(kind), batch_tokens=budget, pack_tokens=budget, **options)
    assert made.note is None
    assert made._forward.by_branch or not options.get("shared", True)
    made._forward.by_branch = by_branch
    made._cost = cost or made._cost
    return made


def values(made: PrefixScorer, requests: list[LogitRequest]) -> list[tuple[float, ...]]:
    readings = list(made.read(requests))
    assert sorted(reading.request for reading in readings) == list(range(len(requests)))
    assert all(reading.values is not None for reading in readings)
    return [reading.values for reading in sorted(readings)]


def flat(rows: list[tuple[float, ...]]) -> list[float]:
    return list(itertools.chain.from_iterable(rows))


def alone(kind: str, ids: list[int]) -> torch.Tensor:
    """Logits after every token, from one sequence by itself; the classifier's own pooling would skip its pads."""
    network = model(kind)
    with torch.inference_mode():
        if "classifier" in kind:
            return network.score(network.base_model(torch.tensor([ids])).last_hidden_state)[0]
        return network(torch.tensor([ids])).logits[0]


@settings(deadline=None, max_examples=40)
@given(trees(), st.sampled_from(KINDS), BUDGETS, st.sampled_from(COSTS), st.booleans())
def test_last_logits_equal_those_of_each_sequence_alone(sequences, kind, budget, cost, by_branch):
    found = values(scorer(kind, budget, cost, by_branch=by_branch), [last_logits(ids, [0, 1]) for ids in sequences])
    expected = [tuple(alone(kind, ids)[-1, :2].tolist()) for ids in sequences]
    assert flat(found) == pytest.approx(flat(expected), abs=1e-4)


@settings(deadline=None, max_examples=40)
@given(trees(), st.sampled_from(["llama", "gpt2"]), BUDGETS, st.sampled_from(COSTS), st.booleans(), st.data())
def test_log_likelihoods_equal_those_of_each_sequence_alone(sequences, kind, budget, cost, by_branch, data):
    starts = [data.draw(st.integers(0, len(ids))) for ids in sequences]
    requests = [log_likelihood(ids, start) for ids, start in zip(sequences, starts, strict=True)]
    found = values(scorer(kind, budget, cost, by_branch=by_branch), requests)
    for ids, start, row in zip(sequences, starts, found, strict=True):
        logs = alone(kind, ids).log_softmax(-1)
        expected = [float(logs[place - 1, ids[place]]) for place in range(max(start, 1), len(ids))]
        assert list(row) == pytest.approx(expected, abs=1e-4)


@settings(deadline=None, max_examples=15)
@given(trees(), st.sampled_from(KINDS))
def test_running_in_full_gives_the_same(sequences, kind):
    requests = [last_logits(ids, [0, 1]) for ids in sequences]
    full = scorer(kind, 50, shared=False)
    assert flat(values(full, requests)) == pytest.approx(flat(values(scorer(kind, 50), requests)), abs=1e-4)
    assert full.effort.computed_tokens == full.effort.naive_tokens == sum(len(ids) for ids in sequences)


@settings(deadline=None, max_examples=30)
@given(trees(), st.sampled_from([7, 1000]))
def test_every_distinct_token_is_computed_once_where_passes_cost_nothing(sequences, budget):
    made = scorer("llama", budget, COSTS[1])
    values(made, [last_logits(ids, [0]) for ids in sequences])
    distinct = {tuple(ids[: end + 1]) for ids in sequences for end in range(len(ids))}
    assert made.effort.naive_tokens == sum(len(ids) for ids in sequences)
    assert made.effort.computed_tokens == len(distinct)


def crowd(count: int = 6, shared: int = 64) -> list[LogitRequest]:
    stem = [(7 * place) % VOCABULARY for place in range(shared)]
    return [last_logits(stem + [count + index] * (20 + index), [0, 1]) for index in range(count)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("memory", [32, 70, 300])
def test_out_of_memory_makes_passes_smaller_until_they_fit(monkeypatch, kind, memory):
    made, requests = scorer(kind, 1000, COSTS[1]), crowd()
    expected = flat(values(made, requests))
    passes = limit_memory(monkeypatch, made, memory)
    assert flat(values(made, requests)) == pytest.approx(expected, abs=1e-4)
    assert max(passes) <= memory


@pytest.mark.parametrize("cost", COSTS)
def test_what_does_not_fit_at_all_fails_alone(monkeypatch, cost):
    made, requests = scorer("llama", 1000, cost), [*crowd(), last_logits([5, 6], [0, 1])]
    limit_memory(monkeypatch, made, 15)
    readings = {reading.request: reading.values for reading in made.read(requests)}
    assert [index for index, found in readings.items() if found is not None] == [6]
    assert readings[6] == pytest.approx(alone("llama", [5, 6])[-1, :2].tolist(), abs=1e-4)


def test_other_errors_keep_their_traceback(monkeypatch):
    made = scorer("llama", 1000, COSTS[1])

    def broken(*_: Any) -> Any:
        raise RuntimeError("shapes do not match")

    monkeypatch.setattr(made._forward, "packed", broken)
    with pytest.raises(RuntimeError, match="shapes"):
        list(made.read(crowd()))


def limit_memory(monkeypatch: pytest.MonkeyPatch, made: PrefixScorer, memory: int) -> list[int]:
    """Let passes of more tokens than this fail as a full device does; returns the sizes of those that do not."""
    packed, padded, passes = made._forward.packed, made._forward.padded, []

    def check(tokens: int) -> None:
        if tokens > memory:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")
        passes.append(tokens)

    def packed_within(tree: Any, step: Any, rows: Any) -> Any:
        check(step.tokens)
        return packed(tree, step, rows)

    def padded_within(sequences: Any, rows: Any) -> Any:
        check(sum(len(ids) for ids in sequences))
        return padded(sequences, rows)

    monkeypatch.setattr(made._forward, "packed", packed_within)
    monkeypatch.setattr(made._forward, "padded", padded_within)
    return passes


def test_shares_of_time_and_nothing_wanted():
    readings = list(scorer("llama", 1000).read([*crowd(), LogitRequest([1, 2], [], [])]))
    assert readings[0] == (6, (), 0.0)
    assert all(reading.latency_ms > 0 for reading in readings[1:])
    assert list(scorer("llama", 1000).read([])) == []


def test_a_path_is_held_once_however_many_continue_it():
    made = scorer("llama", 1000, COSTS[1])
    rooms = []
    reserve = made._forward.reserve
    made._forward.reserve = lambda tokens: (rooms.append(tokens), reserve(tokens))
    values(made, crowd(count=12, shared=200))
    assert rooms[0] <= 200 + 12 * 31
    assert made._forward._layers == []


def test_effort_counts_useful_operations_only():
    """Two per weight and token, four per layer, width and key seen, two per weight of the head and row read."""
    made, requests = scorer("llama", 1000, COSTS[1]), crowd(count=3, shared=50)
    values(made, requests)
    layer = 32 * 32 * 2 + 32 * 16 * 2 + 3 * 32 * 64 + 2 * 32
    seen = sum(range(1, 51)) + sum(sum(range(51, len(request.ids) + 1)) for request in requests)
    tokens = 50 + sum(len(request.ids) - 50 for request in requests)
    expected = 2 * (2 * layer + 32) * tokens + 4 * 2 * 32 * seen + 2 * 32 * VOCABULARY * 3
    assert made.effort.flops == expected
    assert made.effort.computed_tokens == tokens
    assert made.effort.seconds > 0


def test_sharing_and_full_prompts_differ_in_the_operations_saved():
    shared, full = scorer("llama", 1000, COSTS[1]), scorer("llama", 1000, shared=False)
    for made in (shared, full):
        values(made, crowd())
    stem = full.arithmetic.flops(tokens=64, keys=64 * 65 // 2, rows=0)
    assert full.effort.flops - shared.effort.flops == 5 * stem
