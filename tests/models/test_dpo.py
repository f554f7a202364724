"""The `dpo:` backend against a hand computation."""

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import tiny_models
from prbench.errors import AddressError, ModelError
from prbench.models.local import dpo
from prbench.models.registry import ModelOptions, load_model
from prbench.types import AnswerView, Post

VIEWS = [
    AnswerView("Which tea should I drink?", "Chamomile."),
    AnswerView("Which tea should I drink?", "Green tea keeps most people awake, so I would not." * 3),
    AnswerView("How do I repair a chair?", "Glue it.", posts=(Post(id="1", text="I keep a small garden."),)),
    AnswerView("Tea?", "é 茶 🍵"),
]


def scores(model: dpo.ImplicitReward, views: list[AnswerView]) -> list[float]:
    outcomes = dict(model.rate(views))
    assert all(outcome.status == "ok" for outcome in outcomes.values())
    return [outcomes[index].score for index in range(len(views))]


def by_hand(folder: Path, turn: str, answer: str) -> float:
    """log p(answer and its closing token | turn), one token at a time, from the text of the chat template."""
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder).eval()
    before = tokenizer(f"<s><|user|>{turn}</s><|assistant|>", add_special_tokens=False)["input_ids"]
    after = tokenizer(f"{answer}</s>", add_special_tokens=False)["input_ids"]
    total = 0.0
    with torch.inference_mode():
        for position, token in enumerate(after):
            logits = model(input_ids=torch.tensor([before + after[:position]])).logits[0, -1]
            total += float(torch.log_softmax(logits.double(), -1)[token])
    return total


@pytest.fixture(scope="module")
def model(tiny_policy: Path, tiny_reference: Path) -> dpo.ImplicitReward:
    return dpo.load(f"{tiny_policy},{tiny_reference}", ModelOptions())


def test_reward_equals_a_hand_computation(model, tiny_policy, tiny_reference):
    view = VIEWS[2]
    turn = model.render(view).messages[0].content
    expected = by_hand(tiny_policy, turn, view.answer) - by_hand(tiny_reference, turn, view.answer)
    assert scores(model, [view]) == pytest.approx([expected], abs=1e-3)
    assert abs(expected) > 0.1


def test_answer_starts_after_the_generation_prompt(model):
    (encoding, _) = model._encode(model.render(VIEWS[0]))
    tokenizer = model._models[0].checkpoint.tokenizer
    assert tokenizer.decode(list(encoding.ids[encoding.answer_start :])) == "Chamomile.</s>"


@pytest.mark.parametrize("batch_tokens", [1, 150, 100_000])
def test_reward_is_the_same_in_any_batch(model, tiny_policy, tiny_reference, batch_tokens):
    alone = [scores(model, [view])[0] for view in VIEWS]
    other = dpo.load(f"{tiny_policy},{tiny_reference}", ModelOptions(batch_tokens=batch_tokens))
    assert scores(other, VIEWS) == pytest.approx(alone, abs=1e-4)


def test_policy_equal_to_reference_gives_zero(tiny_policy):
    assert scores(dpo.load(f"{tiny_policy},{tiny_policy}", ModelOptions()), VIEWS) == [0.0] * len(VIEWS)


def test_swapping_policy_and_reference_flips_the_sign(model, tiny_policy, tiny_reference):
    swapped = dpo.load(f"{tiny_reference},{tiny_policy}", ModelOptions())
    assert scores(swapped, VIEWS) == pytest.approx([-score for score in scores(model, VIEWS)], abs=1e-4)


def test_models_may_have_different_formats_and_windows(tmp_path, tiny_policy):
    plain = tiny_models.save_causal_model(tmp_path / "plain", seed=3, chat_template=None, max_position_embeddings=64)
    model = dpo.load(f"{tiny_policy},{plain}", ModelOptions())
    assert model.window == 64
    assert model.card.parameters["format"] == ["chat", "plain"]
    (_, encoding) = model._encode(model.render(VIEWS[0]))
    tokenizer = AutoTokenizer.from_pretrained(plain)
    assert tokenizer.decode(list(encoding.ids[: encoding.answer_start])).startswith("<s>Which tea should I drink?")
    assert len(scores(model, VIEWS[:1])) == 1


def test_a_prompt_beyond_the_window_is_invalid(model):
    long = AnswerView("Tea?", "a cup of chamomile " * 400)
    ((_, outcome),) = model.rate([long])
    assert outcome.status == "invalid"
    assert outcome.reason == f"prompt of {model.length(model.render(long))} tokens exceeds the window of 512"


def test_an_answer_without_tokens_has_no_reward(tmp_path):
    template = "{{ bos_token }}{{ messages[0]['content'] }}"
    folder = tiny_models.save_causal_model(tmp_path, seed=4, chat_template=template)
    ((_, outcome),) = dpo.load(f"{folder},{folder}", ModelOptions()).rate(VIEWS[:1])
    assert outcome.status == "invalid"


def test_card_names_both_revisions(model, tiny_policy, tiny_reference):
    assert model.card.address == f"dpo:{tiny_policy},{tiny_reference}"
    policy, reference = model.card.revision.split(",")
    assert len(policy) == len(reference) == 64
    assert policy != reference
    assert model.parameter_count() == sum(
        parameter.numel()
        for folder in (tiny_policy, tiny_reference)
        for parameter in AutoModelForCausalLM.from_pretrained(folder).parameters()
    )


@pytest.mark.parametrize("rest", ["a", "a,b,c", "a,", ",b"])
def test_address_needs_two_models(rest):
    with pytest.raises(AddressError, match="expected a policy and a reference"):
        load_model(f"dpo:{rest}")


def test_one_missing_folder_is_named(tiny_policy):
    with pytest.raises(ModelError, match=r"no folder '\./missing'"):
        dpo.load(f"{tiny_policy},./missing", ModelOptions())
