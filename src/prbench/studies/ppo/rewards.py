"""The reward, text in and number out: any Rater, shown what the benchmark would show it.

The reward model never meets the policy's tokens, so the two need not share a tokenizer. What it cannot score is no
reward: the sample is dropped and counted by reason, and no number stands in for it; so is an answer that is empty or
punctuation alone, whatever the model would pay for it. A model whose prompt does not depend on the answer is refused
before the first step.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from prbench.config import digest
from prbench.contexts import ContextBuilder, Unfit
from prbench.graders import Grading, RubricJudge, rubric_tags
from prbench.models import ModelCard, Rater
from prbench.serve.lint import check_servable
from prbench.studies.best_of_n.candidates import whole_sentences
from prbench.texts import is_degenerate
from prbench.types import AnswerView, Context, Pair

DEGENERATE = "the answer says nothing"
Key = dict[str, str]


def reward_key(card: ModelCard, context: str) -> Key:
    """Return the key of what pays, and of what it sees."""
    asked = digest(dict(card.parameters))[:12]
    return {"address": card.address, "revision": card.revision, "parameters": asked, "context": context}


class AskedAnswer(NamedTuple):
    """An answer, and to whom and what it answers."""

    pair: Pair
    answer: str


class TextReward:
    """Reward that pays for answers.

    Args:
        pairs: The suite, so that contexts such as `other` mean the same as in the benchmark.
        model: Model that scores.
        context: What of the user it is shown; the same under every seed of a training.

    Example:
        >>> from prbench.models import load_model
        >>> pair = Pair(id="1", user="ann", question="Tea?", chosen="Green.", rejected="Black.")
        >>> reward = TextReward([pair], load_model("longer"), Context.parse("none"))
        >>> reward([AskedAnswer(pair, "White tea."), AskedAnswer(pair, ""), AskedAnswer(pair, "...")])
        [2.0, None, None]
        >>> dict(reward.dropped)
        {'the answer says nothing': 2}
    """

    def __init__(self, pairs: Sequence[Pair], model: object, context: Context) -> None:
        self.model: Rater = check_servable(model, context)  # type: ignore[arg-type]
        self.context = context
        self.dropped: Counter[str] = Counter()
        """Answers without a reward so far, by reason."""
        self._builder = ContextBuilder(pairs, self.model)

    @property
    def key(self) -> Key:
        """Key that a checkpoint is bound to."""
        return reward_key(self.model.card, str(self.context))

    def __call__(self, asked: Sequence[AskedAnswer]) -> list[float | None]:
        """The reward of each answer; None where there is none."""
        views: list[AnswerView] = []
        places: list[int] = []
        for numbers in _same_pair(asked):
            full = [number for number in numbers if not is_degenerate(asked[number].answer)]
            self.dropped[DEGENERATE] += len(numbers) - len(full)
            if not full:
                continue
            shown = self._builder.show_answers(
                asked[numbers[0]].pair, self.context, [asked[number].answer for number in full]
            )
            if isinstance(shown, Unfit):
                self.dropped[shown.reason] += len(full)
            else:
                views += shown.views
                places += full
        self.dropped = +self.dropped
        return self._rated(views, places, len(asked))

    def _rated(self, views: Sequence[AnswerView], places: Sequence[int], count: int) -> list[float | None]:
        found: list[float | None] = [None] * count
        waiting = set(range(len(views)))
        for index, outcome in self.model.rate(views) if views else ():
            waiting.discard(index)
            if outcome.status == "ok" and outcome.score is not None:
                found[places[index]] = outcome.score
            else:
                self.dropped[outcome.reason or outcome.status] += 1
        if waiting:
            self.dropped["the model did not answer"] += len(waiting)
        return found


class TrueReward(TextReward):
    """Pays what the judge says that an answer is worth to its user: what a perfect reward model would pay.

    Args:
        pairs: The suite, for the users' whole rubrics.
        judge: Judge that grades.
        card: Of the oracle, as it is named in the study.
    """

    def __init__(self, pairs: Sequence[Pair], judge: RubricJudge, card: ModelCard) -> None:
        self.context = Context.parse("oracle")
        self.dropped = Counter()
        self._card, self._judge, self._tags = card, judge, rubric_tags(pairs)

    @property
    def key(self) -> Key:
        """Key that a checkpoint is bound to; the judge decides what is paid."""
        return {**reward_key(self._card, str(self.context)), "judge": digest(list(self._judge.card.identity.values()))}

    def __call__(self, asked: Sequence[AskedAnswer]) -> list[float | None]:
        """The grade of each answer; None where there is none."""
        full = [place for place, one in enumerate(asked) if not is_degenerate(one.answer)]
        self.dropped[DEGENERATE] += len(asked) - len(full)
        gradings = [Grading.of(asked[at].pair, asked[at].answer, self._tags[asked[at].pair.id]) for at in full]
        found: list[float | None] = [None] * len(asked)
        for place, grade in self._judge.grade(gradings):
            found[full[place]] = grade.score
            if grade.score is None:
                self.dropped[grade.reason or grade.status] += 1
        self.dropped = +self.dropped
        return found


def readable(text: str, *, cut: bool) -> str:
    """Return a policy's answer as it is shown: one that was cut off ends with its last whole sentence, if it has one.

    Example:
        >>> readable("Try green tea. It is m", cut=True), readable("It is m", cut=True)
        ('Try green tea.', 'It is m')
    """
    return (whole_sentences(text) if cut else "") or text.strip()


def _same_pair(asked: Sequence[AskedAnswer]) -> list[list[int]]:
    """Places of answers to the same pair, which are shown the same posts."""
    groups: dict[str, list[int]] = defaultdict(list)
    for place, one in enumerate(asked):
        groups[one.pair.id].append(place)
    return list(groups.values())
