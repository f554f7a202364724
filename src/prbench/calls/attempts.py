"""Limit on the attempts of a shard. One that kills its worker must neither stop the others nor go on for ever."""

from collections import Counter
from typing import Literal

from prbench.errors import ModelError

TRIES = 2
"""Number of tries of a whole shard; after that its open calls are asked one by one, each once, so that one call alone
fails."""
_PATIENCE = 3

Decision = Literal["go", "split", "give up"]


class Attempts:
    """Counts how often each shard was begun, and how many workers died in a row without an answer from anyone.

    Args:
        workers: How many there are. Each may have died of a whole shard as often as that is tried, and a few more of
            single calls, before the model is given up.

    Example:
        >>> attempts = Attempts(workers=2)
        >>> [attempts.begin(shard=0, whole=True) for _ in range(3)]
        ['go', 'go', 'split']
        >>> [attempts.begin(shard=1, whole=False) for _ in range(2)]
        ['go', 'give up']
    """

    def __init__(self, workers: int) -> None:
        self._begun: Counter[int] = Counter()
        self._limit = TRIES * workers + _PATIENCE
        self._silent_deaths = 0

    def begin(self, shard: int, *, whole: bool) -> Decision:
        """Whether a shard may be handed out once more: a whole one, or one call of a shard that was tried in vain."""
        self._begun[shard] += 1
        if self._begun[shard] <= (TRIES if whole else 1):
            return "go"
        return "split" if whole else "give up"

    def ended(self, shard: int) -> None:
        """Clear the deaths of a shard that ended: should it be asked again, it starts afresh."""
        del self._begun[shard]

    def died(self) -> None:
        """Count the death of a worker."""
        self._silent_deaths += 1

    def answered(self) -> None:
        """Note that a worker answered, so that the model is known to work."""
        self._silent_deaths = 0

    @property
    def hopeless(self) -> bool:
        """Whether workers only ever die."""
        return self._silent_deaths >= self._limit


def only_deaths(address: str, last_words: str) -> ModelError:
    """The error for a model that no worker survives."""
    return ModelError(
        f"{address}: workers die before they answer; the last one {last_words}",
        hint="what was answered is kept; fewer --workers need less memory, and --workers 1 shows what happens",
    )
