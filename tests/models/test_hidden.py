"""Hidden states as vectors: `lm:` and `hf:` where an encoder is asked for."""

from pathlib import Path

import numpy as np
import pytest
import torch

import tiny_models
from prbench.config import ModelOptions
from prbench.errors import ModelError
from prbench.models.registry import load_encoder

TEXTS = ["Which tea should I drink?", "Walk.", "My knees hurt after running, so I walk to the lake.", "Walk."]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.save_encoder(tmp_path_factory.mktemp("bert"))


def _by_hand(folder: Path, text: str, kind: str) -> np.ndarray:
    """One text alone, straight from transformers: the mean over the tokens that are the text's own."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    fields = tokenizer(text, return_tensors="pt", return_special_tokens_mask=True)
    own = fields.pop("special_tokens_mask")[0] == 0
    with torch.inference_mode():
        states = model(input_ids=fields["input_ids"]).last_hidden_state[0]
    mean = states[own].mean(0).numpy()
    return mean / np.linalg.norm(mean)


@pytest.mark.parametrize("scheme", ["lm", "hf"])
def test_the_mean_of_the_texts_own_states_in_any_batch(
    scheme: str, tiny_policy: Path, tiny_reward_model: Path, bert: Path
) -> None:
    for folder in (tiny_policy,) if scheme == "lm" else (tiny_reward_model, bert):
        rows = load_encoder(f"{scheme}:{folder}").encode(TEXTS)
        assert rows.shape == (4, 32)
        assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
        for row, text in zip(rows, TEXTS, strict=True):
            assert np.allclose(row, _by_hand(folder, text, scheme), atol=1e-5)
        narrow = load_encoder(f"{scheme}:{folder}", ModelOptions(batch_tokens=1)).encode(TEXTS)
        assert np.allclose(rows, narrow, atol=1e-5)


def test_what_follows_a_mode_or_a_label_is_ignored(tiny_policy: Path, tiny_reward_model: Path) -> None:
    for address, mark in ((f"lm:{tiny_policy}", "#loglik"), (f"hf:{tiny_reward_model}", "#label=0")):
        one, other = load_encoder(address), load_encoder(address + mark)
        assert one.name == other.name
        assert np.array_equal(one.encode(TEXTS), other.encode(TEXTS))


def test_a_text_longer_than_the_window_is_read_in_pieces(tiny_policy: Path) -> None:
    long = " ".join(TEXTS * 8)
    whole, pieces = (load_encoder(f"lm:{tiny_policy}", ModelOptions(window=w)).encode([long]) for w in (None, 16))
    assert not np.allclose(whole, pieces)
    assert np.isfinite(pieces).all()
    assert float((whole @ pieces.T).item()) > 0.2


def test_names_tell_apart_whatever_gives_other_vectors(tiny_reward_model: Path, tiny_policy: Path, bert: Path) -> None:
    names = [
        load_encoder(f"embed:{bert}").name,
        load_encoder(f"hf:{bert}").name,
        load_encoder(f"hf:{tiny_reward_model}").name,
        load_encoder(f"lm:{tiny_policy}").name,
        load_encoder(f"lm:{tiny_policy}", ModelOptions(dtype="bfloat16")).name,
        load_encoder(f"lm:{tiny_policy}", ModelOptions(window=16)).name,
    ]
    assert len(set(names)) == len(names)


def test_a_text_without_a_token_has_a_vector(tiny_policy: Path) -> None:
    assert np.isfinite(load_encoder(f"lm:{tiny_policy}").encode(["", "tea"])).all()
    assert load_encoder(f"lm:{tiny_policy}").encode([]).shape == (0, 32)


def test_an_encoder_with_a_decoder_is_refused(tiny_policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from prbench.models.local.checkpoint import Checkpoint
    from prbench.models.local.hidden import HiddenStates

    checkpoint = Checkpoint.open(str(tiny_policy), "hf:both")
    checkpoint.config.is_encoder_decoder = True
    with pytest.raises(ModelError, match="hf:both: a model of encoder and decoder"):
        HiddenStates(checkpoint, ModelOptions())


def test_a_reward_model_is_no_language_model(tiny_reward_model: Path) -> None:
    with pytest.raises(ModelError, match="not as a causal language model"):
        load_encoder(f"lm:{tiny_reward_model}")
