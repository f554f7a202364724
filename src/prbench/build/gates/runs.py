"""Words in a row that two texts share: the measure behind copying and leaking.

What the question says as well is no copy: an answer may take up the words that it was asked in.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from prbench.texts import Hashes, Shingles, words


class Run(NamedTuple):
    """Run of a text's words, so many in a row."""

    length: int
    words: str


class Runs:
    """Finds shared runs; every text is read once.

    Example:
        >>> post = "Since the flood we keep the old piano in the upstairs bathroom."
        >>> Runs().longest([post], "Well, keep the old piano in the attic.", "Where to?", 4)
        Run(length=6, words='keep the old piano in the')
        >>> Runs().longest([post], "Keep the old piano dry.", "Should I keep the old piano?", 4) is None
        True
    """

    def __init__(self) -> None:
        self.shingles = Shingles()

    def longest(self, sources: Sequence[str], answer: str, question: str, least: int) -> Run | None:
        """The longest run of at least `least` words that the answer shares with a source, but not with the question."""
        return self.longest_of(self.index(sources, least), answer, question, least)

    def index(self, sources: Sequence[str], least: int) -> Hashes:
        """All runs of `least` words of some texts, once each."""
        return np.unique(np.concatenate([np.zeros(0, np.uint64), *(self.shingles.of(text, least) for text in sources)]))

    def longest_of(self, index: Hashes, answer: str, question: str, least: int) -> Run | None:
        """Return the longest run as `longest` does, for sources that have been indexed."""
        runs = self.shingles.of(answer, least)
        shared = _stand_in(index, runs)
        if not shared.any():
            return None
        own = shared & ~np.isin(runs, self.shingles.of(question, least))
        if not own.any():
            return None
        edges = np.flatnonzero(np.diff(np.concatenate([[False], shared, [False]]).astype(np.int8)))
        stretches = [(start, end) for start, end in edges.reshape(-1, 2).tolist() if own[start:end].any()]
        start, end = max(stretches, key=lambda stretch: stretch[1] - stretch[0])
        length = end - start + least - 1
        return Run(length, " ".join(words(answer)[start : start + length]))


def _stand_in(index: Hashes, runs: Hashes) -> NDArray[np.bool_]:
    """Return which of the runs are in a sorted index."""
    if not len(index):
        return np.zeros(len(runs), dtype=np.bool_)
    places = np.minimum(np.searchsorted(index, runs), len(index) - 1)
    return np.asarray(index[places] == runs)


def quote(text: str, most: int = 12) -> str:
    """The first words of a run, for a reason."""
    parts = text.split()
    return "“" + " ".join(parts[:most]) + ("…”" if len(parts) > most else "”")
