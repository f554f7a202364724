"""Few-shot logistic regression for a batch of users, by Newton steps: a strictly convex problem with one solution."""

import torch
from torch import Tensor

_STEPS = 8
_LENGTHS = tuple(0.5**halvings for halvings in range(10))
"""Shares of a Newton step that are tried: full ones overshoot for ever where a margin is large and wrong."""


def fit_weights(features_BSK: Tensor, mask_BS: Tensor, known_BS: Tensor, ridge: float) -> Tensor:
    """The Δ that minimises Σ_s log(1 + exp(−(known + features·Δ))) + ridge/2 ‖Δ‖², for each user.

    Args:
        features_BSK: How each labelled pair's margin grows with each weight.
        mask_BS: 1 where there is a pair.
        known_BS: The margins under the weights to start from.
        ridge: How strongly Δ is held to 0; without pairs it is exactly 0.

    Example:
        >>> one = fit_weights(torch.ones(1, 1, 1), torch.ones(1, 1), torch.zeros(1, 1), ridge=1.0)
        >>> bool((one - torch.sigmoid(-one)).abs().max() < 1e-5)  # where the gradient is 0
        True
    """
    batch, _, width = features_BSK.shape
    weights = features_BSK.new_zeros(batch, width)
    identity = ridge * torch.eye(width, dtype=features_BSK.dtype)
    for _ in range(_STEPS):
        margins = known_BS + (features_BSK * weights[:, None]).sum(-1)
        wrong = torch.sigmoid(-margins) * mask_BS
        gradient = ridge * weights - (features_BSK * wrong[..., None]).sum(1)
        curvature = (torch.sigmoid(margins) * torch.sigmoid(-margins) * mask_BS)[..., None]
        hessian = identity + features_BSK.transpose(1, 2) @ (features_BSK * curvature)
        step = -torch.linalg.solve(hessian, gradient[..., None]).squeeze(-1)
        slopes = (features_BSK * step[:, None]).sum(-1)
        weights = weights + step * _length(margins, slopes, mask_BS, weights, step, ridge)
    return weights


def _length(
    margins_BS: Tensor, slopes_BS: Tensor, mask_BS: Tensor, weights_BK: Tensor, step_BK: Tensor, ridge: float
) -> Tensor:
    """The share of its step, (B, 1), with which each user's objective is lowest."""
    with torch.no_grad():
        lengths_L = margins_BS.new_tensor(_LENGTHS)
        moved_BSL = margins_BS[..., None] + slopes_BS[..., None] * lengths_L
        losses_BL = (torch.nn.functional.softplus(-moved_BSL) * mask_BS[..., None]).sum(1)
        moved_BKL = weights_BK[..., None] + step_BK[..., None] * lengths_L
        objective_BL = losses_BL + ridge / 2 * (moved_BKL**2).sum(1)
        # Near the solution all lengths are equal to rounding, and the full step is the right one.
        favour_L = 1 + 1e-5 * torch.arange(len(_LENGTHS), dtype=objective_BL.dtype)
        return lengths_L[(objective_BL * favour_L).argmin(1)][:, None]
