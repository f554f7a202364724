"""Uses of a judgment, once its user and its items have their splits.

A user is asked about items of the user's own split; users of train also about test items (`seen-users`). A profile
shows items of the user's own split or of an earlier one: not even a profile shows a text of a later split.
"""

from typing import NamedTuple

import numpy as np

from prbench.build.arrays import Flags, Indices
from prbench.build.config import SEEN_USERS, TEST, TRAIN
from prbench.build.splits import NOWHERE


class Roles(NamedTuple):
    """Roles of each judgment: whether it may be asked, or shown, and the split in which it would be asked."""

    may_ask: Flags
    may_show: Flags
    split: Indices


def assign_roles(user_split: Indices, item_split: Indices) -> Roles:
    """Say what each judgment may be used for, given the split of its user and of its items.

    Example:
        >>> roles = assign_roles(np.array([0, 0, 2]), np.array([0, 2, 0]))
        >>> roles.may_ask.tolist(), roles.may_show.tolist(), roles.split.tolist()
        ([True, True, False], [True, False, True], [0, 3, -1])
    """
    own = (user_split == item_split) & (item_split != NOWHERE)
    seen = (user_split == TRAIN) & (item_split == TEST)
    split = np.where(own, user_split, np.where(seen, SEEN_USERS, NOWHERE))
    may_show = (item_split != NOWHERE) & (item_split <= user_split)
    return Roles(own | seen, may_show, split)
