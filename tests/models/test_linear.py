"""Linear layers with arranged weights give what plain ones give, also after their weights were changed."""

import copy
import pickle

import pytest
import torch

from prbench.models.local import linear
from prbench.models.local.linear import PackedLinear, pack_linears


def _layers() -> torch.nn.Sequential:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(96, 128), torch.nn.GELU(), torch.nn.Linear(128, 64, bias=False))


def _packed(layers: torch.nn.Sequential) -> torch.nn.Sequential:
    pack_linears(layers)
    with torch.inference_mode():
        layers(torch.ones(1, 96))
    return layers


def _assert_same(layers: torch.nn.Sequential, plain: torch.nn.Sequential, shown: torch.Tensor) -> None:
    with torch.inference_mode():
        torch.testing.assert_close(layers(shown), plain(shown), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 96), (7, 96), (2, 300, 96), (96,), (0, 96)])
def test_products_are_those_of_a_plain_layer(shape):
    _assert_same(_packed(_layers()), _layers(), torch.randn(shape))


def test_rows_that_do_not_lie_side_by_side():
    _assert_same(_packed(_layers()), _layers(), torch.randn(8, 40, 96)[::2, ::3])


def test_weights_are_arranged_where_the_processor_takes_them():
    arranged = [layer._packed is not None for layer in _packed(_layers()) if isinstance(layer, PackedLinear)]
    assert arranged == [linear.can_arrange(torch.float32)] * 2


def test_a_weight_that_was_changed_is_arranged_anew():
    layers, plain = _packed(_layers()), _layers()
    for one in (layers, plain):
        with torch.no_grad():
            one[0].weight.mul_(3)
        one[2].weight.data = torch.full_like(one[2].weight, 0.5)
    _assert_same(layers, plain, torch.randn(5, 96))


def test_a_copy_is_its_own():
    layers = _packed(_layers())
    copied, plain = copy.deepcopy(layers), _layers()
    for one in (copied, plain):
        one[0].weight.data += 1
    _assert_same(copied, plain, torch.randn(5, 96))
    _assert_same(layers, _layers(), torch.randn(5, 96))
    _assert_same(pickle.loads(pickle.dumps(layers)), _layers(), torch.randn(5, 96))


def test_learning_goes_on_as_ever():
    layers, plain = _packed(_layers()), _layers()
    shown = torch.randn(5, 96)
    for one in (layers, plain):
        one(shown).square().sum().backward()
    torch.testing.assert_close(layers[0].weight.grad, plain[0].weight.grad)
    assert layers.state_dict().keys() == plain.state_dict().keys()


def test_half_precision_is_rounded_as_ever():
    layers, plain = _packed(_layers()).bfloat16(), _layers().bfloat16()
    with torch.inference_mode():
        shown = torch.randn(9, 96).bfloat16()
        torch.testing.assert_close(layers(shown).float(), plain(shown).float(), rtol=0.02, atol=0.02)


def test_large_models_are_not_copied(monkeypatch):
    monkeypatch.setattr(linear, "COPIED_BYTES", 1000)
    layers = _layers()
    pack_linears(layers)
    assert not any(isinstance(layer, PackedLinear) for layer in layers)


def test_a_weight_that_went_and_came_back_is_arranged_anew():
    layers, plain, shown = _packed(_layers()), _layers(), torch.randn(5, 96)
    for one in (layers, plain):
        one.bfloat16().float()
    for _ in range(20):
        layers.bfloat16().float()
        _assert_same(layers, plain, shown)


def test_a_rounded_weight_is_left_to_who_rounded_it():
    quantization = pytest.importorskip("torchao.quantization")
    layers = _packed(_layers())
    quantization.quantize_(layers, quantization.Int8WeightOnlyConfig())
    with torch.inference_mode():
        found = layers(torch.ones(2, 96))
    torch.testing.assert_close(found, _layers()(torch.ones(2, 96)).detach(), rtol=0.05, atol=0.05)
    assert layers[0]._packed is None


@pytest.mark.parametrize("error", [AttributeError, RuntimeError, TypeError])
def test_operators_that_are_not_there_are_not_used(monkeypatch, error):
    def missing(weight):
        raise error

    linear.can_arrange.cache_clear()
    monkeypatch.setattr(linear, "arranged", missing)
    try:
        assert not linear.can_arrange(torch.float32)
    finally:
        linear.can_arrange.cache_clear()
