"""Few-shot logistic regression for a batch of users, by Newton steps: a strictly convex problem with one solution."""

import torch
from torch import Tensor

_STEPS = 8


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
        weights = weights - torch.linalg.solve(hessian, gradient[..., None]).squeeze(-1)
    return weights
