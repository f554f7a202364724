"""What an encoder is tuned for: the stances of texts, what two answers differ in, and which of them is not flawed.

For each axis a softmax over first pole, nothing, second pole. Of a text in pieces some piece must show the stance,
1 − Π(1 − P(piece)), and none the opposite. The axes that a text is not labelled for count as "nothing", with a weight:
a passage about money may also say something about time. What answers a and b differ in is a softmax over axes and
sides of gₖ(|a − b|) ± mₖ(a − b), as in `contrast`. Soundness f is one number: log σ(f(sound) − f(flawed)), and
sound answers to one question are held together, those that differ in something known among them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from prbench.data.passages import SoundAndFlawed
from prbench.train.stance_labels import Difference, Labelled, Stance
from prbench.types import Pair

EQUAL = 0.1
"""Weight of the squared difference in f between sound answers to one question, or to one situation."""


class Answered(NamedTuple):
    """Answers to one question."""

    sound: tuple[str, ...]
    flawed: tuple[str, ...]


def answered(pairs: Sequence[Pair], flawed: Sequence[Pair], written: Sequence[SoundAndFlawed] = ()) -> list[Answered]:
    """The answers of the questions that have a flawed one.

    Args:
        pairs: Pairs of sound answers.
        flawed: Pairs whose rejected answer is flawed.
        written: Questions with their answers, as they were written.
    """
    sound: dict[str, dict[str, None]] = {pair.question: {} for pair in flawed}
    for pair in pairs:
        if pair.question in sound:
            sound[pair.question] |= dict.fromkeys((pair.chosen, pair.rejected))
    worse: dict[str, dict[str, None]] = {question: {} for question in sound}
    for pair in flawed:
        sound[pair.question][pair.chosen] = None
        worse[pair.question][pair.rejected] = None
    found = [Answered(tuple(sound[question]), tuple(worse[question])) for question in sorted(sound)]
    return [*found, *(Answered(tuple(one.sound), tuple(one.flawed)) for one in written)]


class Heads(nn.Module):
    """Linear heads on a text's vector.

    Args:
        width: Width of the vectors.
        axes: Number of axes.
    """

    def __init__(self, width: int, axes: int) -> None:
        super().__init__()
        self.stances = nn.Linear(width, 3 * axes)
        self.margin = nn.Linear(width, axes, bias=False)
        self.size = nn.Linear(width, axes)
        self.flaw = nn.Linear(width, 1, bias=False)
        for layer in (self.margin, self.size, self.flaw):
            nn.init.zeros_(layer.weight)
        nn.init.zeros_(self.size.bias)

    def shares(self, vectors_ND: Tensor) -> Tensor:
        """First pole, nothing, second pole for each text and axis, (N, K, 3)."""
        logits: Tensor = self.stances(vectors_ND)
        return logits.unflatten(-1, (-1, 3)).softmax(-1)

    def apart(self, one_ND: Tensor, two_ND: Tensor) -> Tensor:
        """Logits of what texts differ in: the first on the second side of an axis, or on its first, (N, 2 K)."""
        change = one_ND - two_ND
        margin, size = self.margin(change), self.size(change.abs())
        return torch.cat([size + margin, size - margin], dim=-1)

    def arrays(self) -> dict[str, Tensor]:
        """The weights, as `embed:DIR#stances` and `contrast` read them."""
        found = {
            "weight": self.stances.weight,
            "bias": self.stances.bias,
            "sides": torch.stack([self.margin.weight.T, self.size.weight.T], dim=1),
            "sides_bias": self.size.bias,
            "flaw": self.flaw.weight[0],
        }
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

    def __call__(
        self, texts: Sequence[Labelled], differing: Sequence[Difference], answers: Sequence[Answered]
    ) -> Tensor:
        """Loss of a step."""
        loss = self.stances(texts) if texts else torch.zeros(())
        loss = loss + self.differences(differing) if differing else loss
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

    def differences(self, batch: Sequence[Difference]) -> Tensor:
        """Loss of what pairs of answers differ in, a mean over the pairs."""
        found = self._each([text for pair in batch for text in (pair.one, pair.two)])
        one = torch.stack([found[pair.one] for pair in batch])
        two = torch.stack([found[pair.two] for pair in batch])
        logits = self._heads.apart(one, two)
        labels = torch.zeros_like(logits)
        for row, pair in enumerate(batch):
            for axis, side in pair.stances:
                labels[row, self._index[axis] + (0 if side > 0 else len(self._index))] = 1 / len(pair.stances)
        loss = -(logits.log_softmax(-1) * labels).sum(-1).mean()
        return loss + EQUAL * self._heads.flaw(one - two).square().mean()  # both are sound

    def _each(self, texts: Sequence[str]) -> dict[str, Tensor]:
        """The vector of each distinct text."""
        distinct = list(dict.fromkeys(texts))
        return dict(zip(distinct, self._vectors(distinct), strict=True))

    def flaws(self, batch: Sequence[Answered]) -> Tensor:
        """Loss of soundness: flawed answers stand below the sound ones of their question, and those stand together."""
        vectors = self._each([text for one in batch for text in (*one.sound, *one.flawed)])
        found = {text: self._heads.flaw(vector)[0] for text, vector in vectors.items()}
        apart = [found[good] - found[bad] for one in batch for good in one.sound for bad in one.flawed]
        loss = nn.functional.softplus(-torch.stack(apart)).mean()
        alike = [found[two] - found[good] for one in batch for good, two in _couples(one.sound)]
        return loss + (EQUAL * torch.stack(alike).square().mean() if alike else 0.0)


def _couples(texts: Sequence[str]) -> list[tuple[str, str]]:
    return [(one, two) for place, one in enumerate(texts) for two in texts[:place]]


def _log(shares: Tensor) -> Tensor:
    return shares.clamp_min(1e-6).log()
