"""`pal`: pluralistic alignment by ideal points (Chen et al. 2024): users are mixtures of prototypes."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from prbench.models.personal._fewshot import fit_weights
from prbench.models.personal.method import Method, Omission, State, Width
from prbench.models.personal.person import Person


class IdealPoint(Method):
    """r(x, u) = −‖f(x) − a(u)‖² / √M,  a(u) = Σₖ wₖ(u) pₖ,  w = softmax over K prototypes.

    The mixture comes from the posts; labelled pairs move it, by a few regularised Newton steps and past the simplex
    where they must, since ‖f(x⁻) − a‖² − ‖f(x⁺) − a‖² is linear in a and so in w.

    Args:
        width: Width of posts and items.
        prototypes: K.
        space: M, the width of the space in which items and users are points.
        dropout: Share of values left out while training.
        ridge: How strongly shots are held to what the posts say.
    """

    name: ClassVar[str] = "pal"

    def __init__(
        self, width: Width, *, prototypes: int = 24, space: int = 24, dropout: float = 0.3, ridge: float = 1.0
    ) -> None:
        super().__init__(width)
        self.ridge = ridge
        self.drop = Omission(dropout)
        self.place = nn.Linear(width.item, space)
        self.key = nn.Linear(width.post, prototypes)
        self.mixture = nn.Linear(width.post, prototypes)
        self.prototypes = nn.Parameter(torch.randn(prototypes, space))

    def person(self, person: Person) -> State:
        """The ideal point of each user, (B, M)."""
        posts = self.drop(person.posts_BPD)
        weights = torch.nan_to_num(
            self.key(posts).masked_fill(person.posts_mask_BP[..., None] == 0, float("-inf")).softmax(1)
        )
        mixture = (weights * self.mixture(posts)).sum(1).softmax(-1)
        if person.shots_mask_BS.any():
            mixture = mixture + self._judged(person, mixture @ self.prototypes)
        return (mixture @ self.prototypes,)

    def _judged(self, person: Person, ideal_BM: Tensor) -> Tensor:
        """Return the change of the mixture by the labelled pairs, (B, K)."""
        better, worse = self.place(person.chosen_BSF), self.place(person.rejected_BSF)
        scale = ideal_BM.shape[-1] ** 0.5
        offset = ((worse**2).sum(-1) - (better**2).sum(-1)) / scale
        slopes = 2 * (better - worse) / scale
        known = offset + (slopes * ideal_BM[:, None]).sum(-1)
        return fit_weights(slopes @ self.prototypes.T, person.shots_mask_BS, known, self.ridge)

    def reward(self, state: State, items_BCF: Tensor) -> Tensor:
        """Nearness to the user's ideal point."""
        (ideal,) = state
        distance = ((self.place(self.drop(items_BCF)) - ideal[:, None]) ** 2).sum(-1)
        return -distance / ideal.shape[-1] ** 0.5
