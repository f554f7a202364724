"""The policy run by hand gives what transformers gives, and its shortcuts change nothing."""

from pathlib import Path
from typing import Any

import pytest
import torch

from prbench.errors import ModelError
from prbench.studies.ppo import trunk
from prbench.studies.ppo.formulas import chosen
from prbench.studies.ppo.trunk import Policy
from tiny_models import save_causal_model

PROMPTS = [[0, 17, 33, 250, 9, 12, 80], [0, 5, 6, 41]]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from transformers import AutoModelForCausalLM

    folder = save_causal_model(tmp_path_factory.mktemp("tiny"), seed=3, num_hidden_layers=4, initializer_range=0.2)
    return AutoModelForCausalLM.from_pretrained(folder).eval().requires_grad_(False)


def policy_of(model: Any, *, trained: bool = True, **settings: Any) -> Policy:
    policy = Policy(model, rank=2, **settings)
    if trained:
        draws = torch.Generator().manual_seed(5)
        with torch.no_grad():
            for parameter in policy.parameters():
                parameter.add_(torch.randn(parameter.shape, generator=draws) * 0.05)
    return policy


def test_with_fresh_adapters_or_none_it_is_the_base_model(model: Any):
    answers = torch.tensor([[7, 8, 9], [3, 2, 11], [40, 41, 42], [7, 300, 2]])
    fresh, trained = policy_of(model, trained=False, temperature=0.5), policy_of(model, temperature=0.5)
    for policy, adapted in ((fresh, True), (fresh, False), (trained, False)):
        prefix = policy.read_prompts(PROMPTS, 2)
        found = policy.read_upper(prefix, policy.read_lower(prefix, answers), adapted=adapted).logits
        for row, answer in enumerate(answers.tolist()):
            prompt = PROMPTS[row // 2]
            expected = model(torch.tensor([prompt + answer])).logits[0, len(prompt) - 1 : -1] / 0.5
            torch.testing.assert_close(found[row], expected, atol=1e-4, rtol=1e-4)


def test_adapters_act_on_the_answer_only(model: Any):
    """The prompt's keys are the base model's whatever the adapters are, and the first token of an answer feels them."""
    fresh, trained = policy_of(model, trained=False), policy_of(model)
    base, prefix = fresh.read_prompts(PROMPTS, 1), trained.read_prompts(PROMPTS, 1)
    for left, right in zip(base.layers, prefix.layers, strict=True):
        torch.testing.assert_close(left.keys, right.keys)
    answers = torch.tensor([[7], [8]])
    middle = trained.read_lower(prefix, answers)
    assert (trained.read_upper(prefix, middle).logits - fresh.read_upper(base, middle).logits).abs().max() > 1e-3


def test_what_is_noted_while_writing_is_what_reading_gives(model: Any):
    policy = policy_of(model, temperature=0.7)
    prefix = policy.read_prompts(PROMPTS, 3)
    written = policy.write(prefix, 9, [1], torch.Generator().manual_seed(0))
    torch.testing.assert_close(policy.read_lower(prefix, written.tokens), written.middle, atol=1e-4, rtol=1e-4)
    read = policy.read_upper(prefix, written.middle)
    torch.testing.assert_close(
        chosen(read.logits.log_softmax(-1), written.tokens), written.logprobs, atol=1e-4, rtol=1e-4
    )
    torch.testing.assert_close(read.values, written.values, atol=1e-4, rtol=1e-4)


def test_answers_do_not_depend_on_who_else_is_in_the_batch(model: Any):
    policy = policy_of(model)
    both = policy.write(policy.read_prompts(PROMPTS, 1), 8, [1], None).tokens
    alone = policy.write(policy.read_prompts(PROMPTS[1:], 1), 8, [1], None).tokens
    width = alone.shape[1]
    assert both[1, :width].tolist() == alone[0].tolist()


def test_greedy_writing_is_what_transformers_writes(model: Any):
    policy = policy_of(model, trained=False)
    ours = policy.write(policy.read_prompts(PROMPTS[:1], 1), 8, [], None).tokens[0].tolist()
    ids = list(PROMPTS[0])
    for _ in range(8):
        ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
    assert ours == ids[len(PROMPTS[0]) :]


def test_sampling_follows_the_odds(model: Any):
    policy = policy_of(model, temperature=3.0)
    prefix = policy.read_prompts(PROMPTS[:1], 4000)
    first = policy.write(prefix, 1, [], torch.Generator().manual_seed(1)).tokens[:, 0]
    single = policy.read_prompts(PROMPTS[:1], 1)
    odds = policy.read_upper(single, policy.read_lower(single, torch.zeros(1, 1, dtype=torch.long))).logits[0, 0]
    expected = odds.softmax(-1)
    likeliest = expected.topk(5).indices
    shares = torch.stack([(first == token).float().mean() for token in likeliest])
    errors = (expected[likeliest] * (1 - expected[likeliest]) / 4000).sqrt()
    assert ((shares - expected[likeliest]).abs() < 4.5 * errors).all()


def test_only_adapters_and_value_head_learn(model: Any):
    policy = policy_of(model)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    prefix = policy.read_prompts(PROMPTS, 2)
    written = policy.write(prefix, 4, [1], torch.Generator().manual_seed(0))
    read = policy.read_upper(prefix, written.middle)
    (chosen(read.logits.log_softmax(-1), written.tokens).sum() + read.values.sum()).backward()
    assert all(parameter.grad is not None for parameter in policy.parameters())
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
    assert {int(name.split("/")[0]) for name in policy.adapters} == {2, 3}


def test_another_architecture_is_refused():
    from transformers import GPT2Config, GPT2LMHeadModel

    other = GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=8, vocab_size=20, n_positions=16))
    with pytest.raises(ModelError, match="gpt2"):
        Policy(other)


