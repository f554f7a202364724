"""Two answers for each question: one that follows a rubric, one that goes against it.

Both come from the same question and the same posts, with the same words about tone, style and length; only what is said
about the aspects differs. In a mirrored couple each answer follows one user's rubric and goes against the other's, and
no posts are shown to the writer: an answer that two users meet must not carry traces of one of them.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple

from prbench.build.draft import Draft
from prbench.build.written.replies import Rejection, Replies, WritingRequest
from prbench.prompts import Instruction
from prbench.prompts.writing import parse_answer
from prbench.rank import PostRanker
from prbench.types import Aspect, Post, Question

Source = Literal["plain", "user", "written"]
SIDES = ("one", "other")


class WritingTask(NamedTuple):
    """Task that two answers are written for."""

    question: Question
    other: Question | None = None
    """The other half of a couple; None for a pair of its own."""
    source: Source = "plain"
    """Source of the other half: another user, or a model."""

    @property
    def asked(self) -> tuple[Question, ...]:
        """The questions of real users that this task answers."""
        return (self.question, self.other) if self.other is not None and self.source == "user" else (self.question,)


class Writing(NamedTuple):
    """Settings for writing answers."""

    prompt: Instruction
    words: int = 100
    """Most words of an answer (the paper's limit)."""
    posts: int = 10
    """Most posts that the writer is shown, the most relevant first (as in the paper's best-of-N)."""


def requests(
    task: WritingTask, writing: Writing, ranker: PostRanker, replies: Replies
) -> tuple[WritingRequest[str], WritingRequest[str]] | Rejection:
    """The two requests of a task, with as many posts as fit; the same posts in both."""
    posts: tuple[Post, ...] = ()
    if task.other is None:
        posts = ranker.rank(task.question.question, task.question.profile)[: writing.posts]
    while True:
        both = _fill(task, writing, posts)
        rooms = [room for request in both if (room := replies.room(request.prompt)) is not None]
        over = -min(rooms, default=0)
        if over <= 0:
            return both
        if not posts:
            return Rejection(f"question and aspects are {over} tokens over the model's window")
        posts = posts[:-1]


def _fill(
    task: WritingTask, writing: Writing, posts: Sequence[Post]
) -> tuple[WritingRequest[str], WritingRequest[str]]:
    mine = task.question.rubric_aspects
    theirs = task.other.rubric_aspects if task.other else ()
    one = _request(task.question, writing, posts, follow=mine, avoid=theirs)
    return one, _request(task.question, writing, posts, follow=theirs, avoid=mine)


def _request(
    question: Question, writing: Writing, posts: Sequence[Post], follow: Sequence[Aspect], avoid: Sequence[Aspect]
) -> WritingRequest[str]:
    prompt = writing.prompt.fill(
        question=question.question, posts=posts, follow=follow, avoid=avoid, words=writing.words
    )
    return WritingRequest(prompt, partial(parse_answer, limit=writing.words))


class WrittenDrafts(NamedTuple):
    """Drafts that came of the tasks, and what was rejected."""

    drafts: list[Draft]
    rejects: list[tuple[Question, Rejection]]


def collect(tasks: Sequence[WritingTask], replies: Mapping[str, str | Rejection]) -> WrittenDrafts:
    """Drafts out of answers; a task without two different answers is rejected for each question behind it.

    Args:
        tasks: Tasks that were written for.
        replies: By question id and side (`q1/one`, `q1/other`).
    """
    written = WrittenDrafts([], [])
    for task in tasks:
        one, other = (replies[f"{task.question.id}/{side}"] for side in SIDES)
        if isinstance(one, Rejection) or isinstance(other, Rejection):
            written.rejects.extend((question, _failed(one, other)) for question in task.asked)
        elif one == other:
            written.rejects.extend(
                (question, Rejection("both answers are the same text", one)) for question in task.asked
            )
        else:
            written.drafts.extend(_drafts(task, one, other))
    return written


def _failed(one: str | Rejection, other: str | Rejection) -> Rejection:
    sides = (("answer that follows", one), ("answer that goes against", other))
    lost = [(side, reply) for side, reply in sides if isinstance(reply, Rejection)]
    side, reply = lost[0]
    return Rejection(reply.reason, f"{side}: {reply.raw}" if reply.raw else side)


def _drafts(task: WritingTask, one: str, other: str) -> list[Draft]:
    if task.other is None:
        return [_draft(task.question, task.question, one, other, {})]
    mirror = {"mirror": f"m-{task.question.id}", "opposite": task.source}
    if task.source == "written":
        mirror["couple"] = f"c-{task.question.user}"
    return [
        _draft(task.question, task.question, one, other, mirror),
        _draft(task.other, task.question, other, one, mirror),
    ]


def _draft(who: Question, asked: Question, chosen: str, rejected: str, tags: Mapping[str, str]) -> Draft:
    """Both halves of a couple ask in the same words and stand in the same category and split."""
    # Questions may come from a suite that was mirrored with other answers: its couples are not ours.
    own = {name: tag for name, tag in who.tags.items() if name not in ("mirror", "couple", "opposite")}
    draft = Draft(
        id=who.id,
        user=who.user,
        question=asked.question,
        aspects=who.rubric_aspects,
        narrative=who.narrative,
        category=asked.category,
        chosen=chosen,
        rejected=rejected,
        tags={**own, "split": asked.tags.get("split", "test"), **tags},
    )
    return draft.model_copy(update={"profile": who.profile})  # validation would copy the profile each time
