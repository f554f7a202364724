"""What a judge may not have in common with whom it ranks, by whatever address either of them goes."""

import pytest

from prbench.graders import load_judge, shares, shares_training
from prbench.models import ModelCard
from study_world import world


def card(address, **parameters):
    return ModelCard(address=address, parameters=parameters)


@pytest.mark.parametrize(
    ("judge", "model", "name"),
    [
        (card("lm:smollm2#plain"), card("http:http://127.0.0.1:8000", model="lm:smollm2#rate"), "smollm2"),
        (card("chat:org/qwen@http://a/v1"), card("http:http://127.0.0.1:8000", model="org/qwen"), "org/qwen"),
        (card("stances:hf:a/b", encoder="hf:a/b"), card("hf:a/b@main"), "a/b"),
        (card("stances:hf:a/b@main", encoder="hf:a/b@main"), card("hf:a/b#label=1"), "a/b"),
        (card("chat:qwen@http://a/v1"), card("chat:qwen@http://b/v1#rate"), "qwen"),
        (card("chat:org/qwen@http://a/v1"), card("hf:org/qwen"), "org/qwen"),
        (card("chat:org/qwen@http://a/v1"), card("http:vllm:org/qwen@http://b#label=0"), "org/qwen"),
        (card("chat:org/qwen@http://a/v1"), card("dpo:org/tuned@main,org/qwen@main"), "org/qwen"),
        (card("chat:org/qwen@http://a/v1"), card("lm:adapter", base="lm:org/qwen@abc"), "org/qwen"),
    ],
)
def test_the_same_model_is_found_behind_two_addresses(judge, model, name):
    assert shares(judge, model) == f"the model {name!r}"


@pytest.mark.parametrize(
    ("judge", "model"),
    [
        (card("chat:org/qwen@http://a/v1"), card("chat:org/llama@http://a/v1#rate")),
        (card("chat:org/qwen@http://a/v1"), card("http:vllm:org/llama@http://a/v1")),
        (card("lm:smollm2#plain"), card("http:http://127.0.0.1:8000", model="personal:reference")),
        (card("stances:tfidf", encoder="tfidf"), card("http:http://127.0.0.1:8000", model="longer")),
        (card("stances:tfidf#passages", encoder="tfidf"), card("personal:reference", encoder="encoder#stances")),
    ],
)
def test_another_model_on_the_same_server_is_another_model(judge, model):
    assert shares(judge, model) is None


def test_a_local_folder_is_itself_however_it_is_written(tmp_path, monkeypatch):
    (tmp_path / "m@1").mkdir()
    monkeypatch.chdir(tmp_path)
    model = card(f"hf:{tmp_path / 'm@1'}")
    assert shares(card("stances:hf:m@1"), model) == f"the model {str(tmp_path / 'm@1')!r}"
    assert shares(card("stances:hf:m@2"), model) is None


def test_the_card_of_a_probe_says_which_split_it_was_trained_on():
    suite = world().filter(lambda pair: pair.tags["split"] == "train")
    training = load_judge("stances:tfidf", training=suite).card.parameters["training"]
    assert (training["suite"], training["split"]) == ("small", "train")
    unnamed = load_judge("stances:tfidf", training=list(suite)).card.parameters["training"]
    assert unnamed == {**training, "suite": ""}


@pytest.mark.parametrize(
    ("training", "found"),
    [
        ({"suite": "small", "split": "train", "pairs": 24}, "split 'train' of 'small'"),
        ({"suite": "generic+small", "split": "train"}, "split 'train' of 'small'"),
        ({"suite": "data/small", "split": "train"}, "split 'train' of 'small'"),
        ({"suite": "generic", "split": "train"}, None),
        ({"suite": "small", "split": "validation"}, None),
        ({}, None),
        (None, None),
    ],
)
def test_who_learnt_from_the_judges_split_is_found(training, found):
    suite = world().filter(lambda pair: pair.tags["split"] == "train")
    judge = load_judge("stances:tfidf", training=suite).card
    assert shares_training(judge, card("personal:x", training=training)) == found
    assert shares(judge, card("personal:x", training=training)) is None
    unnamed = load_judge("stances:tfidf", training=list(suite)).card
    assert shares_training(unnamed, card("personal:x", training=training)) is None
