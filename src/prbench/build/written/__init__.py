"""WRITTEN: pairs that a model writes from users' histories.

`build_aspects` finds what users expect, `build_pairs` writes both answers, holds them against gates and publishes a
suite. Every reply is kept, so a build that was cut short goes on where it stopped and comes to the same pairs.
"""

from prbench.build.written.aspects import AspectsBuild, build_aspects
from prbench.build.written.card import AspectsCard
from prbench.build.written.estimate import BuildEstimate
from prbench.build.written.history import Bounds, History, read_history
from prbench.build.written.pairs import PairsBuild, PairsConfig, build_pairs
from prbench.build.written.publish import PairsCard
from prbench.build.written.replies import Decoding, SpendingLimits

__all__ = [
    "AspectsBuild",
    "AspectsCard",
    "Bounds",
    "BuildEstimate",
    "Decoding",
    "History",
    "PairsBuild",
    "PairsCard",
    "PairsConfig",
    "SpendingLimits",
    "build_aspects",
    "build_pairs",
    "read_history",
]
