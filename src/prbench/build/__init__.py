"""BUILD: suites out of what teams already have.

`build_mirror` turns a log of ratings or judgments into a mirrored suite, on which a model that ignores the user is
right exactly half of the time. It refuses a log without disagreement, and never writes half a suite.
"""

from prbench.build.card import Exactness, MirrorCard, SourceFile, SplitCounts
from prbench.build.config import MirrorConfig, parse_splits
from prbench.build.mirror import MirrorBuild, build_mirror
from prbench.build.preferences import Mirrorable, Preferences, count_mirrored

__all__ = [
    "Exactness",
    "MirrorBuild",
    "MirrorCard",
    "MirrorConfig",
    "Mirrorable",
    "Preferences",
    "SourceFile",
    "SplitCounts",
    "build_mirror",
    "count_mirrored",
    "parse_splits",
]
