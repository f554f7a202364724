"""Items of a study: the questions of users."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from prbench.data import Suite, hash_text
from prbench.data.sampling import stratified_order
from prbench.errors import ConfigError, StudyError, did_you_mean
from prbench.graders import Grading, RubricJudge, rubric_tags
from prbench.results import PairRow
from prbench.types import Pair


class StudyItem(NamedTuple):
    """Question of one user."""

    id: str
    pair: Pair
    """One of the pairs in which this user asks this; its answers play no part."""
    unit: str
    """Unit that is independent of the others: the couple on mirrored suites, else the user."""
    question: str
    """Label of the question."""
    tags: dict[str, str]
    """Tags of the pair, with all axes of the user's rubric for this question."""

    def grading(self, answer: str) -> Grading:
        """An answer to be held against this user's rubric."""
        return Grading.of(self.pair, answer, self.tags)


class Selected(NamedTuple):
    """The items of a study, and what had to be left out."""

    items: list[StudyItem]
    refused: dict[str, int]
    """Items that the judge cannot grade whatever the answer, by reason; with the couple's other half."""


def split_pairs(everything: Suite, split: str) -> list[Pair]:
    """The pairs of a split; `all`, or a suite that has none, for all of them."""
    splits = everything.record.splits
    if split == "all" or not set(splits) - {""}:
        return list(everything)
    if split not in splits:
        raise ConfigError(f"suite {everything.record.name!r} has no split {split!r}", hint=did_you_mean(split, splits))
    return [pair for pair in everything if pair.tags.get("split") == split]


def select_items(
    pairs: Sequence[Pair], judge: RubricJudge | None = None, *, limit: int | None = None, seed: int = 0
) -> Selected:
    """The items that a study asks about; both halves of a couple are in or out.

    Args:
        pairs: Of one split, whole.
        judge: Who will grade; an item that it refuses is left out before anything is spent on it.
        limit: Most items, categories and axes in proportion.
        seed: Seed of the sample.
    """
    items = study_items(pairs)
    reasons = {item.id: judge.refuses(item.grading("An answer.")) for item in items} if judge is not None else {}
    groups = _groups(items)
    refused: Counter[str] = Counter()
    for key, group in list(groups.items()):
        if reason := next((found for item in group if (found := reasons.get(item.id))), None):
            refused[reason] += len(group)
            del groups[key]
    if not groups:
        first = next(iter(refused), "there are no pairs")
        raise StudyError(f"the judge can grade none of {len(items):,} items: {first}", hint="name another judge")
    kept = _limited(groups, limit, seed)
    return Selected([item for item in items if item.id in kept], dict(sorted(refused.items())))


def study_items(pairs: Sequence[Pair]) -> list[StudyItem]:
    """One item for each user, question and rubric; user by user, so that what shares a profile stands together.

    Example:
        >>> pairs = [Pair(id=f"{i}", user="ann", question="Tea?", chosen=f"{i}", rejected="x") for i in range(2)]
        >>> len(study_items(pairs))
        1
    """
    tags = rubric_tags(pairs)
    first: dict[tuple[str, str, object], Pair] = {}
    for pair in sorted(pairs, key=lambda pair: pair.id):
        first.setdefault((pair.user, pair.question, pair.rubric_aspects), pair)
    items = [_item(pair, tags[pair.id]) for pair in first.values()]
    return _numbered(sorted(items, key=lambda item: (item.pair.user, item.pair.question, item.pair.id)))


def _item(pair: Pair, tags: dict[str, str]) -> StudyItem:
    row = PairRow.of(pair)
    return StudyItem(f"{pair.user}:{hash_text(pair.question)[:8]}", pair, row.unit, row.item, tags)


def _numbered(items: Sequence[StudyItem]) -> list[StudyItem]:
    """Ids made unique where a user asks the same with several rubrics."""
    seen: dict[str, int] = {}
    found = []
    for item in items:
        seen[item.id] = seen.get(item.id, 0) + 1
        found.append(item if seen[item.id] == 1 else item._replace(id=f"{item.id}:{seen[item.id]}"))
    return found


def _groups(items: Sequence[StudyItem]) -> dict[str, list[StudyItem]]:
    """Items that are kept or left out together: of a couple on a question."""
    groups: dict[str, list[StudyItem]] = defaultdict(list)
    for item in items:
        groups[f"{item.unit}\0{item.question}"].append(item)
    return groups


def _limited(groups: Mapping[str, Sequence[StudyItem]], limit: int | None, seed: int) -> set[str]:
    strata = {key: (group[0].pair.category, group[0].tags.get("axis", "")) for key, group in groups.items()}
    kept: set[str] = set()
    for key in stratified_order(strata, seed):
        if limit is not None and len(kept) + len(groups[key]) > limit:
            break
        kept.update(item.id for item in groups[key])
    if not kept:
        raise ConfigError(f"a limit of {limit} leaves no item", hint="use at least 2 where users come in couples")
    return kept
