"""Shared prefixes seen from outside: raters give the same scores for less work, and say when they cannot."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForSequenceClassification,
    BloomConfig,
    BloomForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    GraniteConfig,
    GraniteForCausalLM,
    LlamaForCausalLM,
    MambaConfig,
    MambaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

import tiny_models
from prbench.models.effort import Effort
from prbench.models.local import dpo, hf
from prbench.models.local.prefix import PrefixScorer, last_logits
from prbench.models.local.prefix.forward import CausalForward
from prbench.models.local.prefix.support import choose_way, estimate_cost
from prbench.models.registry import ModelOptions
from prbench.types import AnswerView, Post

POSTS = tuple(Post(id=str(number), text="I keep a small garden and I like short answers. " * 2) for number in range(2))
VIEWS = [
    AnswerView(question, answer, posts=posts)
    for posts in (POSTS, POSTS[:1], ())
    for question in ("Which tea should I drink?", "How do I repair a chair?")
    for answer in ("Chamomile.", "Glue it, and walk to the lake every morning.", "")
]


def scores(model: Any, views: list[AnswerView] = VIEWS) -> list[float]:
    outcomes = dict(model.rate(views))
    assert [outcome.status for outcome in outcomes.values()] == ["ok"] * len(views)
    return [outcomes[index].score for index in range(len(views))]


def classifier(folder: Path, *, shared: bool, **options: Any) -> hf.SequenceClassifier:
    opened = hf.load(str(folder), ModelOptions(**options))
    return hf.SequenceClassifier(opened._checkpoint, opened._label, opened._options, shared=shared)


@pytest.mark.parametrize("pad", [None, 1, 5], ids=["no pad", "pad is EOS", "pad of its own"])
@pytest.mark.parametrize("batch_tokens", [1, 300, 8192])
def test_classifier_scores_the_same_for_less(tmp_path, pad, batch_tokens):
    folder = tiny_models.save_reward_model(tmp_path, pad_token_id=pad, max_position_embeddings=2048)
    shared, full = (classifier(folder, shared=flag, batch_tokens=batch_tokens, window=2048) for flag in (True, False))
    assert scores(shared) == pytest.approx(scores(full), abs=1e-4)
    assert shared.note is None
    assert full.effort.naive_tokens == full.effort.computed_tokens == shared.effort.naive_tokens
    if batch_tokens == 8192:
        assert shared.effort.computed_tokens < 0.7 * shared.effort.naive_tokens


def test_two_labels_keep_their_difference(tmp_path):
    folder = tiny_models.save_reward_model(tmp_path, labels=2)
    shared, full = (classifier(folder, shared=flag) for flag in (True, False))
    assert scores(shared) == pytest.approx(scores(full), abs=1e-4)


def test_implicit_reward_scores_the_same_for_less(tiny_policy, tmp_path):
    other = tiny_models.save_causal_model(tmp_path, seed=9)
    options = ModelOptions()
    shared = dpo.load(f"{tiny_policy},{other}", options)
    full = dpo.ImplicitReward(shared._address, *shared._models, options, shared=False)
    views = [view for view in VIEWS if view.answer]
    assert scores(shared, views) == pytest.approx(scores(full, views), abs=1e-3)
    assert shared.effort.naive_tokens == full.effort.naive_tokens == full.effort.computed_tokens
    assert shared.effort.computed_tokens < 0.7 * shared.effort.naive_tokens


def test_counting_starts_at_nothing_and_loads_nothing(tiny_reward_model):
    model = hf.load(str(tiny_reward_model), ModelOptions())
    assert (model.effort.naive_tokens, model.effort.computed_tokens) == (0, 0)
    assert "_model" not in model.__dict__


def test_encoder_is_run_in_full_and_says_so(tmp_path):
    model = hf.load(str(tiny_models.save_encoder(tmp_path)), ModelOptions())
    scores(model, VIEWS[-6:-1])
    assert "every prompt is run in full" in model.note
    assert model.effort.naive_tokens == model.effort.computed_tokens > 0


def test_the_order_of_views_does_not_matter(tiny_reward_model):
    model = hf.load(str(tiny_reward_model), ModelOptions(window=2048))
    turned = [replace(view) for view in reversed(VIEWS)]
    assert scores(model, turned)[::-1] == pytest.approx(scores(model), abs=1e-4)


SMALL = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}


def sliding() -> Any:
    return MistralForCausalLM(
        MistralConfig(vocab_size=24, sliding_window=4, num_key_value_heads=2, initializer_range=0.4, **SMALL)
    )


def scaled_by_length() -> Any:
    rope = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}
    return LlamaForCausalLM(tiny_models.llama_config(24, rope_parameters=rope, max_position_embeddings=16))


def two_way() -> Any:
    return LlamaForCausalLM(tiny_models.llama_config(24, is_causal=False))


@pytest.mark.parametrize(
    ("build", "reason"),
    [(sliding, "sliding window"), (scaled_by_length, "length of the whole prompt"), (two_way, "not causal")],
)
def test_models_that_cannot_share_are_read_in_full(build, reason):
    torch.manual_seed(0)
    model = build().eval()
    scorer = PrefixScorer(model, batch_tokens=100)
    assert reason in scorer.note
    sequences = [[3, 1, 4, 1, 5, 9, 2, 6], [3, 1, 4, 1, 5, 9, 7], [3, 1, 4]]
    found = sorted(scorer.read([last_logits(ids, [0, 5]) for ids in sequences]))
    with torch.inference_mode():
        expected = [model(torch.tensor([ids])).logits[0, -1, [0, 5]].tolist() for ids in sequences]
    for reading, numbers in zip(found, expected, strict=True):
        assert list(reading.values) == pytest.approx(numbers, abs=1e-4)
    assert scorer.effort.computed_tokens == scorer.effort.naive_tokens == 18


KEYS = {"num_key_value_heads": 2, "initializer_range": 0.3}


@pytest.mark.parametrize(
    ("config", "kind", "note"),
    [
        (Qwen3Config(vocab_size=24, head_dim=8, **SMALL, **KEYS), Qwen3ForCausalLM, None),
        (GraniteConfig(vocab_size=24, logits_scaling=3.0, **SMALL, **KEYS), GraniteForCausalLM, None),
        (Gemma2Config(vocab_size=24, head_dim=8, **SMALL, **KEYS), Gemma2ForCausalLM, "sliding window"),
        (BloomConfig(vocab_size=24, hidden_size=32, n_layer=2, n_head=4), BloomForCausalLM, "does not take a forked"),
        (MambaConfig(vocab_size=24, hidden_size=32, num_hidden_layers=2), MambaForCausalLM, "cannot be forked"),
    ],
    ids=lambda value: getattr(value, "model_type", ""),
)
def test_families(config, kind, note):
    torch.manual_seed(0)
    model = kind(config).eval()
    scorer, full = (PrefixScorer(model, batch_tokens=1000, shared=shared) for shared in (True, False))
    stem = [(7 * place) % 24 for place in range(100)]
    requests = [last_logits(stem + [index] * 9, [0, 1]) for index in range(5)]
    found, expected = sorted(scorer.read(requests)), sorted(full.read(requests))
    for one, other in zip(found, expected, strict=True):
        assert one.values == pytest.approx(other.values, abs=1e-4)
    assert note in scorer.note if note else scorer.note is None
    assert scorer.effort.computed_tokens == (5 * 109 if note else 100 + 5 * 9)


def test_a_model_that_is_only_found_out_by_trying():
    class Forgetful(GPT2LMHeadModel):
        """Reads its positions from the place in the pass, whatever it is told."""

        def forward(self, *args: Any, position_ids: Any = None, **fields: Any) -> Any:
            if position_ids is not None:
                position_ids = torch.arange(position_ids.shape[1])[None]
            return super().forward(*args, position_ids=position_ids, **fields)

    torch.manual_seed(0)
    config = GPT2Config(vocab_size=24, n_positions=64, n_embd=32, n_layer=2, n_head=4, initializer_range=0.3)
    assert PrefixScorer(GPT2LMHeadModel(config).eval(), batch_tokens=100).note is None
    assert "scores otherwise" in PrefixScorer(Forgetful(config).eval(), batch_tokens=100).note


def test_half_precision_is_shared_too(tiny_reward_model):
    half, whole = (hf.load(str(tiny_reward_model), ModelOptions(dtype=kind)) for kind in ("bfloat16", "float32"))
    assert scores(half, VIEWS[-6:]) == pytest.approx(scores(whole, VIEWS[-6:]), rel=0.2, abs=0.3)
    assert half.note is None


def test_cost_follows_the_shape_of_the_model(tiny_reward_model):
    model = AutoModelForSequenceClassification.from_pretrained(tiny_reward_model)
    forward = CausalForward(model)
    masked = estimate_cost(forward)
    layer = 32 * 32 * 2 + 32 * 16 * 2 + 3 * 32 * 64 + 2 * 32
    assert masked.per_key == pytest.approx(1.6 * 4 * 2 * 32 / (2 * (2 * layer + 32)))
    assert (masked.best_pack(most=100), masked.best_pack(most=8192)) == (100, 256)
    assert choose_way(forward) is None
    branching = estimate_cost(forward)
    assert branching.per_key < masked.per_key
    assert (branching.best_pack(most=100), branching.best_pack(most=8192)) == (100, 1024)


def test_effort_is_counted_for_every_kind_of_local_model(tmp_path, tiny_policy):
    """Shared, in full, both ways, and two models behind one score; nothing before the first score."""
    reward = tiny_models.save_reward_model(tmp_path / "reward")
    encoder = hf.load(str(tiny_models.save_encoder(tmp_path / "encoder")), ModelOptions())
    models = [classifier(reward, shared=True), classifier(reward, shared=False), encoder]
    models.append(dpo.load(f"{tiny_policy},{tiny_policy}", ModelOptions()))
    for model in models:
        assert (model.effort, model.peak_flops) == (Effort(), None)
        scores(model, VIEWS[-6:-1])
        assert model.effort.flops > 0
        assert model.effort.seconds > 0
        assert model.peak_flops > model.effort.flops_per_s  # tiny models are all overhead
    shared, full, *_ = models
    assert shared.effort.flops < full.effort.flops


def test_an_encoder_attends_both_ways(tmp_path):
    model = hf.load(str(tiny_models.save_encoder(tmp_path)), ModelOptions())
    ((_, outcome),) = model.rate(VIEWS[-6:-5])
    arithmetic = model._scorers[0].arithmetic
    assert model.effort.flops == arithmetic.flops(outcome.tokens_in, outcome.tokens_in**2, 1)
