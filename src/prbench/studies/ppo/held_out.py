"""Division into what a policy learns from and what judges it: two sets of people and questions without shared text.

Where people get policies of their own, only the questions are two sets: a policy is judged on its person's others.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from prbench.config import digest
from prbench.data import Suite, hash_text
from prbench.errors import ConfigError
from prbench.files import write_whole
from prbench.graders import RubricJudge
from prbench.studies.best_of_n.candidates import EMPTY, Candidate, read_candidates
from prbench.studies.best_of_n.items import StudyItem, select_items, split_pairs, study_items
from prbench.studies.ppo.config import PPOStudyConfig
from prbench.train.leaks import HELD_OUT, check_apart
from prbench.types import Pair

ANSWERS = "answers.jsonl"
ITEMS = "items.json"
_FEWEST = 5
"""Questions that a person must ask at least in either half to get a policy."""

Write = Callable[[Sequence[Pair], int, int], list[tuple[str, bool]]]
"""Function from questions, answers to each and a seed to texts, each with whether it was cut off; question by question.
"""


class HeldOutDivision(NamedTuple):
    """Users who teach and users who examine."""

    train: list[Pair]
    """One pair for each user and question; its answers play no part."""
    items: list[StudyItem]
    """Held-out questions of held-out users."""
    labelled: list[Pair]
    """All pairs of the held-out split, on which a judge can be examined."""


def divide(
    everything: Suite, settings: PPOStudyConfig, judge: RubricJudge | None = None, known: Sequence[str] = ()
) -> HeldOutDivision:
    """Take training and held-out questions from a suite; refuse them if they have a text in common.

    Where people get policies of their own, both come from the held-out split, and no question is in both.

    Args:
        everything: The suite.
        settings: Which splits, and how many held-out items.
        judge: Who will grade; items that it cannot grade are left out.
        known: Ids of the items that the study has chosen already.
    """
    if settings.train_split == settings.test_split and not settings.people:
        raise ConfigError(
            f"the policy would be judged on what it was trained on: both are split {settings.test_split!r}",
            hint="train on train, judge on test",
        )
    if not set(everything.record.splits) - {""}:
        raise ConfigError(
            f"suite {everything.record.name!r} has no splits, so nothing can be held out",
            hint="use a suite with splits: mirror, or one made by `prbench build`",
        )
    if settings.people:
        return _own(split_pairs(everything, settings.test_split), settings, judge)
    train, test = (split_pairs(everything, name) for name in (settings.train_split, settings.test_split))
    for name in dict.fromkeys((settings.test_split, *HELD_OUT)):
        held = [pair for pair in everything if pair.tags.get("split") == name and name != settings.train_split]
        check_apart(train, held, what=name)
    teaching = [item.pair for item in study_items(train)]
    if known:
        items = [item for item in study_items(test) if item.id in set(known)]
    else:
        items = select_items(test, judge, limit=settings.items, seed=settings.item_seed).items
    return HeldOutDivision(teaching, items, test)


def _own(test: Sequence[Pair], settings: PPOStudyConfig, judge: RubricJudge | None) -> HeldOutDivision:
    """The questions of some people in two halves, by a hash of the question; people by a hash of their couple."""
    halves: dict[str, tuple[list[StudyItem], list[StudyItem]]] = {}
    for item in select_items(test, judge).items:
        later = int(hash_text(f"own\0{settings.item_seed}\0{item.question}")[:8], 16) % 2
        halves.setdefault(item.unit, ([], []))[later].append(item)
    rich = [
        unit for unit, (taught, asked) in halves.items() if _fewest(taught) >= _FEWEST and _fewest(asked) >= _FEWEST
    ]
    taught, items = list[StudyItem](), list[StudyItem]()
    for unit in sorted(rich, key=lambda unit: hash_text(f"own\0{settings.item_seed}\0{unit}")):
        if len({item.pair.user for item in items}) < settings.people:
            taught += halves[unit][0]
            items += halves[unit][1]
    if (found := len({item.pair.user for item in items})) != settings.people:
        raise ConfigError(
            f"--people {settings.people}: {found} ask {_FEWEST} questions or more in either half", hint="take fewer"
        )
    return HeldOutDivision([item.pair for item in taught], items, list(test))


def _fewest(items: Sequence[StudyItem]) -> int:
    return min(Counter(item.pair.user for item in items).values(), default=0)


def answer_items(
    path: Path, items: Sequence[StudyItem], write: Write, settings: PPOStudyConfig, who: str
) -> dict[str, list[Candidate]]:
    """A policy's answers to the held-out items, written once and kept."""
    keys = answer_keys(items, settings, who)
    wanted = [key for listed in keys.values() for key in listed]
    known = read_candidates(path / ANSWERS)
    if any(key not in known for key in wanted):
        texts = write([item.pair for item in items], settings.answers, settings.item_seed)
        rows = [_candidate(key, text, cut) for key, (text, cut) in zip(wanted, texts, strict=True)]
        write_whole(path / ANSWERS, "".join(row.model_dump_json(exclude_defaults=True) + "\n" for row in rows))
        known = {row.key: row for row in rows}
    return {item: [known[key] for key in listed] for item, listed in keys.items()}


def answer_keys(items: Sequence[StudyItem], settings: PPOStudyConfig, who: str) -> dict[str, list[str]]:
    """The keys of a policy's answers to each item."""
    return {
        item.id: [digest([who, item.id, number, settings.item_seed])[:16] for number in range(settings.answers)]
        for item in items
    }


def _candidate(key: str, text: str, cut: bool) -> Candidate:
    if not text:
        return Candidate(key=key, status="invalid", reason=EMPTY, cut=cut)
    return Candidate(key=key, text=text, cut=cut)
