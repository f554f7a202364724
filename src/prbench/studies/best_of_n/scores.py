"""Scores: what each reward model makes of every candidate, shown exactly as the benchmark shows answers.

All candidates of an item go to the model together and a user's items stand side by side, so that a model which reuses
a shared prefix reads profile and question once. What could not be scored is a status, never a number.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import NamedTuple

from prbench.calls import InProcess, call_key
from prbench.contexts import ContextBuilder, Unfit
from prbench.data.fingerprint import hash_text
from prbench.errors import StudyError
from prbench.files import Appender, read_models
from prbench.models import Rater
from prbench.studies.best_of_n.candidates import Candidate
from prbench.studies.best_of_n.items import Item
from prbench.types import AnswerView, Context, Frozen, Outcome, Status

Place = tuple[str, str]
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
    """How many posts the model was shown."""

    @property
    def place(self) -> Place:
        """Which candidate of which item."""
        return (self.item, self.candidate)


class Asked(NamedTuple):
    """What must be asked for some places: distinct calls, who waits for each, and what needs no call."""

    calls: dict[str, AnswerView]
    waiting: dict[str, list[Place]]
    settled: dict[Place, Score]
    """Known from an equal call, or not to be shown to this model at all."""


def read_scores(path: Path) -> list[Score]:
    """All whole lines of a model's file."""
    return list(read_models(path, Score, raises=StudyError, hint="remove the line, and it is scored again"))


def plan_scores(
    model: Rater,
    builder: ContextBuilder,
    context: Context,
    items: Sequence[Item],
    candidates: Mapping[str, Sequence[Candidate]],
    stored: Sequence[Score] = (),
) -> Asked:
    """List the calls that are missing, item by item; equal rendered inputs are one call."""
    known = {score.key: score for score in stored if score.key}
    asked = Asked({}, defaultdict(list), {})
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
    items: Sequence[Item],
    candidates: Mapping[str, Sequence[Candidate]],
    heard: Callable[[int, int], None] = lambda done, total: None,
) -> dict[Place, Score]:
    """Score what is missing, line by line on disk, and return the score of every place.

    Args:
        path: The model's file.
        model: Who scores.
        builder: Shows answers as the benchmark does.
        context: What of the user is shown.
        items: Who asks what.
        candidates: By item.
        heard: Told how many of how many calls are done.
    """
    stored = read_scores(path)
    asked = plan_scores(model, builder, context, items, candidates, stored)
    there, found = set(stored), dict(asked.settled)
    with Appender(path) as lines:
        for score in asked.settled.values():
            if score not in there:
                lines.append(score)
        for score in _answers(model, asked, heard):
            lines.append(score)
            found[score.place] = score
    return found


def noised_scores(
    grades: Mapping[Place, float | None], texts: Mapping[str, str], noise: float, seed: int
) -> dict[Place, float | None]:
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


def _answers(model: Rater, asked: Asked, heard: Callable[[int, int], None]) -> Iterator[Score]:
    total = len(asked.calls)
    for done, (key, outcome) in enumerate(InProcess(model).ask(asked.calls), start=1):
        for place in asked.waiting[key]:
            yield _score(place, key, outcome, len(asked.calls[key].posts))
        heard(done, total)


def _score(place: Place, key: str, outcome: Outcome, posts: int) -> Score:
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
