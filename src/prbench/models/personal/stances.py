"""`stances`: users and answers on named axes, read by an encoder that was tuned to tell the poles apart.

The vectors must come from `embed:DIR#stances`: for each axis the probability that a text stands at the one pole and at
the other. There is little left to learn, so twenty users suffice, and what it believes of a user can be read off. With
`embed:DIR#stances+vectors` the encoder's own vector stands behind them and carries what all users like.
"""

from typing import ClassVar

import torch
from torch import Tensor, nn

from prbench.errors import ConfigError
from prbench.models.personal.method import Method, State, Width
from prbench.models.personal.person import Person, masked_mean


class Stances(Method):
    """r(x, u) = b(x) + Σₖ gₖ uₖ sₖ(x),  uₖ = tanh(cₖ (Σₚ aₖₚ sₖ(p) − mₖ) + hₖ Σ_shots (sₖ(x⁺) − sₖ(x⁻)) / (shots + 1)).

    sₖ is P(second pole) − P(first pole) of a piece or of an answer. The attention aₖ over the pieces of the posts grows
    with P(first) + P(second): most of what people write says nothing about a given axis. b is linear in the rest of
    the answer's vector, where there is one.

    Args:
        width: Of posts and items; two values per axis come first.
        axes: How many; default: the vectors are stances and nothing else.
        sharpness: How strongly attention goes to pieces that take a stance.
        dropout: Share of the rest of the vector that b does not see while training.
    """

    name: ClassVar[str] = "stances"

    def __init__(self, width: Width, *, axes: int | None = None, sharpness: float = 6.0, dropout: float = 0.2) -> None:
        super().__init__(width)
        count = width.post // 2 if axes is None else axes
        if not 0 < 2 * count <= width.post or (axes is None and width.post % 2):
            raise ConfigError(
                f"stances needs two values for each of {count} axes, and these vectors have {width.post}",
                hint="tune an encoder with `prbench train encoder -o DIR` and name it as --encoder embed:DIR#stances",
            )
        self.axes, self.rest = count, width.post - 2 * count
        self.sharpness = nn.Parameter(torch.full((count,), sharpness))
        self.clarity = nn.Parameter(torch.full((count,), 3.0))
        self.middle = nn.Parameter(torch.zeros(count))
        self.gain = nn.Parameter(torch.full((count,), 3.0))
        self.shot_gain = nn.Parameter(torch.full((count,), 3.0))
        self.blind = nn.Sequential(nn.Dropout(dropout), nn.Linear(self.rest, 1)) if self.rest else None

    def person(self, person: Person) -> State:
        """Return the stance of the user on each axis, (B, K), between −1 and 1; 0 for a stranger."""
        first, second = self._poles(person.posts_BPD)
        mask = person.posts_mask_BP[..., None]
        logits = (self.sharpness * (first + second)).masked_fill(mask == 0, float("-inf"))
        attention = torch.nan_to_num(logits.softmax(1))
        told = ((second - first) * attention).sum(1) - self.middle * attention.sum(1)
        count = person.shots_mask_BS.sum(1, keepdim=True)
        judged = masked_mean(self._stance(person.shots_BSF), person.shots_mask_BS) * count / (count + 1)
        return (torch.tanh(self.clarity * told + self.shot_gain * judged),)

    def reward(self, state: State, items_BCF: Tensor) -> Tensor:
        """Return the stances of the item, weighed by the user's, and what all users like."""
        (user,) = state
        rewards = (self.gain * user[:, None] * self._stance(items_BCF)).sum(-1)
        if self.blind is None:
            return rewards
        return rewards + self.blind(items_BCF[..., 2 * self.axes : self.width.post]).squeeze(-1)

    def _stance(self, items: Tensor) -> Tensor:
        first, second = self._poles(items)  # the question stands behind the answer and takes no side
        return second - first

    def _poles(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        shares = vectors[..., : 2 * self.axes] / self.width.post**0.5  # the reader scales vectors; these are shares
        first, second = shares.chunk(2, dim=-1)
        return first, second
