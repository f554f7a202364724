"""Models whose place on a scorecard is known beforehand, and suites for them. Opened as `py:planted_models:NAME`."""

from collections.abc import Iterator, Sequence

from pair_factory import make_pair
from prbench.models import ModelCard
from prbench.types import AnswerView, Channel, Judgment, Message, Outcome, Pair, Prompt
from small_suite import TOPICS, follows_posts

CALLS: list[AnswerView] = []
"""Every view that a `Counting` was asked about."""


def knows_all(question, answer, posts):
    """Knows what is sound, and follows the user where there is one."""
    return follows_posts(question, answer, posts) + 10 * ("sound" in answer)


def sound_only(question, answer):
    """Knows what is sound and nobody."""
    return float("sound" in answer)


def misses_soundness(question, answer, posts):
    """Follows the user and takes anything else for sound."""
    return follows_posts(question, answer, posts) - 10 * ("sound" in answer)


def misled(question, answer, posts):
    """Knows what is sound, and forgets it as soon as posts are shown."""
    return float(("flawed" in answer) == bool(posts))


def unmoved(question, answer, posts):
    """Is shown posts and looks at the answer alone: right on some pairs, wrong on others."""
    return float(len(answer))


def breaks(question, answer):
    """Has a bug."""
    return 1 / 0


def generic_pairs() -> list[Pair]:
    """Sound against flawed answers, without users."""
    return [
        make_pair(
            id=f"g:{topic}",
            user=f"asker-{topic}",
            question=f"What of {topic}?",
            chosen=f"A sound {topic}.",
            rejected=f"A flawed {topic}.",
            tags={"split": "test"},
        )
        for topic in TOPICS
    ]


class Counting:
    """Follows the posts, and tells what it was asked."""

    def __init__(self) -> None:
        self.card = ModelCard(
            address="py:planted_models:Counting", revision="1", reads=frozenset(Channel), reusable=False
        )

    def render(self, view: AnswerView) -> Prompt:
        turns = [*(post.text for post in view.posts), *view.plan, view.question, view.answer]
        return Prompt(tuple(Message("user", turn) for turn in turns))

    def rate(self, views: Sequence[AnswerView]) -> Iterator[tuple[int, Outcome]]:
        for index, view in enumerate(views):
            CALLS.append(view)
            yield index, Outcome.scored(follows_posts(view.question, view.answer, view.posts))


class Learner(Counting):
    """Follows the posts; without any, it knows a user's colour as soon as four pairs are judged, and nothing before."""

    wanted = 4

    def __init__(self) -> None:
        super().__init__()
        self.card = self.card.model_copy(update={"address": "py:planted_models:Learner"})
        self.judged: dict[str, Sequence[Judgment]] = {}

    def fit_user(self, user: str, judgments: Sequence[Judgment]) -> None:
        self.judged[user] = judgments

    def rate(self, views: Sequence[AnswerView]) -> Iterator[tuple[int, Outcome]]:
        for index, view in enumerate(views):
            CALLS.append(view)
            yield index, Outcome.scored(self._score(view))

    def _score(self, view: AnswerView) -> float:
        if view.posts:
            return follows_posts(view.question, view.answer, view.posts)
        judged = self.judged.get(view.user or "", ())
        return self._from_shots(view.answer, judged) if len(judged) >= self.wanted else 0.0

    def _from_shots(self, answer: str, judged: Sequence[Judgment]) -> float:
        colour = "red" if "red" in answer else "blue"
        return float(sum(colour in shot.chosen for shot in judged))


class LabelBlind(Learner):
    """Reads the judged pairs but not which answer was the better one."""

    wanted = 1

    def _from_shots(self, answer: str, judged: Sequence[Judgment]) -> float:
        return float(sum(len(set(answer.split()) & set((s.chosen + " " + s.rejected).split())) for s in judged))
