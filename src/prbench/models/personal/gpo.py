"""`gpo`: a transformer that judges in context (group preference optimization, Zhao et al. 2024)."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from prbench.models.personal.method import Method, Omission, State, Width
from prbench.models.personal.person import Person


class GroupPreference(Method):
    """r(x, u) = h(T([start, posts…, (x⁺, x⁻)…, x]) at x): posts and labelled pairs are tokens, without an order.

    Candidates read the context and not each other, so a score does not depend on what else is asked.

    Args:
        width: Width of posts and items.
        hidden: Width of the tokens.
        layers: Depth.
        heads: Attention heads.
        dropout: Share of values left out while training.
    """

    name: ClassVar[str] = "gpo"

    def __init__(
        self, width: Width, *, hidden: int = 64, layers: int = 2, heads: int = 4, dropout: float = 0.2
    ) -> None:
        super().__init__(width)
        self.drop = Omission(dropout)
        self.start = nn.Parameter(torch.randn(1, 1, hidden) / 10)
        self.post = nn.Linear(width.post, hidden)
        self.chosen = nn.Linear(width.item, hidden)
        self.rejected = nn.Linear(width.item, hidden)
        self.item = nn.Linear(width.item, hidden)
        self.layers = nn.ModuleList(_Layer(hidden, heads, dropout) for _ in range(layers))
        self.head = nn.Linear(hidden, 1)

    def person(self, person: Person) -> State:
        """Return the tokens of the context that are there, and the context at each layer: once for all candidates."""
        shots = self.chosen(self.drop(person.chosen_BSF)) + self.rejected(self.drop(person.rejected_BSF))
        start = self.start.expand(len(person.posts_BPD), -1, -1)
        context = torch.cat([start, self.post(self.drop(person.posts_BPD)), shots], dim=1)
        there = torch.cat([torch.ones_like(start[..., 0]), person.posts_mask_BP, person.shots_mask_BS], dim=1)
        contexts = [context]
        for layer in self.layers[:-1]:
            contexts.append(layer(contexts[-1], contexts[-1], there))
        return there, *contexts

    def reward(self, state: State, items_BCF: Tensor) -> Tensor:
        """Return the transformer's output at each candidate."""
        there, *contexts = state
        asked = self.item(self.drop(items_BCF))
        for layer, context in zip(self.layers, contexts, strict=True):
            asked = layer(asked, context, there)
        return self.head(asked).squeeze(-1)


class _Layer(nn.Module):
    """Attention over the context and a perceptron, with residuals."""

    def __init__(self, hidden: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(hidden, heads, dropout=dropout, batch_first=True)
        self.perceptron = nn.Sequential(
            nn.Linear(hidden, 2 * hidden), nn.GELU(), nn.Dropout(dropout), nn.Linear(2 * hidden, hidden)
        )
        self.before, self.between, self.around = (nn.LayerNorm(hidden) for _ in range(3))

    def forward(self, tokens: Tensor, context: Tensor, there: Tensor) -> Tensor:
        keys = self.around(context)
        read, _ = self.attention(self.before(tokens), keys, keys, key_padding_mask=there == 0, need_weights=False)
        tokens = tokens + read
        out: Tensor = tokens + self.perceptron(self.between(tokens))
        return out
