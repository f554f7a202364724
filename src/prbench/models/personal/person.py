"""Knowledge of the users of a batch, as padded tensors: pieces of their posts, and pairs they have judged.

Shape letters: B persons, P pieces, S shots (labelled pairs), C candidates, D width of a vector, F width of an item.
An item is an answer beside its question: the mean vector of the answer's pieces and the question's vector, joined.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from prbench.errors import ModelError
from prbench.types import Judgment


class Person(NamedTuple):
    """Knowledge of B users; an empty profile and no shots are a stranger."""

    posts_BPD: Tensor
    posts_mask_BP: Tensor
    """Mask of the pieces: 1 where there is one."""
    chosen_BSF: Tensor
    rejected_BSF: Tensor
    shots_mask_BS: Tensor
    """Mask of the shots: 1 where there is a labelled pair."""

    @property
    def shots_BSF(self) -> Tensor:
        """Difference of the chosen item from the rejected one."""
        return self.chosen_BSF - self.rejected_BSF


class Known(NamedTuple):
    """Knowledge of one user: rows of pieces, and of chosen and rejected items."""

    posts_PD: Tensor
    chosen_SF: Tensor
    rejected_SF: Tensor


def stack(persons: Sequence[Known]) -> Person:
    """Pad so many users to one batch.

    Example:
        >>> one = Known(torch.ones(2, 3), torch.ones(1, 6), torch.zeros(1, 6))
        >>> none = Known(torch.ones(0, 3), torch.ones(0, 6), torch.zeros(0, 6))
        >>> stack([one, none]).posts_mask_BP.tolist()
        [[1.0, 1.0], [0.0, 0.0]]
    """
    posts, posts_mask = _pad([person.posts_PD for person in persons])
    chosen, shots_mask = _pad([person.chosen_SF for person in persons])
    rejected, _ = _pad([person.rejected_SF for person in persons])
    return Person(posts, posts_mask, chosen, rejected, shots_mask)


def _pad(rows: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    most = max(len(row) for row in rows)
    width = rows[0].shape[1]
    padded = torch.zeros(len(rows), most, width)
    mask = torch.zeros(len(rows), most)
    for index, row in enumerate(rows):
        padded[index, : len(row)] = row
        mask[index, : len(row)] = 1
    return padded, mask


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Mean over the second axis where the mask is 1; zero where it never is.

    Example:
        >>> masked_mean(torch.tensor([[[2.0], [4.0]]]), torch.tensor([[1.0, 0.0]])).item()
        2.0
    """
    weight = mask[..., None]
    return (values * weight).sum(1) / weight.sum(1).clamp(min=1)


def keep_judgments(judged: dict[str, tuple[Judgment, ...]], user: str, judgments: Sequence[Judgment]) -> None:
    """Replace what a user has judged; no judgments forget the user."""
    if odd := [found for found in judgments if not isinstance(found, Judgment)]:
        raise ModelError(
            f"fit_user for {user!r} was given {odd[0]!r}, which is no Judgment",
            hint="give prbench.Judgment(question=…, chosen=…, rejected=…) for each pair the user has judged",
        )
    judged.pop(user, None)
    if judgments:
        judged[user] = tuple(judgments)
