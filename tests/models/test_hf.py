"""The `hf:` backend against a real tiny classifier and a direct call of transformers."""

import json
import shutil
from array import array
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, RobertaConfig

import tiny_models
from prbench.errors import AddressError, ModelError
from prbench.models.local import hf
from prbench.models.local.checkpoint import Checkpoint
from prbench.models.local.encoding import Encoding
from prbench.models.protocols import Windowed
from prbench.models.registry import ModelOptions, load_model
from prbench.types import AnswerView, Channel, Message, Post, Prompt

POST = Post(id="p1", text="I keep a small garden and I like short answers.")
VIEWS = [
    AnswerView("Which tea should I drink?", "Chamomile."),
    AnswerView("Which tea should I drink?", "Green tea keeps most people awake, so I would not." * 3),
    AnswerView("How do I repair a chair?", "Glue it.", posts=(POST,)),
    AnswerView("How do I repair a chair?", "Walk to the lake every morning instead." * 6, plan=("one clear step",)),
    AnswerView("Tea?", "é 茶 🍵"),
]


def scores(model: hf.SequenceClassifier, views: list[AnswerView]) -> list[float]:
    outcomes = dict(model.rate(views))
    assert sorted(outcomes) == list(range(len(views)))
    assert all(outcome.status == "ok" for outcome in outcomes.values())
    return [outcomes[index].score for index in range(len(views))]


