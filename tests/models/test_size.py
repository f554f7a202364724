"""Models that are large: spread over devices, adapters on a base, weights in 8 bits."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

import tiny_models
from prbench.config import ModelOptions
from prbench.errors import ModelError
from prbench.models.registry import load_model
from prbench.types import AnswerView

VIEWS = [
    AnswerView("Which tea should I drink?", "Chamomile."),
    AnswerView("Which tea should I drink?", "Green tea keeps most people awake, so I would not." * 3),
    AnswerView("How do I repair a chair?", "Glue it."),
    AnswerView("How do I repair a chair?", "Buy new tools."),
]


def scores(model, views=VIEWS):
    outcomes = dict(model.rate(views))
    assert [outcomes[place].status for place in range(len(views))] == ["ok"] * len(views)
    return [outcomes[place].score for place in range(len(views))]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PRBENCH_CACHE", str(tmp_path / "cache"))


def half_on_disk(tmp_path: Path, head: str) -> str:
    parts = ("model.embed_tokens", "model.layers.0", "model.norm", "model.rotary_emb")
    places = {**dict.fromkeys(parts, "cpu"), "model.layers.1": "disk", head: "disk"}
    (tmp_path / "map.json").write_text(json.dumps(places))
    return str(tmp_path / "map.json")


def test_weights_on_processor_and_disk_give_the_same_scores(tmp_path, tiny_reward_model, capfd):
    whole = load_model(f"hf:{tiny_reward_model}", ModelOptions())
    spread = load_model(f"hf:{tiny_reward_model}", ModelOptions(device_map=half_on_disk(tmp_path, "score")))
    assert scores(spread) == pytest.approx(scores(whole), abs=1e-6)
    assert spread.note == "the model's parts lie on cpu (4), disk (2)"
    assert spread.card == whole.card
    assert capfd.readouterr().err == ""


def test_what_exceeds_the_given_memory_goes_to_disk(tiny_reward_model):
    limited = ModelOptions(device_map="auto", max_memory={"cpu": "60KB"})
    spread = load_model(f"hf:{tiny_reward_model}", limited)
    assert scores(spread) == pytest.approx(scores(load_model(f"hf:{tiny_reward_model}", ModelOptions())), abs=1e-6)
    assert "disk" in spread.note


def test_language_models_are_spread_too(tmp_path, tiny_policy, tiny_reference):
    options = ModelOptions(device_map=half_on_disk(tmp_path, "lm_head"))
    for address in (f"lm:{tiny_policy}#loglik", f"dpo:{tiny_policy},{tiny_reference}"):
        spread = load_model(address, options)
        assert scores(spread) == pytest.approx(scores(load_model(address, ModelOptions())), abs=1e-5)
        assert "disk (2)" in spread.note


def test_device_maps_that_are_none(tmp_path, tiny_reward_model):
    (tmp_path / "list.json").write_text("[]")
    for device_map, message in (("warp", "no device map 'warp'"), (str(tmp_path / "list.json"), "not a JSON object")):
        with pytest.raises(ModelError, match=rf"{message}[^$]*--device-map takes auto"):
            load_model(f"hf:{tiny_reward_model}", ModelOptions(device_map=device_map)).prepare()
    with pytest.raises(ModelError, match=r"--max-memory is given without --device-map"):
        load_model(f"hf:{tiny_reward_model}", ModelOptions(max_memory={"cpu": "1GB"})).prepare()


def save_adapter(folder: Path, base: Path, *, named: str | None = None, task: str = "SEQ_CLS") -> Path:
    """A LoRA adapter with weights that are not zero; as a reward model it brings its head along."""
    kind = AutoModelForSequenceClassification if task == "SEQ_CLS" else AutoModelForCausalLM
    torch.manual_seed(1)
    extra = {"num_labels": 1} if task == "SEQ_CLS" else {}
    network = kind.from_pretrained(base, **extra)
    adapted = get_peft_model(network, LoraConfig(r=4, task_type=task, target_modules=["q_proj", "v_proj"]))
    for name, parameter in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.3)
    adapted.save_pretrained(folder)
    if named is not None:
        config = json.loads((folder / "adapter_config.json").read_text())
        (folder / "adapter_config.json").write_text(json.dumps(config | {"base_model_name_or_path": named}))
    return folder


def test_a_reward_adapter_brings_its_head_to_a_language_model(tmp_path, tiny_policy):
    folder = save_adapter(tmp_path / "adapter", tiny_policy)
    model = load_model(f"hf:{tiny_policy}+{folder}")
    torch.manual_seed(1)
    network = AutoModelForSequenceClassification.from_pretrained(tiny_policy, num_labels=1)
    network = PeftModel.from_pretrained(network, folder).eval()
    words = tiny_models.tokenizer()
    for view, score in zip(VIEWS, scores(model), strict=True):
        messages = [message._asdict() for message in model.render(view).messages]
        inputs = words.apply_chat_template(messages, return_dict=True, return_tensors="pt")
        network.config.pad_token_id = None
        with torch.inference_mode():
            assert score == pytest.approx(float(network(**inputs).logits), abs=1e-4)
    assert model.card.parameters["head"] == "logit 0"
    assert model.card.revision != load_model(f"hf:{tiny_policy}#label=0").card.revision
    assert model.note is None


def test_an_adapter_changes_an_implicit_reward(tmp_path, tiny_policy):
    folder = save_adapter(tmp_path / "adapter", tiny_policy, task="CAUSAL_LM")
    changed = scores(load_model(f"dpo:{tiny_policy}+{folder},{tiny_policy}"))
    assert all(abs(score) > 1e-3 for score in changed)
    likelihoods = [scores(load_model(f"lm:{name}#loglik")) for name in (tiny_policy, f"{tiny_policy}+{folder}")]
    assert likelihoods[0] != pytest.approx(likelihoods[1], abs=1e-3)


def test_an_adapter_for_another_base_is_refused_before_anything_is_loaded(tmp_path, tiny_policy):
    folder = save_adapter(tmp_path / "adapter", tiny_policy, named="org/other-model")
    with pytest.raises(ModelError, match=r"made for 'org/other-model', not for[^$]*hf:org/other-model\+"):
        load_model(f"hf:{tiny_policy}+{folder}")
    copy = shutil.copytree(tiny_policy, tmp_path / "other-model")
    assert len(scores(load_model(f"hf:{copy}+{folder}"))) == len(VIEWS)


def test_an_adapter_of_other_shape_is_refused_before_weights_are_read(tmp_path, tiny_policy):
    wide = tiny_models.save_causal_model(tmp_path / "wide", seed=0, hidden_size=64)
    folder = save_adapter(tmp_path / "adapter", wide, named=str(tiny_policy))
    copy = shutil.copytree(tiny_policy, tmp_path / "copy" / tiny_policy.name)
    (copy / "model.safetensors").unlink()  # whoever read weights would miss them
    with pytest.raises(ModelError, match=r"q_proj with 64 inputs, and the base has 32 inputs there"):
        load_model(f"hf:{copy}+{folder}").prepare()


def test_folders_that_are_no_adapters(tmp_path, tiny_policy):
    with pytest.raises(ModelError, match=r"has no adapter_config.json"):
        load_model(f"hf:{tiny_policy}+{tmp_path}")
    folder = save_adapter(tmp_path / "adapter", tiny_policy)
    with pytest.raises(ModelError, match=r"holds an adapter, not a whole model[^$]*hf:BASE\+"):
        load_model(f"hf:{folder}")
    with pytest.raises(ModelError, match=r"cannot be merged into weights that are spread"):
        load_model(f"hf:{tiny_policy}+{folder}", ModelOptions(device_map="auto")).prepare()


@pytest.fixture(scope="module")
def wide(tmp_path_factory) -> Path:
    return tiny_models.save_reward_model(
        tmp_path_factory.mktemp("wide"), hidden_size=64, intermediate_size=128, initializer_range=0.1
    )


@pytest.mark.parametrize("kind", ["int8", "bfloat16"])
def test_rounded_weights_change_scores_a_little_and_say_how_much(wide, kind):
    full, rounded = load_model(f"hf:{wide}"), load_model(f"hf:{wide}", ModelOptions(quantize=kind))
    before, after = scores(full), scores(rounded)
    changes = [abs(one - other) for one, other in zip(before, after, strict=True)]
    assert 0 < max(changes) < 0.1
    assert f"on a sample of 4 prompts scores changed by {sum(changes) / 4:.3g} on average" in rounded.note
    assert f"{max(changes):.3g} at most" in rounded.note
    assert "2 of 2 pairs of answers kept their order" in rounded.note
    assert rounded.card.parameters["quantize"] == kind
    assert "quantize" not in full.card.parameters
    assert rounded.card.identity != full.card.identity


def test_the_layers_really_are_8_bits_wide(wide):
    model = load_model(f"hf:{wide}", ModelOptions(quantize="int8", quantize_sample=0))
    scores(model)
    weight = model._model.model.layers[0].mlp.up_proj.weight
    assert type(weight).__name__ == "Int8Tensor"
    assert weight.qdata.dtype == torch.int8


def test_the_whole_model_is_in_bfloat16(wide):
    model = load_model(f"hf:{wide}", ModelOptions(quantize="bfloat16", quantize_sample=0))
    scores(model)
    assert {parameter.dtype for parameter in model._model.parameters()} == {torch.bfloat16}
    assert model.note.startswith("weights in bfloat16; no sample was scored")


def test_without_a_sample_there_is_no_number(wide):
    model = load_model(f"hf:{wide}", ModelOptions(quantize="int8", quantize_sample=0))
    scores(model)
    assert model.note == "weights in 8 bits; no sample was scored in full precision, so what that changes is not known"


def test_8_bits_that_change_the_order_of_answers_are_refused(wide, monkeypatch):
    model = load_model(f"hf:{wide}", ModelOptions(quantize="int8"))
    before, sampled = [], model._sampled

    def turned_round(items):  # as if rounding had turned every preference round
        found = sampled(items)
        before.append(found)
        return found if len(before) == 1 else [-score for score in before[0]]

    monkeypatch.setattr(model, "_sampled", turned_round)
    with pytest.raises(ModelError, match=r"0 of 2 pairs of answers kept their order, and 99.5% must") as error:
        scores(model)
    assert "--quantize-sample 0" in str(error.value)


def test_8_bits_are_for_reward_models_on_one_device(wide, tiny_policy):
    with pytest.raises(ModelError, match="--quantize is for reward models"):
        scores(load_model(f"lm:{tiny_policy}#loglik", ModelOptions(quantize="int8")))
    spread = ModelOptions(quantize="int8", device_map="auto", max_memory={"cpu": "100KB"})
    with pytest.raises(ModelError, match="cannot be rounded to 8 bits"):
        scores(load_model(f"hf:{wide}", spread))
