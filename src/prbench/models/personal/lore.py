"""`lore`: a low-rank basis of rewards, and a few weights per user (Bose et al. 2025)."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from prbench.models.personal._fewshot import fit_weights
from prbench.models.personal.method import Method, Omission, State, Width
from prbench.models.personal.person import Person


class RewardBasis(Method):
    """r(x, u) = Σₖ wₖ(u) Rₖ(x): K rewards shared by all, K weights per user.

    The weights start from what the posts say and are fitted to labelled pairs by ridge logistic regression, which is
    all that a new user costs.

    Args:
        width: Width of posts and items.
        basis: K.
        dropout: Share of values left out while training.
        ridge: How strongly shots are held to what the posts say.
    """

    name: ClassVar[str] = "lore"

    def __init__(self, width: Width, *, basis: int = 24, dropout: float = 0.3, ridge: float = 1.0) -> None:
        super().__init__(width)
        self.ridge = ridge
        self.drop = Omission(dropout)
        self.basis = nn.Linear(width.item, basis, bias=False)
        self.key = nn.Linear(width.post, basis)
        self.weight = nn.Linear(width.post, basis)
        self.common = nn.Parameter(torch.zeros(basis))

    def person(self, person: Person) -> State:
        """The weights of each user, (B, K)."""
        posts = self.drop(person.posts_BPD)
        mask = person.posts_mask_BP[..., None]
        attention = torch.nan_to_num(self.key(posts).masked_fill(mask == 0, float("-inf")).softmax(1))
        weights = self.common + (attention * self.weight(posts)).sum(1)
        if person.shots_mask_BS.any():
            features = self.basis(person.shots_BSF)
            known = (features * weights[:, None]).sum(-1)
            weights = weights + fit_weights(features, person.shots_mask_BS, known, self.ridge)
        return (weights,)

    def reward(self, state: State, items_BCF: Tensor) -> Tensor:
        """Return the basis rewards, weighed by the user's state."""
        (weights,) = state
        return (self.basis(self.drop(items_BCF)) * weights[:, None]).sum(-1)
