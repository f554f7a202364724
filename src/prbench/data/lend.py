"""Posts lent to questions that have no user: what `generic+posts` shows beside the questions of `generic`.

Only posts are lent: nothing says what their author would want of an answer, and which answer is sound does not depend
on it. The tag `posts_of` names the author.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from prbench.data.fingerprint import hash_text
from prbench.errors import DataError
from prbench.types import POSTS_OF, Pair, Post

_SEED = 0
"""Fixed, so that a version of the suite always shows the same posts beside a question."""


def lend_posts(pairs: Sequence[Pair], lenders: Iterable[Pair]) -> list[Pair]:
    """Give each question the posts of one person of the same split, by a seeded order of people and of questions.

    No two questions of a split get the same person while there are people left.

    Args:
        pairs: Whose questions get posts; all pairs of a question get the same.
        lenders: Pairs of the people who lend their posts.

    Raises:
        DataError: If no user of a split has posts to lend.

    Example:
        >>> asked = Pair(id="1", user="anybody", question="Tea?", chosen="Green.", rejected="Black.")
        >>> ann = asked.model_copy(update={"user": "ann", "profile": (Post(id="p", text="I love tea."),)})
        >>> (lent,) = lend_posts([asked], [ann])
        >>> lent.user, lent.profile[0].text, lent.tags
        ('anybody', 'I love tea.', {'posts_of': 'ann'})
    """
    people: dict[str, dict[str, tuple[Post, ...]]] = defaultdict(dict)
    for lender in lenders:
        if lender.profile:
            people[_split(lender)].setdefault(lender.user, lender.profile)
    questions: dict[str, set[str]] = defaultdict(set)
    for pair in pairs:
        questions[_split(pair)].add(pair.question)
    chosen: dict[tuple[str, str], str] = {}
    for split, asked in questions.items():
        if not (order := _ordered(people[split])):
            raise DataError(f"no user in split {split!r} has posts to lend", hint="take a suite with the same splits")
        chosen |= {(split, question): order[i % len(order)] for i, question in enumerate(_ordered(asked))}
    return [_lent(pair, author := chosen[_split(pair), pair.question], people[_split(pair)][author]) for pair in pairs]


def _lent(pair: Pair, author: str, posts: tuple[Post, ...]) -> Pair:
    return pair.model_copy(update={"profile": posts, "tags": {**pair.tags, POSTS_OF: author}})


def _split(pair: Pair) -> str:
    return pair.tags.get("split", "")


def _ordered(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: hash_text(f"{_SEED}\0posts\0{name}"))
