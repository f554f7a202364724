"""`vpl`: variational preference learning (Poddar et al. 2024): a latent user inferred from context."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from prbench.models.personal.method import Method, Omission, State, Width, bradley_terry, of_owners
from prbench.models.personal.person import Person


class VariationalPreference(Method):
    """z ~ q(z | context) = N(μ, σ²);  loss = E_z[−log σ(r(x⁺, z) − r(x⁻, z))] + β KL(q ‖ N(0, 1)).

    Posts and labelled pairs are encoded one by one and summed, so the context is a set; with nothing known q is the
    prior, and the mean of q scores.

    Args:
        width: Width of posts and items.
        latent: Width of z.
        hidden: Width of the perceptrons.
        beta: Weight of the KL term.
        dropout: Share of values left out while training.
    """

    name: ClassVar[str] = "vpl"

    def __init__(
        self, width: Width, *, latent: int = 24, hidden: int = 96, beta: float = 0.02, dropout: float = 0.3
    ) -> None:
        super().__init__(width)
        self.beta = beta
        self.drop = Omission(dropout)
        self.post = nn.Sequential(nn.Linear(width.post, hidden), nn.GELU(), nn.Linear(hidden, 2 * latent, bias=False))
        self.shot = nn.Sequential(nn.Linear(width.item, hidden), nn.GELU(), nn.Linear(hidden, 2 * latent, bias=False))
        self.item = nn.Linear(width.item, latent, bias=False)
        self.decoder = nn.Sequential(nn.Linear(width.item + latent, hidden), nn.GELU(), nn.Linear(hidden, 1))

    def person(self, person: Person) -> State:
        """Mean and log-variance of z, (B, latent) each."""
        posts = self.post(self.drop(person.posts_BPD)) * person.posts_mask_BP[..., None]
        # Odd in the label: the same pair judged the other way round is the opposite evidence.
        shots = self.shot(self.drop(person.shots_BSF)) - self.shot(-self.drop(person.shots_BSF))
        shots = shots * person.shots_mask_BS[..., None]
        scale = (person.posts_mask_BP.sum(1) + 1).sqrt()[:, None], (person.shots_mask_BS.sum(1) + 1).sqrt()[:, None]
        mean, spread = (posts.sum(1) / scale[0] + shots.sum(1) / scale[1]).chunk(2, dim=-1)
        return mean, spread.clamp(-6, 2)

    def reward(self, state: State, items_BCF: Tensor) -> Tensor:
        """Reward under the mean of z, or under a draw of it while training."""
        mean, spread = state
        z = mean + torch.randn_like(mean) * (spread / 2).exp() if self.training else mean
        items = self.drop(items_BCF)
        joined = torch.cat([items, z[:, None].expand(-1, items.shape[1], -1)], dim=-1)
        return (self.item(items) * z[:, None]).sum(-1) + self.decoder(joined).squeeze(-1)

    def loss(self, person: Person, pairs_N2F: Tensor, owner_N: Tensor) -> Tensor:
        """The evidence lower bound, negated."""
        mean, spread = state = of_owners(self.person(person), owner_N)
        divergence = 0.5 * (mean**2 + spread.exp() - spread - 1).sum(-1).mean()
        return bradley_terry(self.reward(state, pairs_N2F)) + self.beta * divergence
