"""The pairs of a suite as a harness gets them: each with what one context shows of the user."""

from typing import NamedTuple

from prbench.config import RunConfig
from prbench.contexts import Unfit
from prbench.errors import ContextError
from prbench.models.python import wrap
from prbench.run import Session
from prbench.types import Choice, Pair, PairView


class ShownPair(NamedTuple):
    """A pair, and what a model is shown of it; the chosen answer stands first."""

    pair: Pair
    view: PairView


def shown_pairs(
    suite: str = "mirror", split: str = "test", context: str = "profile", limit: int | None = None, seed: int = 0
) -> list[ShownPair]:
    """Return the pairs of a suite as one context shows them.

    Args:
        suite: Name or file of a suite, as for `prbench run`.
        split: Part of it; `all` for all of it.
        context: One context that shows posts or nothing: `none`, `profile`, `other`, `opposite`, `recent@5` …
        limit: At most so many pairs; couples stay whole.
        seed: Of the sample, and of the users behind `other`.

    Example:
        >>> shown = shown_pairs(context="profile", limit=2)
        >>> [len(item.view.posts) > 0 for item in shown], shown[0].view.first == shown[1].view.second
        ([True, True], True)
    """
    config = RunConfig.of(
        suite=suite,
        split=None if split == "all" else split,
        model="a harness",
        contexts=[context],
        limit=limit,
        seed=seed,
    )
    session = Session(config, model=wrap(_reader, "a harness"))
    (only,), builder = session.contexts, session.builder()
    found = []
    for pair in session.suite:
        shown = builder.show(pair, only)
        if isinstance(shown, Unfit):
            raise ContextError(f"pair {pair.id!r} cannot be shown under {context}: {shown.reason}")
        found.append(ShownPair(pair, shown.view))
    return found


def _reader(question: str, first: str, second: str, posts: object) -> Choice:
    """Stand for a model that reads posts; it is never asked."""
    raise NotImplementedError
