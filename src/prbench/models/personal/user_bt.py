"""`user-bt`: a Bradley–Terry reward conditioned on the profile by attention over the pieces of the posts.

After the user-conditioned reward models that put a user vector beside the item (e.g. P-RLHF, Li et al. 2024); here the
vector is read from the posts, so that it is there for unseen users.
"""

from typing import ClassVar

import torch
from torch import Tensor, nn

from prbench.models.personal.method import Method, Omission, State, Width
from prbench.models.personal.person import Person, masked_mean


class UserBradleyTerry(Method):
    """r(x, u) = b(x) + Σₖ uₖ sₖ(x),  uₖ = tanh(Σₚ aₖₚ vₖ(p) + γ Σ_shots (sₖ(x⁺) − sₖ(x⁻)) / (shots + 1)).

    Each of K stances has an attention of its own over the pieces p of the posts (aₖ = softmax of kₖ(p)), and an item
    takes a stance sₖ(x). A labelled pair says directly on which side of each stance the user is.

    Args:
        width: Width of posts and items.
        stances: K.
        dropout: Share of values left out while training.
        blind: Whether there is a part b(x) that is the same for all users.
    """

    name: ClassVar[str] = "user-bt"

    def __init__(self, width: Width, *, stances: int = 24, dropout: float = 0.3, blind: bool = True) -> None:
        super().__init__(width)
        self.drop = Omission(dropout)
        self.key = nn.Linear(width.post, stances)
        self.value = nn.Linear(width.post, stances)
        self.stance = nn.Linear(width.item, stances, bias=False)
        self.blind = nn.Linear(width.item, 1) if blind else None
        self.shot_gain = nn.Parameter(torch.ones(stances))

    def person(self, person: Person) -> State:
        """Return the stances of the user, (B, K), between −1 and 1; 0 for a stranger."""
        posts = self.drop(person.posts_BPD)
        mask = person.posts_mask_BP[..., None]
        weights = torch.nan_to_num(self.key(posts).masked_fill(mask == 0, float("-inf")).softmax(1))
        told = (weights * self.value(posts)).sum(1)
        count = person.shots_mask_BS.sum(1, keepdim=True)
        judged = masked_mean(self.stance(person.shots_BSF), person.shots_mask_BS) * count / (count + 1)
        return (torch.tanh(told + self.shot_gain * judged),)

    def reward(self, state: State, items_BCF: Tensor) -> Tensor:
        """Return the stances of the item, weighed by the user's, and what all users like."""
        (user,) = state
        items = self.drop(items_BCF)
        rewards = (self.stance(items) * user[:, None]).sum(-1)
        return rewards if self.blind is None else rewards + self.blind(items).squeeze(-1)
