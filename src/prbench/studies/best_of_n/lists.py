"""Scores of a Ranker: all candidates of an item in one list, in every rotation where places may count.

Each list that is asked is a line on disk as soon as it is answered, so a paid call is never made twice. A rotation
that cannot be read leaves the item's candidates without a score, and says why.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, cast

from prbench.calls import Budget, InProcess, Journal, call_key
from prbench.config import digest
from prbench.contexts import ContextBuilder, Unfit
from prbench.errors import StudyError
from prbench.models import ListQuestion, Model, Ranker
from prbench.studies.best_of_n.candidates import Candidate
from prbench.studies.best_of_n.items import StudyItem
from prbench.studies.best_of_n.scores import ItemCandidate, Score, keep_scores
from prbench.types import Context, Frozen, ListView, Outcome, Status


class ListScores(Frozen):
    """One line of `scores/<model>.lists.jsonl`: what a Ranker made of one list, in one order."""

    key: str
    """Content hash over who was asked and what, as of every call."""
    status: Status
    scores: tuple[float, ...] = ()
    reason: str = ""

    @property
    def outcome(self) -> Outcome:
        """The call's outcome, as far as it is kept."""
        return Outcome(status=self.status, scores=self.scores, reason=self.reason)


class _Listed(NamedTuple):
    """One item's candidates as a question to a Ranker, or why they cannot be shown."""

    item: str
    candidates: tuple[str, ...]
    question: ListQuestion | Unfit
    keys: tuple[str, ...] = ()


def rank_candidates(
    path: Path,
    ranker: Ranker,
    builder: ContextBuilder,
    context: Context,
    items: Sequence[StudyItem],
    candidates: Mapping[str, Sequence[Candidate]],
    heard: Callable[[int, int], None] = lambda done, total: None,
    budget: Budget | None = None,
) -> dict[ItemCandidate, Score]:
    """Ask about the lists that are missing, and return the score of every candidate; as `score_candidates` does."""
    listed = [_listed(ranker, builder, context, item, candidates[item.id]) for item in items]
    calls = {
        key: view
        for one in listed
        if isinstance(one.question, ListQuestion)
        for key, view in zip(one.keys, one.question.asked, strict=True)
    }
    known = _asked(path.with_suffix(".lists.jsonl"), ranker, calls, heard, budget or Budget())
    found = {score.place: score for one in listed for score in _scores(one, known)}
    keep_scores(path, found)
    return found


def _listed(
    ranker: Ranker, builder: ContextBuilder, context: Context, item: StudyItem, candidates: Sequence[Candidate]
) -> _Listed:
    valid = [candidate for candidate in candidates if candidate.status == "ok"]
    names = tuple(candidate.key for candidate in valid)
    shown = builder.show_list(item.pair, context, [candidate.text for candidate in valid])
    if isinstance(shown, Unfit):
        return _Listed(item.id, names, shown)
    question = ListQuestion.of(ranker, shown.view)
    return _Listed(item.id, names, question, tuple(call_key(ranker.card, ranker.render(one)) for one in question.asked))


def _asked(
    path: Path, ranker: Ranker, calls: Mapping[str, ListView], heard: Callable[[int, int], None], budget: Budget
) -> dict[str, Outcome]:
    """The outcome of every call, by key; what is missing is asked and kept line by line."""
    hint = "remove the line, and the list is asked again"
    journal = Journal(path, ListScores, lambda line: line.key, raises=StudyError, hint=hint)
    with journal, budget.metering("scores"):
        missing = {
            key: view
            for key, view in calls.items()
            if key not in journal.answers or journal.answers[key].status == "failed"
        }
        if missing:
            journal.open()
        with closing(InProcess(cast(Model, ranker)).ask(missing)) as answers:
            for done, (key, outcome) in enumerate(answers, start=1):
                journal.keep(ListScores(key=key, status=outcome.status, scores=outcome.scores, reason=outcome.reason))
                heard(done, len(missing))
                budget.take(outcome.cost_usd, more=done < len(missing))
        return {key: journal.answers[key].outcome for key in calls if key in journal.answers}


def _scores(listed: _Listed, known: Mapping[str, Outcome]) -> list[Score]:
    """One score for each candidate of a list."""
    posts = 0
    if isinstance(listed.question, Unfit):
        outcome = Outcome(status=listed.question.status, reason=listed.question.reason)
    else:
        posts = len(listed.question.view.posts)
        unanswered = Outcome.failed("the model gave no outcome")
        outcome = listed.question.outcome([known.get(key, unanswered) for key in listed.keys])
    scores = outcome.scores or (None,) * len(listed.candidates)
    return [
        Score(
            item=listed.item,
            candidate=candidate,
            key=digest(listed.keys)[:32] if listed.keys else "",
            status=outcome.status,
            score=score,
            reason=outcome.reason,
            posts=posts,
        )
        for candidate, score in zip(listed.candidates, scores, strict=True)
    ]
