"""Reward models that are no plain classifiers, each through `hf:` and held against a direct call of its own code."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, BertConfig, LlamaForCausalLM
from typer.testing import CliRunner

import own_code_modeling as own
import tiny_models
from prbench.cli.app import app
from prbench.config import ModelOptions
from prbench.errors import AddressError, ModelError
from prbench.models.lists import as_ranker
from prbench.models.registry import load_model
from prbench.types import AnswerView, ListView, PairView, Post

POST = Post(id="p1", text="I keep a small garden and I like short answers.")
VIEWS = [
    AnswerView("Which tea should I drink?", "Chamomile."),
    AnswerView("Which tea should I drink?", "Green tea keeps most people awake, so I would not." * 3),
    AnswerView("How do I repair a chair?", "Glue it.", posts=(POST,)),
]
TRUSTED = ModelOptions(trust_remote_code=True)


def save(folder: Path, kind: type, auto: str, *, config=None, words=None, **settings) -> Path:
    """A checkpoint of one of our models with its code beside it, as `auto_map` points to it."""
    words = words or tiny_models.tokenizer()
    torch.manual_seed(0)
    config = config or tiny_models.llama_config(len(words), **settings)
    kind(config).save_pretrained(folder)
    words.save_pretrained(folder)
    shutil.copy(own.__file__, folder / "own_code_modeling.py")
    saved = json.loads((folder / "config.json").read_text())
    saved["auto_map"] = {auto: f"own_code_modeling.{kind.__name__}"}
    if saved["model_type"] == own.OwnConfig.model_type:
        saved["auto_map"]["AutoConfig"] = "own_code_modeling.OwnConfig"
    (folder / "config.json").write_text(json.dumps(saved))
    return folder


def save_method(folder: Path, kind: type = own.MethodRewardModel) -> Path:
    words = tiny_models.tokenizer()
    plain = tiny_models.llama_config(len(words)).to_dict()
    plain.pop("model_type")
    return save(folder, kind, "AutoModel", config=own.OwnConfig(**plain, reward_token_id=5), words=words)


def scores(model, views):
    outcomes = dict(model.rate(views))
    assert [outcomes[place].status for place in range(len(views))] == ["ok"] * len(views)
    return [outcomes[place].score for place in range(len(views))]


def conversation(model, view):
    return [message._asdict() for message in model.render(view).messages]


def direct(folder: Path, kind: type, model, view):
    """The output of the model's own class for one conversation, with nothing of ours but the turn's text."""
    words = tiny_models.tokenizer()
    ids = words.apply_chat_template(conversation(model, view), return_dict=True, return_tensors="pt")
    with torch.inference_mode():
        return kind.from_pretrained(folder).eval()(**ids)


def test_a_method_of_the_model_is_called_with_tokenizer_and_conversation(tmp_path):
    folder = save_method(tmp_path)
    model = load_model(f"hf:{folder}", TRUSTED)
    network = own.MethodRewardModel.from_pretrained(folder).eval()
    expected = [network.get_score(tiny_models.tokenizer(), conversation(model, view)) for view in VIEWS]
    assert scores(model, VIEWS) == pytest.approx(expected, abs=1e-5)
    assert max(expected) - min(expected) > 0.1
    assert "the model's own get_score" in model.note
    assert "one by one" in model.note


@pytest.mark.parametrize(
    ("kind", "how"),
    [(own.BatchMethodRewardModel, "in plain batches"), (own.BrokenBatchRewardModel, "one by one")],
)
def test_a_list_is_asked_for_only_where_it_gives_the_same(tmp_path, kind, how):
    folder = save_method(tmp_path, kind)
    model = load_model(f"hf:{folder}", TRUSTED)
    network = kind.from_pretrained(folder).eval()
    expected = [network.get_score(tiny_models.tokenizer(), conversation(model, view)) for view in VIEWS]
    assert scores(model, VIEWS) == pytest.approx(expected, abs=1e-5)
    assert how in model.note


def test_a_gated_model_is_read_at_its_field_score(tmp_path):
    folder = save(tmp_path, own.GatedRewardModel, "AutoModelForSequenceClassification")
    model = load_model(f"hf:{folder}", TRUSTED)
    expected = [float(direct(folder, own.GatedRewardModel, model, view).score) for view in VIEWS]
    assert scores(model, VIEWS) == pytest.approx(expected, abs=1e-5)
    assert (
        "the field score of its output; prefixes are not shared, prompts are run in full, in plain batch" in model.note
    )
    assert scores(load_model(f"hf:{folder}#read=logits", TRUSTED), VIEWS) == pytest.approx(expected, abs=1e-5)


def test_logits_of_own_code_are_read_one_by_one_where_padding_changes_them(tmp_path):
    folder = save(tmp_path, own.DistributionRewardModel, "AutoModelForSequenceClassification")
    model = load_model(f"hf:{folder}", TRUSTED)
    expected = [float(direct(folder, own.DistributionRewardModel, model, view).logits) for view in VIEWS]
    assert scores(model, VIEWS) == pytest.approx(expected, abs=1e-5)
    assert "one by one, because padding changes its scores" in model.note


def test_without_the_option_the_error_names_repository_revision_and_option(tmp_path):
    folder = save(tmp_path, own.GatedRewardModel, "AutoModelForSequenceClassification")
    revision = load_model(f"hf:{folder}", TRUSTED).card.parameters["code"]["revision"]
    with pytest.raises(ModelError) as caught:
        load_model(f"hf:{folder}")
    assert f"own_code_modeling.GatedRewardModel in {folder} at revision {revision[:12]}" in caught.value.message
    assert "--trust-remote-code" in caught.value.hint


def test_the_code_is_named_on_standard_error_pinned_and_in_the_card(tmp_path, capsys):
    folder = save(tmp_path, own.GatedRewardModel, "AutoModelForSequenceClassification")
    model = load_model(f"hf:{folder}", TRUSTED)
    code = model.card.parameters["code"]
    assert f"runs code of {folder} at {code['revision'][:12]}" in capsys.readouterr().err
    assert code["repository"] == str(folder)
    assert code["classes"] == {"AutoModelForSequenceClassification": "own_code_modeling.GatedRewardModel"}
    with (folder / "own_code_modeling.py").open("a") as file:
        file.write("\n# edited\n")
    with pytest.raises(ModelError, match="was changed after it was opened"):
        model.prepare()
    edited = load_model(f"hf:{folder}", TRUSTED)
    assert edited.card.identity != model.card.identity


def test_code_of_another_repository_is_never_run(tmp_path):
    folder = save(tmp_path, own.GatedRewardModel, "AutoModelForSequenceClassification")
    config = json.loads((folder / "config.json").read_text())
    config["auto_map"] = {"AutoModelForSequenceClassification": "someone/else--model.Gated"}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="code of another repository, someone/else"):
        load_model(f"hf:{folder}", TRUSTED)


def test_a_classifier_that_transformers_has_runs_no_code_although_it_brings_some(tmp_path):
    folder = tiny_models.save_reward_model(tmp_path)
    (folder / "evil.py").write_text("raise SystemExit('ran')")
    config = json.loads((folder / "config.json").read_text())
    config["auto_map"] = {"AutoModelForSequenceClassification": "evil.LlamaForSequenceClassification"}
    (folder / "config.json").write_text(json.dumps(config))
    for options in (ModelOptions(), TRUSTED):
        model = load_model(f"hf:{folder}", options)
        assert len(scores(model, VIEWS)) == 3
        assert "code" not in model.card.parameters


def test_process_reward_models_are_refused(tmp_path):
    folder = save(tmp_path / "steps", own.StepRewardModel, "AutoModelForSequenceClassification")
    with pytest.raises(ModelError, match=r"logits of shape .*scores the steps[^$]*py:MODULE:ATTR"):
        load_model(f"hf:{folder}", TRUSTED).prepare()
    folder = tiny_models.save_reward_model(tmp_path / "named")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["Qwen2ForProcessRewardModel"]}))
    with pytest.raises(ModelError, match="saved as Qwen2ForProcessRewardModel: a process reward model"):
        load_model(f"hf:{folder}")


def pair_words():
    words = tiny_models.pair_tokenizer()
    words.add_special_tokens({"additional_special_tokens": ["<|source|>", "<|candidate1|>", "<|candidate2|>"]})
    return words


@pytest.fixture(scope="module")
def ranker(tmp_path_factory) -> Path:
    words = pair_words()
    source, first, second = words.convert_tokens_to_ids(["<|source|>", "<|candidate1|>", "<|candidate2|>"])
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    prefixes = {"source_prefix_id": source, "cand1_prefix_id": first, "cand2_prefix_id": second}
    config = BertConfig(vocab_size=len(words), max_position_embeddings=128, initializer_range=0.4, **shape, **prefixes)
    folder = tmp_path_factory.mktemp("ranker")
    return save(folder, own.PairRanker, "AutoModelForSequenceClassification", config=config, words=words)


PAIRS = [
    PairView("Which tea?", "A cup of chamomile.", "Green tea keeps most people awake."),
    PairView("How do I repair a chair?", "Glue it.", "Walk to the lake.", posts=(POST,)),
]


def test_a_pair_ranker_reads_both_answers_and_gives_a_margin(ranker):
    model = load_model(f"hf:{ranker}#read=pair", TRUSTED)
    words, network = AutoTokenizer.from_pretrained(ranker), own.PairRanker.from_pretrained(ranker).eval()
    found = dict(model.compare([*PAIRS, PAIRS[0].swap()]))
    for place, view in enumerate(PAIRS):
        turn = model.render(view).messages[0].content
        parts = [f"<|source|>{turn}", f"<|candidate1|>{view.first}", f"<|candidate2|>{view.second}"]
        ids = torch.tensor([[token for part in parts for token in words(part)["input_ids"]]])
        with torch.inference_mode():
            expected = float(network(input_ids=ids, attention_mask=torch.ones_like(ids)).logits)
        assert found[place].margin == pytest.approx(expected, abs=1e-5)
        assert found[place].verdict == ("first" if expected > 0 else "second")
        assert found[place].tokens_in == ids.shape[1] == model.length(model.render(view))
    assert abs(found[0].margin - found[2].margin) > 1e-3
    assert model.card.parameters["code"]["classes"] == {
        "AutoModelForSequenceClassification": "own_code_modeling.PairRanker"
    }
    assert "prefixes are not shared" in model.note


def test_a_pair_ranker_ranks_a_list_by_its_mean_margins(ranker):
    model = load_model(f"hf:{ranker}#read=pair", TRUSTED)
    answers = ("Chamomile.", "Green tea.", "Walk to the lake.")
    ((_, ranked),) = as_ranker(model).rank([ListView("Which tea?", answers)])
    margin = lambda a, b: next(model.compare([PairView("Which tea?", a, b)]))[1].margin  # noqa: E731
    for answer, score in zip(answers, ranked.scores, strict=True):
        others = [other for other in answers if other != answer]
        expected = sum(margin(answer, other) - margin(other, answer) for other in others) / 4
        assert score == pytest.approx(expected, abs=1e-5)


def test_a_pair_beyond_the_window_is_invalid(ranker):
    model = load_model(f"hf:{ranker}#read=pair", TRUSTED)
    ((_, outcome),) = model.compare([PairView("Which tea?", "tea " * 200, "Green.")])
    assert (outcome.status, outcome.verdict) == ("invalid", None)
    assert "exceeds the window of 128" in outcome.reason


def test_a_tokenizer_without_the_markers_is_no_pair_rankers(tmp_path):
    folder = tiny_models.save_encoder(tmp_path)
    with pytest.raises(ModelError, match=r"no token <\|source\|>[^$]*#read=letters"):
        load_model(f"hf:{folder}#read=pair")


def test_a_pair_preference_model_is_read_at_its_letters(tiny_policy):
    model = load_model(f"hf:{tiny_policy}#read=letters")
    view = PAIRS[0]
    prompt = model.render(view).messages[0].content
    assert prompt == f"[CONTEXT] {view.question} [RESPONSE A] {view.first} [RESPONSE B] {view.second}"
    assert model.card.address == f"hf:{tiny_policy}#read=letters"
    ((_, outcome),) = model.compare([view])
    words = tiny_models.tokenizer()
    ids = words.apply_chat_template(
        [{"role": "user", "content": prompt}], add_generation_prompt=True, return_dict=True, return_tensors="pt"
    )
    with torch.inference_mode():
        logits = AutoModelForCausalLM.from_pretrained(tiny_policy).eval()(**ids).logits[0, -1].double()
    letters = model._letters
    expected = torch.logsumexp(logits[list(letters[0])], 0) - torch.logsumexp(logits[list(letters[1])], 0)
    assert outcome.margin == pytest.approx(float(expected), abs=1e-4)
    ((_, ranked),) = as_ranker(model).rank([ListView(view.question, ("Chamomile.", "Green."))])
    assert ranked.scores[0] == pytest.approx(-ranked.scores[1], abs=1e-6)


@pytest.fixture(scope="module")
def generative(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("generative")
    words = tiny_models.tokenizer()
    words.add_tokens(["Yes", "No"])
    torch.manual_seed(3)
    LlamaForCausalLM(tiny_models.llama_config(len(words))).save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("address", ["hf:{}#read=yes-no", "lm:{}#yes-no"])
def test_a_generative_reward_model_is_read_at_yes_and_no(generative, address):
    model = load_model(address.format(generative))
    assert model.card.address == address.format(generative)
    words, network = AutoTokenizer.from_pretrained(generative), AutoModelForCausalLM.from_pretrained(generative).eval()
    yes, no = (words.convert_tokens_to_ids(word) for word in ("Yes", "No"))
    for view, score in zip(VIEWS, scores(model, VIEWS), strict=True):
        ids = words.apply_chat_template(
            conversation(model, view), add_generation_prompt=True, return_dict=True, return_tensors="pt"
        )
        with torch.inference_mode():
            logits = network(**ids).logits[0, -1]
        assert score == pytest.approx(float(logits[yes] - logits[no]), abs=1e-4)


def test_ways_that_are_not_there(tmp_path, tiny_reward_model):
    with pytest.raises(AddressError, match=r"unknown way of reading 'leters'\n\nhint: did you mean"):
        load_model(f"hf:{tiny_reward_model}#read=leters")
    with pytest.raises(ModelError, match="#read=score is for checkpoints with code of their own"):
        load_model(f"hf:{tiny_reward_model}#read=score")
    with pytest.raises(AddressError, match="a label is a column of logits"):
        load_model(f"hf:{tiny_reward_model}#read=pair,label=1")
    folder = save(tmp_path, own.DistributionRewardModel, "AutoModelForSequenceClassification")
    with pytest.raises(ModelError, match=r"output has no 'score' \(it has: logits\)"):
        load_model(f"hf:{folder}#read=score", TRUSTED).prepare()


def test_a_run_end_to_end_records_whose_code_ran(tmp_path, monkeypatch):
    monkeypatch.setenv("PRBENCH_CACHE", str(tmp_path / "cache"))
    folder = save(tmp_path / "gated", own.GatedRewardModel, "AutoModelForSequenceClassification")
    rows = [
        {
            "id": str(n),
            "user": f"u{n % 3}",
            "question": "Which tea?",
            "chosen": f"Green {n}.",
            "rejected": f"Black {n}.",
        }
        for n in range(6)
    ]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    command = [
        "run",
        "-m",
        f"hf:{folder}",
        "-s",
        str(tmp_path / "pairs.jsonl"),
        "-c",
        "none",
        "-o",
        str(tmp_path / "run"),
    ]
    refused = CliRunner().invoke(app, command)
    assert isinstance(refused.exception, ModelError)
    done = CliRunner().invoke(app, [*command, "--trust-remote-code", "--resamples", "100"])
    assert done.exit_code == 0, done.output
    assert f"runs code of {folder}" in done.output
    assert "the field score of its output" in done.output
    result = (tmp_path / "run" / "result.json").read_text()
    code = load_model(f"hf:{folder}", TRUSTED).card.parameters["code"]
    assert code["revision"] in result
    assert "trust_remote_code = true" in (tmp_path / "run" / "config.toml").read_text()
