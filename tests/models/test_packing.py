"""Texts in one row through a BERT, and padded through an encoder of another kind: what each sees is itself alone."""

import pytest
import torch
from transformers import BertConfig, BertModel, RobertaConfig, RobertaModel

from prbench.models.local import packing

PIECES = [[5, 6, 7, 8, 9, 10, 11], [5, 6], [9, 8], [12, 5, 6, 4]]
SIZES = {
    "vocab_size": 20,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "initializer_range": 0.5,
}


@pytest.mark.parametrize(
    ("model", "packed"), [(BertModel(BertConfig(**SIZES)), True), (RobertaModel(RobertaConfig(**SIZES)), False)]
)
def test_each_text_comes_out_as_if_it_were_alone(model: torch.nn.Module, packed: bool) -> None:
    model.eval()
    assert packing.is_packed(model) == packed
    with torch.inference_mode():
        states = packing.embedded(model, PIECES, "cpu")
        lower = packing.through(states, model.encoder.layer[:1], packed=packed)
        found = packing.through(lower, model.encoder.layer[1:], packed=packed)
        for piece, own in zip(PIECES, found, strict=True):
            alone = model(input_ids=torch.tensor([piece])).last_hidden_state[0]
            assert own.shape == alone.shape
            assert torch.allclose(own, alone, atol=1e-5)


def test_a_model_with_blocks_of_its_own_and_a_decoder_are_given_padded_texts() -> None:
    class Other(BertModel):
        """A model that calls itself a BERT."""

    assert not packing.is_packed(Other(BertConfig(**SIZES)))
    assert not packing.is_packed(BertModel(BertConfig(**SIZES, is_decoder=True)))


def test_one_token_and_a_row_longer_than_the_model_reads() -> None:
    model = BertModel(BertConfig(**SIZES, max_position_embeddings=16)).eval()
    pieces = [[5], *([[7, 8, 9, 10, 11, 12]] * 8)]
    with torch.inference_mode():
        found = packing.through(packing.embedded(model, pieces, "cpu"), model.encoder.layer, packed=True)
        for piece, own in zip(pieces[:2], found[:2], strict=True):
            assert torch.allclose(own, model(input_ids=torch.tensor([piece])).last_hidden_state[0], atol=1e-5)


def test_in_one_row_dropout_acts_in_training_alone_and_gradients_flow() -> None:
    torch.manual_seed(0)
    model = BertModel(BertConfig(**SIZES, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.5))
    first = model.encoder.layer[0].attention.self.query.weight

    def last(*, learning: bool) -> torch.Tensor:
        model.train(learning)
        return torch.cat(packing.through(packing.embedded(model, PIECES, "cpu"), model.encoder.layer, packed=True))

    assert torch.equal(last(learning=False), last(learning=False))
    assert not torch.equal(last(learning=True), last(learning=True))
    last(learning=True).square().sum().backward()
    assert first.grad is not None
    assert first.grad.abs().sum() > 0
