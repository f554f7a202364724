"""What an encoder is tuned for: the stances of texts, and of two answers the one that is not flawed.

For each axis a softmax over first pole, nothing, second pole. Of a text in pieces some piece must show the stance,
1 − Π(1 − P(piece)), and none the opposite. The axes that a text is not labelled for count as "nothing", with a weight:
a passage about money may also say something about time. Soundness f is one number: log σ(f(sound) − f(flawed)), and
sound answers to one question are held together.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from prbench.train.stance_labels import Labelled, Stance
from prbench.types import Pair

EQUAL = 0.1
"""Weight of the squared difference in f between sound answers to one question."""


class Answered(NamedTuple):
    """Answers to one question."""

    sound: tuple[str, ...]
    flawed: tuple[str, ...]


def answered(pairs: Sequence[Pair], flawed: Sequence[Pair]) -> list[Answered]:
    """The answers of the questions that have a flawed one.

    Args:
        pairs: Pairs of sound answers.
        flawed: Pairs whose rejected answer is flawed.
    """
    sound: dict[str, dict[str, None]] = {pair.question: {} for pair in flawed}
    for pair in pairs:
        if pair.question in sound:
            sound[pair.question] |= dict.fromkeys((pair.chosen, pair.rejected))
    worse: dict[str, dict[str, None]] = {question: {} for question in sound}
    for pair in flawed:
        sound[pair.question][pair.chosen] = None
        worse[pair.question][pair.rejected] = None
    return [Answered(tuple(sound[question]), tuple(worse[question])) for question in sorted(sound)]


class Heads(nn.Module):
    """Linear heads on a text's vector.

    Args:
        width: Width of the vectors.
        axes: Number of axes.
    """

    def __init__(self, width: int, axes: int) -> None:
        super().__init__()
        self.stances = nn.Linear(width, 3 * axes)
        self.flaw = nn.Linear(width, 1, bias=False)
        nn.init.zeros_(self.flaw.weight)

    def shares(self, vectors_ND: Tensor) -> Tensor:
        """First pole, nothing, second pole for each text and axis, (N, K, 3)."""
        logits: Tensor = self.stances(vectors_ND)
        return logits.unflatten(-1, (-1, 3)).softmax(-1)

    def arrays(self) -> dict[str, Tensor]:
        """The weights, as `embed:DIR#stances` reads them."""
        found = {"weight": self.stances.weight, "bias": self.stances.bias, "flaw": self.flaw.weight[0]}
        return {name: value.detach().contiguous() for name, value in found.items()}


class TuningLoss:
    """Loss of texts and answers.

    Args:
        heads: Heads on the vectors.
        vectors: Gives the vectors of texts.
        index: Place of each axis.
        silence: Weight of an axis that a text is not labelled for.
    """

    def __init__(
        self, heads: Heads, vectors: Callable[[Sequence[str]], Tensor], index: Mapping[str, int], silence: float
    ) -> None:
        self._heads, self._vectors, self._index, self._silence = heads, vectors, index, silence

    def __call__(self, texts: Sequence[Labelled], answers: Sequence[Answered]) -> Tensor:
        """Loss of a step."""
        loss = self.stances(texts) if texts else torch.zeros(())
        return loss + self.flaws(answers) if answers else loss

    def stances(self, batch: Sequence[Labelled]) -> Tensor:
        """Loss of what some texts show, a mean over the texts."""
        shares = self._heads.shares(self._vectors([piece for one in batch for piece in one.pieces]))
        losses, start = [], 0
        for one in batch:
            losses.append(self.one(shares[start : start + len(one.pieces)], one.stances))
            start += len(one.pieces)
        return torch.stack(losses).mean()

    def one(self, shares_PK3: Tensor, stances: Sequence[Stance]) -> Tensor:
        """Some piece shows each stance and none its opposite; about other axes there is nothing."""
        silent = torch.full((shares_PK3.shape[1],), self._silence)
        silent[[self._index[stance.axis] for stance in stances]] = 0.0
        loss = -(silent * _log(shares_PK3[..., 1]).mean(0)).sum()
        for axis, side in stances:
            known, opposite = (shares_PK3[:, self._index[axis], place] for place in (side + 1, 1 - side))
            loss = loss - _log(1 - (1 - known).prod()) - (_log(1 - opposite).mean() if len(known) > 1 else 0.0)
        return loss

    def flaws(self, batch: Sequence[Answered]) -> Tensor:
        """Loss of soundness: flawed answers stand below the sound ones of their question, and those stand together."""
        texts = list(dict.fromkeys(text for one in batch for text in (*one.sound, *one.flawed)))
        found = dict(zip(texts, self._heads.flaw(self._vectors(texts))[:, 0], strict=True))
        apart = [found[good] - found[bad] for one in batch for good in one.sound for bad in one.flawed]
        loss = nn.functional.softplus(-torch.stack(apart)).mean()
        alike = [found[two] - found[good] for one in batch for good, two in _couples(one.sound)]
        return loss + (EQUAL * torch.stack(alike).square().mean() if alike else 0.0)


def _couples(texts: Sequence[str]) -> list[tuple[str, str]]:
    return [(one, two) for place, one in enumerate(texts) for two in texts[:place]]


def _log(shares: Tensor) -> Tensor:
    return shares.clamp_min(1e-6).log()
