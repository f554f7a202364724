"""`bt`: one reward for all users (Bradley and Terry 1952). On mirrored pairs it must stay at ½."""

from typing import ClassVar

from torch import Tensor, nn

from prbench.models.personal.method import Method, State, Width
from prbench.models.personal.person import Person


class BradleyTerry(Method):
    """r(x, u) = w·x + m(x), with a linear part and a small perceptron; the user is not read.

    Args:
        width: Width of posts and items.
        hidden: Width of the perceptron.
        dropout: Share of an item's values left out while training.
    """

    name: ClassVar[str] = "bt"
    reads_user: ClassVar[bool] = False

    def __init__(self, width: Width, *, hidden: int = 64, dropout: float = 0.2) -> None:
        super().__init__(width)
        self.linear = nn.Linear(width.item, 1)
        self.perceptron = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(width.item, hidden), nn.GELU(), nn.Linear(hidden, 1)
        )

    def person(self, person: Person) -> State:
        """Return an empty state, since nothing is known of a user."""
        return ()

    def reward(self, state: State, items_BCF: Tensor) -> Tensor:
        """Return the reward of each item, the same for every user."""
        return (self.linear(items_BCF) + self.perceptron(items_BCF)).squeeze(-1)
