"""Training examples: a pair, and a random part of what is known of its user."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import torch
from torch import Tensor

from prbench.contexts.builder import aspect_line
from prbench.errors import DataError
from prbench.models.personal.person import Known, Person, stack
from prbench.models.personal.reader import Reader
from prbench.train.config import TrainConfig
from prbench.types import Judgment, Pair

_ASPECT_SHARE = 1 / 3
_ASKED_SHARE = 4
"""A user's pairs are this many times as many as those asked about together: the others may be shown as judged."""


class Batch(NamedTuple):
    """Batch of examples: what is known of some users, and chosen and rejected items with the user of each."""

    person: Person
    pairs_N2F: Tensor
    owner_N: Tensor
    """User of each pair, a place in `person`."""


class Examples:
    """All pairs of a split with their vectors, ready to be drawn from.

    Args:
        pairs: The split.
        reader: Embeds it.
        aspects: Whether the rubric aspects are embedded too, for trainings that show them.
        judged: What each user has judged besides and is asked nothing about, as in `context.jsonl` of `build mirror`;
            shots are then drawn from there alone.
    """

    def __init__(
        self,
        pairs: Sequence[Pair],
        reader: Reader,
        *,
        aspects: bool = False,
        judged: Mapping[str, Sequence[Judgment]] | None = None,
    ) -> None:
        if not pairs:
            raise DataError("there is no pair to train on", hint="name a split that has some: --split train")
        self.pairs = tuple(pairs)
        lines = {line for pair in pairs for line in _aspects(pair)} if aspects else set()
        _embed_all(pairs, lines, reader)
        self.items_N2F = torch.stack(
            [
                reader.items([(pair.question, pair.chosen) for pair in pairs]),
                reader.items([(pair.question, pair.rejected) for pair in pairs]),
            ],
            dim=1,
        )
        self._profiles = [tuple(post.text for post in pair.profile) for pair in pairs]
        self._posts = {texts: reader.posts(texts) for texts in dict.fromkeys(self._profiles)}
        self._aspects = {line: reader.posts([line]) for line in lines}
        self._of_user: dict[str, list[int]] = defaultdict(list)
        for index, pair in enumerate(pairs):
            self._of_user[pair.user].append(index)
        self._judged = {user: reader.known((), judged.get(user, ())) for user in self._of_user} if judged else None

    def epoch(self, options: TrainConfig, random: torch.Generator) -> Iterator[Batch]:
        """Every pair once, in a random order, some of a user together, with a random part of what is known of them."""
        batch: list[list[int]] = []
        for group in self._groups(1 if options.aspects else options.together, random):
            batch.append(group)
            if sum(map(len, batch)) >= options.batch:
                yield self._drawn(batch, options, random)
                batch = []
        if batch:
            yield self._drawn(batch, options, random)

    def whole(self, size: int = 256, *, shots: int = 0) -> Iterator[Batch]:
        """Every pair once, in order, each with the whole profile of its user.

        Args:
            size: Pairs in a batch.
            shots: Most labelled pairs shown of a user who has no post; always the same ones.
        """
        random = torch.Generator().manual_seed(0)
        for indices in torch.arange(len(self.pairs)).split(size):
            known = [self._all_of(int(index), shots, random) for index in indices]
            yield Batch(stack(known), self.items_N2F[indices], torch.arange(len(indices)))

    def _groups(self, most: int, random: torch.Generator) -> list[list[int]]:
        """All pairs by their places, so many with one user and profile at most together, in a random order."""
        filling: dict[tuple[str, int], list[int]] = {}
        found: list[list[int]] = []
        for index in torch.randperm(len(self.pairs), generator=random).tolist():
            user = self.pairs[index].user
            group = filling.setdefault((user, id(self._posts[self._profiles[index]])), [])
            group.append(index)
            if len(group) >= min(most, len(self._of_user[user]) // _ASKED_SHARE):
                found.append(filling.pop((user, id(self._posts[self._profiles[index]]))))
        found += filling.values()
        return [found[place] for place in torch.randperm(len(found), generator=random).tolist()]

    def _drawn(self, groups: Sequence[Sequence[int]], options: TrainConfig, random: torch.Generator) -> Batch:
        draws = torch.rand(len(groups), 4, generator=random).tolist()
        known = [self._sample(group, draw, options, random) for group, draw in zip(groups, draws, strict=True)]
        owner = torch.tensor([place for place, group in enumerate(groups) for _ in group])
        return Batch(stack(known), self.items_N2F[[index for group in groups for index in group]], owner)

    def _all_of(self, index: int, shots: int, random: torch.Generator) -> Known:
        posts = self._posts[self._profiles[index]]
        if self._judged is not None:
            mine = self._judged[self.pairs[index].user]
            return Known(posts, mine.chosen_SF[:shots], mine.rejected_SF[:shots])
        shown = self._shots([self.pairs[index]], 0 if len(posts) else shots, random)
        return Known(posts, self.items_N2F[shown, 0], self.items_N2F[shown, 1])

    def _sample(self, group: Sequence[int], draw: list[float], options: TrainConfig, random: torch.Generator) -> Known:
        """Draw what is shown of the user of some pairs."""
        pair = self.pairs[group[0]]
        empty = self.items_N2F[:0, 0]
        stranger, told, shown, count = draw
        posts = self._posts[self._profiles[group[0]]]
        if stranger < options.strangers:
            return Known(posts[:0], empty, empty)
        if options.aspects and told < _ASPECT_SHARE and pair.rubric_aspects:
            posts = torch.cat([self._aspects[text] for text in _aspects(pair)])
        elif options.keep_posts < 1:
            posts = posts[torch.rand(len(posts), generator=random) < options.keep_posts]
        # Who can be known by judgments alone is always shown some: else half of the examples would teach nothing.
        hidden = shown < 0.5 and (self._judged is None or len(posts) > 0)
        if hidden or not options.shots:
            return Known(posts, empty, empty)
        if self._judged is not None:
            mine = self._judged[pair.user]
            drawn = torch.randperm(len(mine.chosen_SF), generator=random)[: 1 + int(count * options.shots)]
            return Known(posts, mine.chosen_SF[drawn], mine.rejected_SF[drawn])
        shots = self._shots([self.pairs[index] for index in group], 1 + int(count * options.shots), random)
        return Known(posts, self.items_N2F[shots, 0], self.items_N2F[shots, 1])

    def _shots(self, asked: Sequence[Pair], count: int, random: torch.Generator) -> Tensor:
        """Draw so many other pairs of a user, of other questions: no answer may be shot and target at once."""
        if not count:
            return torch.zeros(0, dtype=torch.long)
        questions = {pair.question for pair in asked}
        mine = self._of_user[asked[0].user]
        drawn = torch.randperm(len(mine), generator=random).tolist()
        others = (mine[place] for place in drawn if self.pairs[mine[place]].question not in questions)
        return torch.tensor(list(islice(others, count)), dtype=torch.long)


def _aspects(pair: Pair) -> list[str]:
    """Return the aspects as the `oracle` context shows them."""
    return [aspect_line(aspect) for aspect in pair.rubric_aspects]


def _embed_all(pairs: Sequence[Pair], lines: set[str], reader: Reader) -> None:
    posts = {post.text for pair in pairs for post in pair.profile} | lines
    answers = {answer for pair in pairs for answer in (pair.chosen, pair.rejected)}
    reader.prepare(sorted(posts), sorted(answers), sorted({pair.question for pair in pairs}))
