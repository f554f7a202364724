"""The texts of a page, each kept once, and how they are made to fit."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from prbench.report.payload import Block, TextPool
from prbench.types import Pair, Post

_SEPARATOR = "\x1e"
"""Separator of the replies behind one record; the page splits there."""
_LENGTHS = (8000, 4000, 2000, 1400, 1000, 700, 500, 350, 250, 180, 120, 80)
"""Numbers of characters to which long texts are cut, step by step."""


class FittedBlocks(NamedTuple):
    """Blocks that fit, and what was cut for it."""

    blocks: dict[str, list[Block]]
    notes: tuple[str, ...]


class Pools:
    """Collects the texts of a page and hands out their numbers."""

    def __init__(self) -> None:
        self.questions = TextPool("questions")
        self.answers = TextPool("answers")
        self.rubrics = TextPool("rubrics")
        self.posts = TextPool("posts")
        self.words = TextPool("words")
        self.post_ids: list[str] = [""]
        self.profiles: list[list[int]] = [[]]
        self._post_numbers: dict[tuple[str, str], int] = {}
        self._post_texts: list[int] = [0]
        self._profile_numbers: dict[tuple[int, ...], int] = {(): 0}
        self._known_profiles: dict[int, tuple[tuple[Post, ...], int]] = {}

    def rubric(self, pair: Pair) -> int:
        """The number of what the user wanted, as JSON: narrative and aspects."""
        if not pair.narrative and not pair.rubric_aspects:
            return 0
        import json

        aspects = [[aspect.aspect, aspect.reason, aspect.evidence] for aspect in pair.rubric_aspects]
        return self.rubrics.add(json.dumps([pair.narrative, aspects], ensure_ascii=False))

    def profile(self, posts: tuple[Post, ...]) -> int:
        """The number of a sequence of posts."""
        held = self._known_profiles.get(id(posts))
        if held is not None and held[0] is posts:
            return held[1]
        numbers = tuple(self._post(post) for post in posts)
        if numbers not in self._profile_numbers:
            self._profile_numbers[numbers] = len(self.profiles)
            self.profiles.append(list(numbers))
        self._known_profiles[id(posts)] = (posts, self._profile_numbers[numbers])
        return self._profile_numbers[numbers]

    def reply(self, raw: Sequence[str]) -> int:
        """The number of a model's words, where it has any."""
        return self.words.add(_SEPARATOR.join(raw)) if any(raw) else 0

    @property
    def post_texts(self) -> Sequence[int]:
        """Return the number of each post's text: two people may have written the same."""
        return self._post_texts

    def fit(self, room: int) -> FittedBlocks:
        """All texts in blocks that take at most so many bytes in the page, or cannot be cut further.

        Whichever takes more room, posts or judges' words, is cut a step shorter, until all fits.
        """
        blocks = {pool.id: pool.blocks() for pool in self._all()}
        steps = {pool: [length for length in _LENGTHS if length < pool.longest] for pool in (self.posts, self.words)}
        cut: dict[TextPool, int] = {}
        while written_size(blocks) > room and any(steps.values()):
            largest = max((pool for pool in steps if steps[pool]), key=lambda pool: written_size({"": blocks[pool.id]}))
            cut[largest] = steps[largest].pop(0)
            blocks[largest.id] = largest.blocks(cut[largest])
        names = {self.posts: "Posts", self.words: "Judges' words"}
        notes = [
            f"{names[pool]} are cut after {cut[pool]:,} characters to keep this file small; suite and run have all."
            for pool in names
            if pool in cut
        ]
        return FittedBlocks(blocks, tuple(notes))

    def _all(self) -> tuple[TextPool, ...]:
        return (self.questions, self.answers, self.rubrics, self.posts, self.words)

    def _post(self, post: Post) -> int:
        key = (post.id, post.text)
        if key not in self._post_numbers:
            self._post_numbers[key] = len(self.post_ids)
            self.post_ids.append(post.id)
            self._post_texts.append(self.posts.add(post.text))
        return self._post_numbers[key]


def written_size(blocks: Mapping[str, Sequence[Block]]) -> int:
    """Bytes that blocks take in a page: base64 writes four letters for three bytes."""
    return sum(4 * len(block.packed) // 3 for found in blocks.values() for block in found)
