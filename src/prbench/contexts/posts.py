"""Posts that each context shows, and their authors: `POSTS` has one function for each row of `types.CONTEXTS`."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from prbench.contexts.derange import mirror_twins, other_users
from prbench.contexts.dilute import Pool, dilute, silent_posts
from prbench.contexts.judged import as_posts, known_as
from prbench.data import Suite
from prbench.errors import ContextError
from prbench.rank import PostRanker
from prbench.types import Context, Judgment, Pair, Post


class ShownPosts(NamedTuple):
    """Posts, and the user whose they are; None where no user is shown."""

    user: str | None
    posts: tuple[Post, ...]


class SuitePosts:
    """The posts of all users of a suite; what a context needs of other users is found when first asked for.

    Args:
        pairs: The whole suite, so that `other` does not change with what is left out of a run.
        ranker: Chooses posts for `retrieved@K`.
        seed: Of the derangement behind `other`, and of what `diluted@K` adds.
        judged: Labelled pairs by user, for `pairs@K`.
        adapts: Whether the model was fitted to these pairs, so that they are not shown as text.
    """

    def __init__(
        self,
        pairs: Sequence[Pair],
        ranker: PostRanker,
        seed: int,
        judged: Mapping[str, Sequence[Judgment]],
        *,
        adapts: bool = False,
    ) -> None:
        self.pairs = pairs
        self.ranker = ranker
        self.seed = seed
        self.judged = judged
        self.adapts = adapts
        self._profiles: dict[tuple[str, str], tuple[Post, ...]] = {}
        if isinstance(pairs, Suite):
            for split, user, posts in zip(
                pairs.tag("split"), pairs.column("user"), pairs.column("profile"), strict=True
            ):
                self._profiles.setdefault((split or "", user), posts)
        else:
            for pair in pairs:
                self._profiles.setdefault((pair.tags.get("split", ""), pair.user), pair.profile)

    @cached_property
    def silent(self) -> Pool:
        """Posts that are evidence of nothing, by split."""
        return silent_posts(self.pairs)

    def other(self, pair: Pair) -> ShownPosts:
        """The user of the same split who is shown in place of the pair's own, always the same one."""
        split = pair.tags.get("split", "")
        user = self._others[split, pair.user]
        return ShownPosts(user, self._profiles[split, user])

    def twin(self, pair: Pair) -> Pair:
        """The other half of a mirrored pair."""
        if pair.id not in self._twins:
            raise ContextError(
                f"context 'opposite' needs a mirrored suite; pair {pair.id!r} has no other half",
                hint="leave it out, or use the suite 'mirror'",
            )
        return self._twins[pair.id]

    @cached_property
    def _others(self) -> Mapping[tuple[str, str], str]:
        return other_users(self.pairs, self.seed)

    @cached_property
    def _twins(self) -> Mapping[str, Pair]:
        return mirror_twins(self.pairs)


def _nobody(suite: SuitePosts, pair: Pair, context: Context) -> ShownPosts:
    return ShownPosts(None, ())


def _own(suite: SuitePosts, pair: Pair, context: Context) -> ShownPosts:
    return ShownPosts(pair.user, pair.profile)


def _own_without_posts(suite: SuitePosts, pair: Pair, context: Context) -> ShownPosts:
    return ShownPosts(pair.user, ())


def _retrieved(suite: SuitePosts, pair: Pair, context: Context) -> ShownPosts:
    best = {id(post) for post in suite.ranker.rank(pair.question, pair.profile)[: context.k]}
    return ShownPosts(pair.user, tuple(post for post in pair.profile if id(post) in best))


def _recent(suite: SuitePosts, pair: Pair, context: Context) -> ShownPosts:
    return ShownPosts(pair.user, pair.profile[-(context.k or 0) :])


def _diluted(suite: SuitePosts, pair: Pair, context: Context) -> ShownPosts:
    return ShownPosts(pair.user, dilute(pair, context.k or 0, suite.silent, suite.seed))


def _judged(suite: SuitePosts, pair: Pair, context: Context) -> ShownPosts:
    judgments = suite.judged.get(pair.user, ())[: context.k]
    if suite.adapts and judgments:
        return ShownPosts(known_as(pair.user, judgments), ())
    return ShownPosts(pair.user, as_posts(judgments))


def _other(suite: SuitePosts, pair: Pair, context: Context) -> ShownPosts:
    return suite.other(pair)


def _opposite(suite: SuitePosts, pair: Pair, context: Context) -> ShownPosts:
    twin = suite.twin(pair)
    return ShownPosts(twin.user, twin.profile)


POSTS: dict[str, Callable[[SuitePosts, Pair, Context], ShownPosts]] = {
    "none": _nobody,
    "profile": _own,
    "retrieved": _retrieved,
    "recent": _recent,
    "diluted": _diluted,
    "pairs": _judged,
    "plan": _own_without_posts,
    "profile+plan": _own,
    "other": _other,
    "opposite": _opposite,
    "oracle": _own_without_posts,
}
"""Functions by the name of a context: what it shows of a pair's user, or of another one of the suite."""
