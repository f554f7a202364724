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
    """Who asks what a policy learns from, and what it is judged on."""

    train: list[Pair]
    """One pair for each user and question; its answers play no part."""
    items: list[StudyItem]
    """Held-out questions, of held-out users or of the same."""
    labelled: list[Pair]
    """All pairs of the held-out split, on which a judge can be examined."""
    chosen: list[str]
    """Ids of the items that the study keeps to: the held-out ones, and with policies of their own the others too."""


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
    if settings.train_split == settings.test_split:
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
        return _own(split_pairs(everything, settings.test_split), settings, judge, frozenset(known))
    train, test = (split_pairs(everything, name) for name in (settings.train_split, settings.test_split))
    for name in dict.fromkeys((settings.test_split, *HELD_OUT)):
        held = [pair for pair in everything if pair.tags.get("split") == name and name != settings.train_split]
        check_apart(train, held, what=name)
    teaching = [item.pair for item in study_items(train)]
    if known:
        items = [item for item in study_items(test) if item.id in set(known)]
    else:
        items = select_items(test, judge, limit=settings.items, seed=settings.item_seed).items
    return HeldOutDivision(teaching, items, test, [item.id for item in items])


def _own(
    test: Sequence[Pair], settings: PPOStudyConfig, judge: RubricJudge | None, known: frozenset[str]
) -> HeldOutDivision:
    """The questions of some people in two halves, by a hash of the question; people by a hash of their couple.

    Only questions that the judge can grade, since it may pay too. What the study has chosen already, it keeps.
    """
    found = [item for item in study_items(test) if item.id in known] if known else select_items(test, judge).items
    halves = [[item for item in found if _is_later(item, settings) == later] for later in (False, True)]
    counts = [Counter(item.pair.user for item in half) for half in halves]
    units: dict[str, set[str]] = {}
    for item in found:
        units.setdefault(item.unit, set()).add(item.pair.user)
    rich = [unit for unit, users in units.items() if min(half[user] for half in counts for user in users) >= _FEWEST]
    chosen: list[str] = []
    for unit in sorted(rich, key=lambda unit: hash_text(f"own\0{settings.item_seed}\0{unit}")):
        if sum(len(units[one]) for one in (*chosen, unit)) <= settings.people:
            chosen.append(unit)
    if (people := sum(len(units[unit]) for unit in chosen)) != settings.people:
        raise ConfigError(
            f"--people {settings.people}: whole couples with {_FEWEST} questions or more in either half make {people}",
            hint=f"--people {people}" if people else "leave --people out",
        )
    taught, items = ([item for item in half if item.unit in chosen] for half in halves)
    return HeldOutDivision([item.pair for item in taught], items, [*test], [item.id for item in (*taught, *items)])


def _is_later(item: StudyItem, settings: PPOStudyConfig) -> bool:
    """Whether a question is for judging: the same for everybody who asks it, whatever else its item is called."""
    asked = hash_text(item.pair.question)[:16]
    return int(hash_text(f"own\0{settings.item_seed}\0{asked}")[:8], 16) % 2 == 1


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
