"""The few-shot solver finds the minimum, whatever the margins it starts from."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from prbench.models.personal._fewshot import fit_weights


def _objective(weights: torch.Tensor, features: torch.Tensor, mask: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
    margins = known + (features * weights[:, None]).sum(-1)
    return (torch.nn.functional.softplus(-margins) * mask).sum(1) + 0.5 * (weights**2).sum(1)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), scale=st.sampled_from([0.1, 1.0, 3.0, 30.0]))
def test_never_worse_than_where_it_started_and_near_the_minimum(seed: int, scale: float) -> None:
    random = torch.Generator().manual_seed(seed)
    features = torch.randn(3, 5, 4, generator=random) * scale
    known = torch.randn(3, 5, generator=random) * scale * 2
    mask = torch.tensor([[1.0] * 5, [1.0, 1.0, 0.0, 0.0, 0.0], [0.0] * 5])
    found = fit_weights(features, mask, known, ridge=1.0)
    reached = _objective(found, features, mask, known)
    assert (reached <= _objective(torch.zeros_like(found), features, mask, known) + 1e-4).all()
    assert torch.equal(found[2], torch.zeros(4)), "nothing judged, nothing moved"
    if scale <= 1:
        weights = found.clone().requires_grad_()
        (slope,) = torch.autograd.grad(_objective(weights, features, mask, known).sum(), weights)
        assert float(slope.abs().max()) < 1e-3


def test_a_margin_that_is_large_and_wrong_is_not_jumped_over_for_ever() -> None:
    found = fit_weights(torch.full((1, 1, 1), 30.0), torch.ones(1, 1), torch.full((1, 1), -50.0), ridge=1.0)
    assert 1.6 < float(found) < 2.0


def test_users_do_not_depend_on_each_other() -> None:
    random = torch.Generator().manual_seed(3)
    features, known = torch.randn(4, 6, 3, generator=random), torch.randn(4, 6, generator=random)
    mask = (torch.rand(4, 6, generator=random) < 0.7).float()
    together = fit_weights(features, mask, known, ridge=0.5)
    alone = torch.cat([fit_weights(features[[i]], mask[[i]], known[[i]], ridge=0.5) for i in range(4)])
    assert torch.allclose(together, alone, atol=1e-5)
