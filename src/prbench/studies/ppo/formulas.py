"""The formulas of PPO, on batches of answers: masks, rewards per token, advantages, clipped losses."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional


def answer_mask(tokens: Tensor, ends: Sequence[int]) -> Tensor:
    """Return which positions belong to an answer: all up to its first end token, that one included.

    Example:
        >>> answer_mask(torch.tensor([[5, 9, 7, 9], [5, 6, 7, 8]]), [9]).int().tolist()
        [[1, 1, 0, 0], [1, 1, 1, 1]]
    """
    ended = torch.isin(tokens, torch.tensor(list(ends)))
    return ended.int().cumsum(1) - ended.int() == 0


def masked_mean(x: Tensor, mask: Tensor) -> Tensor:
    """Mean over the positions of the mask; 0 where it has none."""
    return (x * mask).sum() / mask.sum().clamp(min=1)


def whiten(x: Tensor, mask: Tensor) -> Tensor:
    """Mean 0 and variance 1 over the positions of the mask; 0 elsewhere.

    Example:
        >>> whiten(torch.tensor([1.0, 3.0, 99.0]), torch.tensor([True, True, False])).tolist()
        [-1.0, 1.0, 0.0]
    """
    centred = x - masked_mean(x, mask)
    variance = masked_mean(centred**2, mask)
    return torch.where(mask, centred * torch.rsqrt(variance + 1e-8), 0.0)


class Spread(NamedTuple):
    """The running spread of rewards within a question: with it, one nat of KL costs the same under every model."""

    squares: float = 0.0
    freedom: int = 0

    def seeing(self, deviations: Tensor, freedom: int) -> "Spread":
        """Take in the deviations of one step."""
        return Spread(self.squares + float((deviations**2).sum()), self.freedom + freedom)

    @property
    def value(self) -> float:
        """The standard deviation so far."""
        return float((self.squares / self.freedom) ** 0.5) if self.freedom else 0.0


def centred_rewards(rewards: Sequence[float | None], rollouts: int) -> tuple[Tensor, Tensor, int]:
    """Rewards minus the mean of their question, which of them there are, and their degrees of freedom.

    A question with fewer than two rewards says nothing about which answer is better, so its answers are left out.

    Example:
        >>> deviations, valid, freedom = centred_rewards([1.0, 3.0, None, 5.0], 2)
        >>> deviations.tolist(), valid.tolist(), freedom
        ([-1.0, 1.0, 0.0, 0.0], [True, True, False, False], 1)
    """
    valid = torch.tensor([reward is not None for reward in rewards]).view(-1, rollouts)
    valid &= valid.sum(1, keepdim=True) > 1
    known = torch.tensor([reward or 0.0 for reward in rewards], dtype=torch.float64).view(-1, rollouts)
    means = (known * valid).sum(1, keepdim=True) / valid.sum(1, keepdim=True).clamp(min=1)
    deviations = ((known - means) * valid).float().flatten()
    return deviations, valid.flatten(), int(valid.sum() - valid.any(1).sum())


def token_kl(policy: Tensor, base: Tensor) -> Tensor:
    """Return how much likelier the policy makes each token it wrote than the base model does; its mean estimates KL."""
    return policy - base


def token_rewards(rewards: Tensor, kl: Tensor, mask: Tensor, weight: float) -> Tensor:
    """The price of leaving the base model at every token, and the answer's reward at its last.

    Example:
        >>> mask = torch.tensor([[True, True, False]])
        >>> token_rewards(torch.tensor([1.0]), torch.tensor([[0.2, 0.4, 9.0]]), mask, 0.5).tolist()
        [[-0.1..., 0.8..., 0.0]]
    """
    last = mask & ~functional.pad(mask[:, 1:], (0, 1))
    return last * rewards[:, None] - weight * kl * mask


def gae(rewards: Tensor, values: Tensor, mask: Tensor, discount: float, trace: float) -> Tensor:
    """Advantages by generalised advantage estimation; an answer ends with its mask, and nothing comes after it.

    Example:
        >>> rewards, values = torch.tensor([[0.0, 1.0]]), torch.tensor([[0.5, 0.25]])
        >>> gae(rewards, values, torch.ones(1, 2, dtype=torch.bool), 1.0, 0.5).tolist()
        [[0.125, 0.75]]
    """
    values = values * mask
    advantages = torch.zeros_like(rewards)
    after, next_value = torch.zeros(len(rewards)), torch.zeros(len(rewards))
    for place in reversed(range(rewards.shape[1])):
        surprise = rewards[:, place] + discount * next_value - values[:, place]
        after = (surprise + discount * trace * after) * mask[:, place]
        advantages[:, place], next_value = after, values[:, place]
    return advantages


def clipped_objective(new: Tensor, old: Tensor, advantages: Tensor, mask: Tensor, clip: float) -> Tensor:
    """PPO's loss: a token's odds may gain only so much from one step.

    Example:
        >>> new, old = torch.log(torch.tensor([[0.3, 0.1]])), torch.log(torch.tensor([[0.2, 0.2]]))
        >>> mask = torch.ones(1, 2, dtype=torch.bool)
        >>> round(clipped_objective(new, old, torch.tensor([[1.0, 1.0]]), mask, 0.2).item(), 4)  # -(1.2 + 0.5) / 2
        -0.85
    """
    ratio = (new - old).exp()
    return masked_mean(torch.maximum(-advantages * ratio, -advantages * ratio.clamp(1 - clip, 1 + clip)), mask)


def clipped_value_loss(new: Tensor, old: Tensor, returns: Tensor, mask: Tensor, clip: float) -> Tensor:
    """Half the squared error, and no less than if the value had moved by at most `clip`.

    Example:
        >>> one = torch.ones(1, 1)
        >>> round(clipped_value_loss(one, 0 * one, one, one.bool(), 0.2).item(), 4)  # it went too far: ½ · 0.8²
        0.32
    """
    held = old + (new - old).clamp(-clip, clip)
    return 0.5 * masked_mean(torch.maximum((new - returns) ** 2, (held - returns) ** 2), mask)


def moved(new: Tensor, old: Tensor, mask: Tensor) -> Tensor:
    """KL from the old to the new policy per token, by an estimate that is never negative (ratio − 1 − log ratio)."""
    change = new - old
    return masked_mean(change.exp() - 1 - change, mask)


def chosen(odds: Tensor, tokens: Tensor) -> Tensor:
    """Return the log-probabilities of the tokens that were written."""
    return odds.gather(2, tokens[..., None])[..., 0]


def entropy(odds: Tensor, mask: Tensor) -> Tensor:
    """Mean entropy of the policy over the positions of the mask, from its log-probabilities."""
    return masked_mean(-(odds.exp() * odds).sum(-1), mask)


# ---------------------------------------------------------------------- one step
