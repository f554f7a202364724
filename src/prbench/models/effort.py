"""Effort of scoring: tokens, operations and seconds of a model's passes."""

from dataclasses import dataclass


@dataclass
class Effort:
    """Effort of scoring so far, and what it would have been without sharing; padding not counted.

    Example:
        >>> Effort(naive_tokens=30, computed_tokens=10) + Effort(naive_tokens=5, computed_tokens=5, seconds=0.5)
        Effort(naive_tokens=35, computed_tokens=15, flops=0.0, seconds=0.5)
    """

    naive_tokens: int = 0
    computed_tokens: int = 0
    flops: float = 0.0
    """Useful operations; 0 where they cannot be counted."""
    seconds: float = 0.0
    """Time in the model's passes: no loading, no tokenising."""

    def __add__(self, other: "Effort") -> "Effort":
        return Effort(
            self.naive_tokens + other.naive_tokens,
            self.computed_tokens + other.computed_tokens,
            self.flops + other.flops,
            self.seconds + other.seconds,
        )

    def __sub__(self, other: "Effort") -> "Effort":
        return self + Effort(-other.naive_tokens, -other.computed_tokens, -other.flops, -other.seconds)

    @property
    def tokens_per_s(self) -> float | None:
        """Tokens computed in a second of passes; None before the first."""
        return self.computed_tokens / self.seconds if self.seconds > 0 else None

    @property
    def flops_per_s(self) -> float | None:
        """Useful operations in a second of passes; None where they are not counted."""
        return self.flops / self.seconds if self.flops and self.seconds > 0 else None

    def share_of(self, peak_flops: float | None) -> float | None:
        """Return the part of the machine's peak that was used; None where one of the two is unknown.

        Example:
            >>> Effort(flops=3e9, seconds=2.0).share_of(2e9)
            0.75
        """
        return self.flops_per_s / peak_flops if self.flops_per_s and peak_flops else None
