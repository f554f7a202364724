"""Protocol that both kinds of log serve: context rows and preferences to ask about."""

from collections import Counter
from typing import NamedTuple, Protocol

import numpy as np

from prbench.build.arrays import Indices, Numbers
from prbench.build.items import MirrorItems
from prbench.build.preferences import Mirrorable, Preferences
from prbench.types import Post


class LogDivision(NamedTuple):
    """A log divided into what is shown of a user and what the user is asked."""

    context: Indices
    """Rows of the log that are context."""
    context_user: Indices
    """The user of each context row."""
    asked: Preferences
    split: Indices
    """The split in which each preference is asked."""
    dropped: Counter[str]


class LabelledPair(NamedTuple):
    """A context judgment for methods that learn from labels: two items, and which of them the user preferred."""

    a: int
    b: int
    prefers_a: bool
    reason: str = ""


class Log(Protocol):
    """A log of ratings or of judgments."""

    @property
    def users(self) -> tuple[str, ...]:
        """Ids of all users, sorted."""
        ...

    @property
    def items(self) -> MirrorItems:
        """Texts of the items."""
        ...

    @property
    def dropped(self) -> Counter[str]:
        """Counts of what was left out while reading, by reason."""
        ...

    @property
    def kind(self) -> str:
        """Kind of the log: `ratings` or `judgments`."""
        ...

    def mirrorable(self) -> Mirrorable:
        """Return how much of the log has an opposite at all."""
        ...

    def item_weights(self) -> Numbers:
        """Return the weight of each item for the balance of splits."""
        ...

    def links(self) -> tuple[Indices, Indices]:
        """Items that were compared with each other."""
        ...

    def user_weights(self, item_split: Indices) -> Numbers:
        """Return how much each user (row) has to give in each split of the items (column)."""
        ...

    def divide(
        self, item_split: Indices, user_split: Indices, share: float, random: np.random.Generator
    ) -> LogDivision:
        """Set a share of each user's rows aside as context, no item on both sides for one user."""
        ...

    def post(self, row: int) -> Post:
        """A row in the user's voice."""
        ...

    def labelled_pairs(self, rows: Indices, most: int, random: np.random.Generator) -> list[LabelledPair]:
        """Context rows of one user as labelled pairs."""
        ...
