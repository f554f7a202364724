"""The `embed:` backend on a tiny encoder, then the real MiniLM."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer, BertConfig, BertModel

import tiny_models
from prbench.errors import ModelError
from prbench.models.local import embed
from prbench.models.registry import ModelOptions
from prbench.rank import Dense
from prbench.types import AnswerView, Channel, Post
from real_weights import real_model

TEXTS = ["Which tea?", "My knees hurt after running, so I walk to the lake.", "é", "Which tea?", "numbers first"]


def save_sentence_encoder(folder: Path, *, seed: int = 0) -> Path:
    words = tiny_models.pair_tokenizer()
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=128,
        initializer_range=0.4,
        pad_token_id=words.pad_token_id,
    )
    BertModel(config).save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_sentence_encoder(tmp_path_factory.mktemp("sentence_encoder"))


@pytest.fixture
def encoder(folder):
    return embed.load_encoder(str(folder))


def by_hand(folder: Path, text: str) -> np.ndarray:
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        states = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
    mean = states.mean(0).numpy()
    return mean / np.linalg.norm(mean)


def test_a_bert_that_was_saved_without_pooler_weights_is_read(folder, tmp_path):
    whole = BertModel.from_pretrained(folder)
    bare = BertModel(whole.config, add_pooling_layer=False)
    bare.load_state_dict({name: value for name, value in whole.state_dict().items() if "pooler" not in name})
    bare.save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path)
    vectors = (embed.load_encoder(str(name)).encode(TEXTS) for name in (folder, tmp_path))
    assert np.allclose(*vectors, atol=1e-6)


def test_vectors_equal_a_hand_computation_in_any_batch(encoder, folder):
    vectors = encoder.encode(TEXTS)
    assert vectors.shape == (5, 32)
    for text, vector in zip(TEXTS, vectors, strict=True):
        assert vector == pytest.approx(by_hand(folder, text), abs=1e-5)
    narrow = embed.load_encoder(str(folder), ModelOptions(batch_tokens=8))
    assert narrow.encode(TEXTS) == pytest.approx(vectors, abs=1e-5)


def test_every_distinct_text_is_embedded_once(encoder, monkeypatch):
    passes = []
    whole = encoder._forward
    monkeypatch.setattr(encoder, "_forward", lambda pieces: passes.append(len(pieces)) or whole(pieces))
    encoder.encode(TEXTS)
    encoder.encode([*TEXTS, "new"])
    assert sum(passes) == 5
    assert encoder.encode([]).shape == (0, 32)


def test_a_batch_on_a_processor_stays_within_its_caches(encoder, monkeypatch):
    padded = []
    whole = encoder._forward
    monkeypatch.setattr(
        encoder, "_forward", lambda pieces: padded.append(len(pieces) * max(map(len, pieces))) or whole(pieces)
    )
    encoder.encode([f"{'tea ' * 60}{number}" for number in range(100)])
    assert len(padded) > 1
    assert max(padded) <= 2048 < ModelOptions().batch_tokens


def test_long_texts_are_embedded_in_pieces_and_not_cut(folder):
    narrow = embed.load_encoder(str(folder), ModelOptions(window=8))
    start, end = "knees hurt garden tea lake chair", "numbers first"
    long, shorter = f"{start} {end}", start
    pieces, few = narrow._pieces([long, shorter])
    assert len(pieces) > len(few)
    assert [len(piece) for piece in pieces] == sorted((len(piece) for piece in pieces), reverse=True)
    assert all(len(piece) <= 8 for piece in pieces)
    one, other = narrow.encode([long, shorter])
    assert not np.allclose(one, other)
    assert np.linalg.norm(one) == pytest.approx(1, abs=1e-5)
    tokenizer = narrow.checkpoint.tokenizer
    inner = [token for piece in pieces for token in piece[1:-1]]
    assert inner == tokenizer(long, add_special_tokens=False)["input_ids"]


def test_encoder_ranks_posts(encoder):
    posts = [Post(id="1", text="numbers first and then the reason"), Post(id="2", text="Which tea?")]
    ranker = Dense(encoder)
    assert [post.id for post in ranker.rank("Which tea?", posts)] == ["2", "1"]
    assert ranker.name == f"dense:{encoder.name}"


def test_score_is_the_sum_of_cosines_that_are_shown(folder):
    rater = embed.load(str(folder), ModelOptions())
    posts = tuple(Post(id=str(number), text=text) for number, text in enumerate(TEXTS[:2]))
    views = [
        AnswerView("Tea?", "Chamomile."),
        AnswerView("Tea?", "Chamomile.", posts),
        AnswerView("Tea?", "Chamomile.", posts, ("short", "numbers first")),
    ]
    found = dict(rater.rate(views))
    answer, question = by_hand(folder, "Chamomile."), by_hand(folder, "Tea?")
    mean_post = np.mean([by_hand(folder, text) for text in TEXTS[:2]], axis=0)
    mean_plan = np.mean([by_hand(folder, text) for text in ("short", "numbers first")], axis=0)
    alone = float(answer @ question)
    to_posts = float(answer @ mean_post / np.linalg.norm(mean_post))
    to_plan = float(answer @ mean_plan / np.linalg.norm(mean_plan))
    expected = [alone, alone + to_posts, alone + to_posts + to_plan]
    assert [found[index].score for index in range(3)] == pytest.approx(expected, abs=1e-5)
    assert found[1].tokens_in > found[0].tokens_in
    assert rater.card.reads == {Channel.POSTS, Channel.PLAN}
    assert rater.parameter_count() == sum(p.numel() for p in AutoModel.from_pretrained(folder).parameters())


def test_pooling_is_read_from_the_folder(tmp_path):
    folder = save_sentence_encoder(tmp_path / "cls")
    (folder / "1_Pooling").mkdir()
    pooling = folder / "1_Pooling" / "config.json"
    pooling.write_text(json.dumps({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}))
    model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    with torch.inference_mode():
        state = model(**tokenizer("Which tea?", return_tensors="pt")).last_hidden_state[0, 0].numpy()
    (vector,) = embed.load_encoder(str(folder)).encode(["Which tea?"])
    assert vector == pytest.approx(state / np.linalg.norm(state), abs=1e-5)
    pooling.write_text(json.dumps({"pooling_mode_max_tokens": True}))
    with pytest.raises(ModelError, match="pools by max_tokens"):
        embed.load_encoder(str(folder))


def test_layers_that_are_not_computed_are_refused(tmp_path):
    folder = save_sentence_encoder(tmp_path / "dense")
    (folder / "modules.json").write_text(json.dumps([{"type": "sentence_transformers.models.Dense"}]))
    with pytest.raises(ModelError, match="a layer of kind 'Dense'"):
        embed.load_encoder(str(folder))


def test_real_encoder_knows_what_is_alike():
    encoder = embed.load_encoder(str(real_model("minilm")))
    assert encoder.window == 256
    cat, kitten, tax = encoder.encode(["A cat sleeps.", "The kitten is taking a nap.", "How do I file a tax return?"])
    assert cat @ kitten > 0.5 > cat @ tax