def small(kind: str, **changed: Any) -> Any:
    """A model of some architecture, a few layers deep."""
    from transformers import AutoConfig, AutoModelForCausalLM

    shape = {"num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "initializer_range": 0.2}
    sizes = {"vocab_size": 300, "hidden_size": 32, "intermediate_size": 64, "max_position_embeddings": 512}
    torch.manual_seed(1)
    config = AutoConfig.for_model(kind, **shape, **sizes, pad_token_id=0, **changed)
    return AutoModelForCausalLM.from_config(config).eval().requires_grad_(False)


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        ("mistral", {"sliding_window": 16}),
        ("qwen2", {"use_sliding_window": True, "sliding_window": 16, "max_window_layers": 1}),
    ],
)
def test_a_sliding_window_is_refused(kind: str, changed: dict[str, Any]):
    with pytest.raises(ModelError, match="looks back 16 tokens"):
        Policy(small(kind, **changed))


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        ("llama", {}),
        ("llama", {"attention_bias": True, "head_dim": 16}),
        ("mistral", {"sliding_window": None}),
        ("qwen2", {}),
        ("qwen2", {"use_sliding_window": True, "sliding_window": 16, "max_window_layers": 4}),
    ],
)
def test_models_of_llamas_shape_are_taken(kind: str, changed: dict[str, Any]):
    model = small(kind, **changed)
    policy = Policy(model, temperature=0.5)
    prompt, answer = list(range(3, 27)), [40, 41, 42]  # longer than the window that is off
    prefix = policy.read_prompts([prompt], 1)
    found = policy.read_upper(prefix, policy.read_lower(prefix, torch.tensor([answer]))).logits[0]
    expected = model(torch.tensor([prompt + answer])).logits[0, len(prompt) - 1 : -1] / 0.5
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def test_what_would_be_computed_wrongly_is_refused(monkeypatch: pytest.MonkeyPatch):
    """SmolLM3 has layers without positions: by its name it is refused at once, and by its logits if by nothing else."""
    with pytest.raises(ModelError, match="not 'smollm3'"):
        Policy(small("smollm3"))
    monkeypatch.setattr(trunk, "_KINDS", ("smollm3",))
    with pytest.raises(ModelError, match=r"does not compute what this 'smollm3' computes: its logits are \d+\.\d% off"):
        Policy(small("smollm3"))


def test_real_smollm2_equals_transformers():
    from transformers import AutoModelForCausalLM

    from real_weights import real_model

    folder: Path = real_model("smollm2")
    model = AutoModelForCausalLM.from_pretrained(folder).eval().requires_grad_(False)
    policy = Policy(model)
    prompt, answer = [1, 4093, 198, 504, 3575, 282, 4649, 314], [260, 2240, 282, 253]
    prefix = policy.read_prompts([prompt], 1)
    found = policy.read_upper(prefix, policy.read_lower(prefix, torch.tensor([answer]))).logits[0]
    expected = model(torch.tensor([prompt + answer])).logits[0, len(prompt) - 1 : -1]
    torch.testing.assert_close(found, expected, atol=2e-3, rtol=1e-3)