def direct_logits(folder: Path, view: AnswerView, turn: str) -> torch.Tensor:
    """What the model's own card would tell a user to do, with nothing of ours but the turn's text."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()
    messages = [{"role": "user", "content": turn}, {"role": "assistant", "content": view.answer}]
    inputs = tokenizer.apply_chat_template(messages, return_dict=True, return_tensors="pt")
    with torch.inference_mode():
        return model(**inputs).logits[0]


@pytest.fixture(scope="module")
def model(tiny_reward_model: Path) -> hf.SequenceClassifier:
    return hf.load(str(tiny_reward_model), ModelOptions())


def test_score_equals_a_direct_call_of_transformers(model, tiny_reward_model):
    for view, score in zip(VIEWS, scores(model, VIEWS), strict=True):
        turn = model.render(view).messages[0].content
        assert score == pytest.approx(float(direct_logits(tiny_reward_model, view, turn)), abs=1e-4)


def test_scores_differ_clearly_between_answers(model):
    values = scores(model, VIEWS)
    assert max(values) - min(values) > 0.1


@pytest.mark.parametrize("batch_tokens", [1, 200, 600, 100_000])
def test_score_is_the_same_in_any_batch(model, tiny_reward_model, batch_tokens):
    alone = [scores(model, [view])[0] for view in VIEWS]
    batched = hf.load(str(tiny_reward_model), ModelOptions(batch_tokens=batch_tokens))
    assert scores(batched, VIEWS) == pytest.approx(alone, abs=1e-4)


def test_conversation_ends_in_eos_so_that_pooling_is_put_to_the_test(model):
    ids = list(model._encode(model.render(VIEWS[0]))[0].ids)
    assert ids[-1] == model._checkpoint.tokenizer.eos_token_id


@pytest.mark.parametrize("declared", [1, -1, 5], ids=["pad is EOS", "pad is -1", "pad of its own"])
def test_batch_invariance_with_any_declared_pad(tmp_path, declared):
    folder = tiny_models.save_reward_model(tmp_path, pad_token_id=None if declared < 0 else declared)
    if declared < 0:
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"pad_token_id": declared}))
    model = hf.load(str(folder), ModelOptions())
    alone = [float(direct_logits(folder, view, model.render(view).messages[0].content)) for view in VIEWS]
    assert scores(model, VIEWS) == pytest.approx(alone, abs=1e-4)


def test_where_every_token_id_occurs_the_batch_is_scored_one_by_one(model):
    class EveryId:
        """Encodes an answer of n characters as the last n ids of the vocabulary."""

        def encode(self, prompt: Prompt) -> Encoding:
            return Encoding(array("i", range(vocabulary))[-len(prompt.messages[1].content) :])

    vocabulary = model._checkpoint.config.vocab_size
    other = hf.SequenceClassifier(model._checkpoint, None, ModelOptions(window=1000))
    other._encoder = EveryId()
    views = [AnswerView("q", "x" * vocabulary), AnswerView("q", "x" * 3)]
    assert scores(other, views) == pytest.approx([scores(other, [view])[0] for view in views], abs=1e-4)


def test_posts_reach_the_tokens_and_the_score(model):
    bare, personal = replace(VIEWS[2], posts=()), VIEWS[2]
    text = model._checkpoint.tokenizer.decode(list(model._encode(model.render(personal))[0].ids))
    assert POST.text in text
    one, other = scores(model, [bare, personal])
    assert abs(one - other) > 1e-3
    assert model.card.reads == {Channel.POSTS, Channel.PLAN}


def test_one_bos_although_the_tokenizer_would_add_another(model):
    tokenizer = model._checkpoint.tokenizer
    assert tokenizer("x")["input_ids"][0] == tokenizer.bos_token_id  # adds one when asked for special tokens
    ids = list(model._encode(model.render(VIEWS[2]))[0].ids)
    assert ids.count(tokenizer.bos_token_id) == 1


def test_a_prompt_beyond_the_window_is_invalid_and_never_cut(model):
    long = AnswerView("Tea?", "a cup of chamomile " * 400)
    size = model.length(model.render(long))
    outcomes = dict(model.rate([long, VIEWS[0]]))
    assert size > model.window == 512
    assert outcomes[0].status == "invalid"
    assert outcomes[0].score is None
    assert outcomes[0].reason == f"prompt of {size} tokens exceeds the window of 512"
    assert outcomes[1].status == "ok"


def test_window_is_exact(model, tiny_reward_model):
    size = model.length(model.render(VIEWS[1]))
    for window, status in [(size, "ok"), (size - 1, "invalid")]:
        tight = hf.load(str(tiny_reward_model), ModelOptions(window=window))
        assert next(tight.rate([VIEWS[1]]))[1].status == status


def test_window_of_the_roberta_family_leaves_out_the_positions_it_never_uses(model):
    unlimited = tiny_models.tokenizer()
    unlimited.model_max_length = 10**30
    config = RobertaConfig(max_position_embeddings=514, pad_token_id=1)
    assert Checkpoint("hf:x", "x", None, config, unlimited).positions == 512


def test_length_counts_what_the_model_reads(model):
    assert isinstance(model, Windowed)
    ((_, outcome),) = model.rate([VIEWS[3]])
    assert model.length(model.render(VIEWS[3])) == outcome.tokens_in
    assert outcome.latency_ms > 0


def test_longest_comes_first(model):
    tokens = [outcome.tokens_in for _, outcome in model.rate(VIEWS)]
    assert tokens == sorted(tokens, reverse=True)


def test_card_says_everything_that_changes_a_score(model, tiny_reward_model):
    card = model.card
    assert card.address == f"hf:{tiny_reward_model}"
    assert len(card.revision) == 64
    assert card.parameters["format"] == "chat"
    assert card.parameters["head"] == "logit 0"
    assert card.parameters["dtype"] == "float32"
    assert len(card.parameters["chat_template"]) == 12
    json.dumps(dict(card.parameters))


def test_template_of_the_user(tmp_path, tiny_reward_model):
    (tmp_path / "own.jinja").write_text("Q: {{ question }}")
    model = hf.load(str(tiny_reward_model), ModelOptions(template=tmp_path / "own.jinja"))
    assert model.render(VIEWS[2]).messages[0] == Message("user", "Q: How do I repair a chair?")
    assert model.card.reads == frozenset()


def test_plain_format_without_chat_template(tmp_path):
    model = hf.load(str(tiny_models.save_reward_model(tmp_path, chat_template=None)), ModelOptions())
    tokenizer = model._checkpoint.tokenizer
    expected = tokenizer("Tea?\n\nGreen.")["input_ids"]
    assert list(model._encode(model.render(AnswerView("Tea?", "Green.")))[0].ids) == expected
    assert expected[0] == tokenizer.bos_token_id
    assert model.card.parameters["format"] == "plain"
    assert model.card.parameters["chat_template"] is None


def test_encoder_reads_a_pair_and_is_batch_invariant(tmp_path):
    folder = tiny_models.save_encoder(tmp_path)
    model = hf.load(str(folder), ModelOptions())
    encoding = model._encode(model.render(VIEWS[0]))[0]
    assert model.card.parameters["format"] == "pair"
    assert set(encoding.types) == {0, 1}
    tokenizer, network = (
        AutoTokenizer.from_pretrained(folder),
        AutoModelForSequenceClassification.from_pretrained(folder),
    )
    with torch.inference_mode():
        expected = [
            float(
                network.eval()(**tokenizer(*[m.content for m in model.render(v).messages], return_tensors="pt")).logits
            )
            for v in VIEWS[:3]
        ]
    assert scores(model, VIEWS[:3]) == pytest.approx(expected, abs=1e-4)


LABELS = {"id2label": {0: "rejected", 1: "chosen"}, "label2id": {"rejected": 0, "chosen": 1}}


@pytest.mark.parametrize(
    ("config", "fragment", "head", "weights"),
    [
        ({}, "", "logit 1 - logit 0", (-1, 1)),
        (LABELS, "", "logit 1 - logit 0", (-1, 1)),
        (LABELS, "#label=rejected", "logit 0 - logit 1", (1, -1)),
        ({"problem_type": "multi_label_classification"}, "#label=1", "logit 1", (0, 1)),
        ({"id2label": {0: "chosen", 1: "rejected"}}, "", "logit 0 - logit 1", (1, -1)),
    ],
)
def test_head_with_two_labels(tmp_path, config, fragment, head, weights):
    folder = tiny_models.save_reward_model(tmp_path, labels=2, **config)
    model = hf.load(f"{folder}{fragment}", ModelOptions())
    logits = direct_logits(folder, VIEWS[0], model.render(VIEWS[0]).messages[0].content)
    assert model.card.parameters["head"] == head
    assert model.card.address == f"hf:{folder}{fragment}"
    expected = float(logits[0]) * weights[0] + float(logits[1]) * weights[1]
    assert scores(model, VIEWS[:1]) == pytest.approx([expected], abs=1e-4)


def test_head_with_many_labels_must_be_named(tmp_path):
    folder = tiny_models.save_reward_model(tmp_path, labels=4)
    with pytest.raises(ModelError, match=r"4 labels \(LABEL_0, .*\n\nhint: .*#label=0"):
        hf.load(str(folder), ModelOptions())
    logits = direct_logits(folder, VIEWS[0], "Which tea should I drink?")
    assert scores(hf.load(f"{folder}#label=3", ModelOptions()), VIEWS[:1]) == pytest.approx(
        [float(logits[3])], abs=1e-4
    )
    with pytest.raises(ModelError, match=r"no label 'LABEL_9'\n\nhint: did you mean"):
        hf.load(f"{folder}#label=LABEL_9", ModelOptions())
    with pytest.raises(ModelError, match="no label '4'"):
        hf.load(f"{folder}#label=4", ModelOptions())
    with pytest.raises(AddressError, match="cannot read '#lable=3'"):
        hf.load(f"{folder}#lable=3", ModelOptions())


def test_two_labels_without_a_known_name_must_be_named(tmp_path):
    folder = tiny_models.save_reward_model(tmp_path, labels=2, id2label={0: "left", 1: "right"})
    with pytest.raises(ModelError, match=r"2 labels \(left, right\)"):
        hf.load(str(folder), ModelOptions())


def test_a_language_model_without_a_trained_head_is_refused(tiny_policy, capfd):
    model = hf.load(f"{tiny_policy}#label=1", ModelOptions())
    with pytest.raises(ModelError, match=r"no weights for score.weight; it was saved as LlamaForCausalLM"):
        model.prepare()
    assert capfd.readouterr() == ("", "")


def test_rendering_and_counting_need_no_weights(tmp_path, tiny_reward_model):
    folder = shutil.copytree(tiny_reward_model, tmp_path / "copy")
    (folder / "model.safetensors").unlink()
    model = hf.load(str(folder), ModelOptions())
    whole = AutoModelForSequenceClassification.from_pretrained(tiny_reward_model)
    assert model.length(model.render(VIEWS[0])) > 10
    assert model.parameter_count() == sum(parameter.numel() for parameter in whole.parameters())
    with pytest.raises(ModelError, match=r"no file named model.safetensors"):
        model.prepare()


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda folder: (folder / "config.json").unlink(), r"has no config.json"),
        (lambda folder: (folder / "config.json").write_text("{"), r"config"),
        (lambda folder: (folder / "config.json").rename(folder / "adapter_config.json"), r"holds an adapter"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"no"), r"header"),
        (lambda folder: edit_config(folder, hidden_size=64), r"saved as \(\d.*config.json asks for"),
        (lambda folder: edit_config(folder, model_type="mine", auto_map={"AutoConfig": "m.C"}), r"--trust-remote-code"),
        (lambda folder: [(folder / name).unlink() for name in TOKENIZER_FILES], r"tokenizer.save_pretrained"),
    ],
)
def test_broken_folder_is_a_clear_error(tmp_path, tiny_reward_model, break_it, message):
    folder = shutil.copytree(tiny_reward_model, tmp_path / "copy")
    break_it(folder)
    with pytest.raises(ModelError, match=message) as caught:
        hf.load(str(folder), ModelOptions()).prepare()
    assert str(folder) in caught.value.message
    assert caught.value.hint


TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")


def edit_config(folder: Path, **changes: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


def test_hub_out_of_reach():
    with pytest.raises(ModelError, match=r"hf:nobody/nothing@v1: .*\n\nhint: the hub cannot be reached"):
        load_model("hf:nobody/nothing@v1")


def test_unknown_device(tiny_reward_model):
    with pytest.raises(ModelError, match=r"warp\n\nhint: devices are"):
        hf.load(str(tiny_reward_model), ModelOptions(device="warp")).prepare()


def test_chat_template_that_refuses_the_conversation(tmp_path):
    template = "{{ raise_exception('no assistant here') }}"
    model = hf.load(str(tiny_models.save_reward_model(tmp_path, chat_template=template)), ModelOptions())
    with pytest.raises(ModelError, match="no assistant here"):
        model.length(model.render(VIEWS[0]))


def test_chat_template_with_a_date_does_not_change_overnight(tmp_path):
    template = "{% if date_string is not defined %}{{ strftime_now('%d %b %Y') }}{% else %}{{ date_string }}{% endif %}"
    model = hf.load(str(tiny_models.save_reward_model(tmp_path, chat_template=template)), ModelOptions())
    assert model._checkpoint.tokenizer.decode(list(model._encode(model.render(VIEWS[0]))[0].ids)) == "26 Jul 2024"


def test_half_precision_scores_are_still_floats_and_close(model, tiny_reward_model):
    half = hf.load(str(tiny_reward_model), ModelOptions(dtype="bfloat16"))
    assert half.card.parameters["dtype"] == "bfloat16"
    assert scores(half, VIEWS) == pytest.approx(scores(model, VIEWS), rel=0.2, abs=0.3)
