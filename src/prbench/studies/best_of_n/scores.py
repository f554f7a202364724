"""Scores: what each reward model makes of every candidate, shown exactly as the benchmark shows answers.

All candidates of an item go to the model together and a user's items stand side by side, so that a model which reuses
a shared prefix reads profile and question once. What could not be scored is a status, never a number.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from statistics import NormalDist
from typing import NamedTuple

from prbench.calls import Budget, InProcess, Journal, call_key
from prbench.contexts import ContextBuilder, Unfit
from prbench.data import hash_text
from prbench.errors import StudyError
from prbench.models import Rater
from prbench.studies.best_of_n.candidates import Candidate
from prbench.studies.best_of_n.items import StudyItem
from prbench.types import AnswerView, Context, Frozen, Outcome, Status

ItemCandidate = tuple[str, str]
"""An item and one of its candidates, by their ids."""


class Score(Frozen):
    """One line of `scores/<model>.jsonl`."""

    item: str
    candidate: str
    key: str
    """Content hash over who was asked and what, as of every call."""
    status: Status
    score: float | None = None
    reason: str = ""
    posts: int = 0
    """Number of posts that the model was shown."""

    @property
    def place(self) -> ItemCandidate:
        """Place of the candidate: its item and its number."""
        return (self.item, self.candidate)


class OpenCalls(NamedTuple):
    """Calls that must be made for some places: distinct calls, who waits for each, and what needs no call."""

    calls: dict[str, AnswerView]
    waiting: dict[str, list[ItemCandidate]]
    settled: dict[ItemCandidate, Score]
    """Known from an equal call, or not to be shown to this model at all."""


def read_scores(path: Path) -> list[Score]:
    """All whole lines of a model's file."""
    return list(_journal(path).answers.values())


def _journal(path: Path) -> Journal[tuple[ItemCandidate, str, Status], Score]:
    hint = "remove the line, and it is scored again"
    return Journal(path, Score, lambda score: (score.place, score.key, score.status), raises=StudyError, hint=hint)


def plan_scores(
    model: Rater,
    builder: ContextBuilder,
    context: Context,
    items: Sequence[StudyItem],
    candidates: Mapping[str, Sequence[Candidate]],
    stored: Sequence[Score] = (),
) -> OpenCalls:
    """List the calls that are missing, item by item; equal rendered inputs are one call."""
    known = {score.key: score for score in stored if score.key}
    asked = OpenCalls({}, defaultdict(list), {})
    for item in items:
        valid = [candidate for candidate in candidates[item.id] if candidate.status == "ok"]
        shown = builder.show_answers(item.pair, context, [candidate.text for candidate in valid])
        for number, candidate in enumerate(valid):
            place = (item.id, candidate.key)
            if isinstance(shown, Unfit):
                asked.settled[place] = _score(place, "", Outcome(status=shown.status, reason=shown.reason), 0)
                continue
            view = shown.views[number]
            key = call_key(model.card, model.render(view))
            if key in known and known[key].status != "failed":
                asked.settled[place] = known[key].model_copy(update={"item": item.id, "candidate": candidate.key})
            else:
                asked.calls.setdefault(key, view)
                asked.waiting[key].append(place)
    return asked


def score_candidates(
    path: Path,
    model: Rater,
    builder: ContextBuilder,
    context: Context,
    items: Sequence[StudyItem],
    candidates: Mapping[str, Sequence[Candidate]],
    heard: Callable[[int, int], None] = lambda done, total: None,
    budget: Budget | None = None,
) -> dict[ItemCandidate, Score]:
    """Score what is missing, line by line on disk, and return the score of every place.

    Args:
        path: The model's file.
        model: Model that scores.
        builder: Shows answers as the benchmark does.
        context: What of the user is shown.
        items: Questions of users.
        candidates: Candidates by item.
        heard: Told how many of how many calls are done.
        budget: Counts what is spent, and stops at its limit; default: no limit.
    """
    budget = budget or Budget()
    with _journal(path) as journal, budget.metering("scores"):
        journal.open()
        asked = plan_scores(model, builder, context, items, candidates, list(journal.answers.values()))
        there, found = set(journal.answers.values()), dict(asked.settled)
        for score in asked.settled.values():
            if score not in there:
                journal.keep(score)
        total = len(asked.calls)
        with closing(InProcess(model).ask(asked.calls)) as answers:
            for done, (key, outcome) in enumerate(answers, start=1):
                for place in asked.waiting[key]:
                    found[place] = _score(place, key, outcome, len(asked.calls[key].posts))
                    journal.keep(found[place])
                heard(done, total)
                budget.take(outcome.cost_usd, more=done < total)
    return found


def keep_scores(path: Path, found: Mapping[ItemCandidate, Score]) -> None:
    """Write down scores that a model's file does not have yet."""
    with _journal(path) as journal:
        there = set(journal.answers.values())
        for score in found.values():
            if score not in there:
                journal.keep(score)


def noised_scores(
    grades: Mapping[ItemCandidate, float | None], texts: Mapping[str, str], noise: float, seed: int
) -> dict[ItemCandidate, float | None]:
    """The judge's grade plus normal noise, the same for every size of noise but for its size.

    Example:
        >>> noised_scores({("i", "c"): 1.5}, {"c": "Tea."}, 0.0, 0)
        {('i', 'c'): 1.5}
    """
    return {
        (item, candidate): None if grade is None else grade + noise * _normal(f"{seed}\0{item}\0{texts[candidate]}")
        for (item, candidate), grade in grades.items()
    }


def _normal(text: str) -> float:
    share = (int(hash_text("noise\0" + text)[:13], 16) + 0.5) / 16**13
    return NormalDist().inv_cdf(share)


def _score(place: ItemCandidate, key: str, outcome: Outcome, posts: int) -> Score:
    item, candidate = place
    return Score(
        item=item,
        candidate=candidate,
        key=key,
        status=outcome.status,
        score=outcome.score,
        reason=outcome.reason,
        posts=posts,
    )
