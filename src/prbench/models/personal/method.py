"""Protocol of trainable methods: a module makes a state of what is known of a user and rewards items by it."""

from abc import ABC, abstractmethod
from importlib import import_module
from importlib.metadata import entry_points
from inspect import signature
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from prbench.errors import ConfigError, did_you_mean
from prbench.models.personal.person import Person

State = tuple[Tensor, ...]


class Width(NamedTuple):
    """Width of the vectors that a method reads."""

    post: int
    item: int


class Omission(nn.Module):
    """Dropout whose mask is drawn in bytes, which is faster on a processor; the share is taken in 256ths.

    Args:
        share: Share of the values that are left out while training.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        if not 0 <= share < 1:
            raise ValueError(f"a share of {share} cannot be left out, only one from 0 to below 1")
        self.share = share

    def forward(self, values: Tensor) -> Tensor:
        """Return the values with some of them zero and the others larger, so that sums stay as they are on average."""
        left_out = round(256 * self.share)
        if not self.training or not left_out:
            return values
        count = values.numel()
        drawn = torch.empty((count + 7) // 8, dtype=torch.int64).random_(-(2**63), None).view(torch.uint8)
        kept = drawn[:count].view(values.shape) >= left_out
        return values * kept.mul(256 / (256 - left_out))


class Method(nn.Module, ABC):
    """A personalized Bradley–Terry model over vectors.

    P(a ≻ b | user) = σ(r(a, user) − r(b, user)); a method is what it makes of "user".
    """

    name: ClassVar[str]
    reads_user: ClassVar[bool] = True
    """Whether a user changes any score at all."""

    def __init__(self, width: Width) -> None:
        super().__init__()
        self.width = width

    @abstractmethod
    def person(self, person: Person) -> State:
        """Return the state of each user, once for all candidates; adapts to the shots where there are any."""

    @abstractmethod
    def reward(self, state: State, items_BCF: Tensor) -> Tensor:
        """Reward of each candidate for its user, (B, C)."""

    def loss(self, person: Person, pairs_N2F: Tensor, owner_N: Tensor) -> Tensor:
        """Negative log-likelihood of pairs (chosen first), with what the method adds to it; a user may have several."""
        return bradley_terry(self.reward(of_owners(self.person(person), owner_N), pairs_N2F))


def of_owners(state: State, owner_N: Tensor) -> State:
    """Return the states of users as rows of their pairs.

    Example:
        >>> of_owners((torch.tensor([[1.0], [2.0]]),), torch.tensor([1, 1, 0]))[0].tolist()
        [[2.0], [2.0], [1.0]]
    """
    return tuple(part[owner_N] for part in state)


def bradley_terry(rewards_B2: Tensor) -> Tensor:
    """−log σ(r_chosen − r_rejected), the mean over pairs.

    Example:
        >>> round(bradley_terry(torch.tensor([[0.0, 0.0]])).item(), 4)
        0.6931
    """
    return nn.functional.softplus(rewards_B2[:, 1] - rewards_B2[:, 0]).mean()


GROUP = "prbench.methods"
METHODS: dict[str, str] = {
    "bt": "prbench.models.personal.bt:BradleyTerry",
    "user-bt": "prbench.models.personal.user_bt:UserBradleyTerry",
    "vpl": "prbench.models.personal.vpl:VariationalPreference",
    "pal": "prbench.models.personal.pal:IdealPoint",
    "lore": "prbench.models.personal.lore:RewardBasis",
    "stances": "prbench.models.personal.stances:Stances",
    "gpo": "prbench.models.personal.gpo:GroupPreference",
}
"""Methods over vectors, by name; `cross` reads text and has a module of its own."""


def methods() -> dict[str, str]:
    """All methods over vectors: built in, and those that installed packages offer in the group `prbench.methods`."""
    return {**{point.name: point.value for point in entry_points(group=GROUP)}, **METHODS}


def make(name: str, width: Width, settings: dict[str, Any], seed: int) -> Method:
    """A method with fresh weights, the same for the same seed.

    Example:
        >>> make("bt", Width(3, 6), {}, seed=0).name
        'bt'
    """
    known = methods()
    if name not in known:
        raise ConfigError(f"unknown method {name!r}", hint=did_you_mean(name, known))
    module, _, attribute = known[name].partition(":")
    kind = getattr(import_module(module), attribute)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            found: Method = kind(width, **settings)
        except (AssertionError, RuntimeError, TypeError, ValueError) as error:  # what torch raises for widths
            raise ConfigError(
                f"{name} does not take the settings {settings!r}: {error}", hint=f"its settings: {_settings(kind)}"
            ) from error
    return found


def _settings(kind: type[Method]) -> str:
    """The settings of a method with their defaults, for messages."""
    parameters = signature(kind).parameters.values()
    return ", ".join(f"{known.name}={known.default}" for known in parameters if known.kind is known.KEYWORD_ONLY)
