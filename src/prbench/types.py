"""The nouns of the house: what is read, what a model may see, what it answers, what is kept.

The leak guard is here. A `Pair` holds the hidden scoring standard (narrative and rubric aspects); a `PairView` has no
field for it. Models and prompts take views only, so showing the standard to a model is a type error. The one door is
the `oracle` context, which puts the true aspects into the view's plan and is marked as leaking wherever it is printed.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from prbench.errors import ContextError, DataError, did_you_mean

Text = Annotated[str, StringConstraints(min_length=1)]
Count = Annotated[int, Field(ge=0, le=2**32 - 1)]
"""A number of things; a page keeps no larger ones."""


ITEM, CHOSEN_ANSWER, REJECTED_ANSWER = "item", "chosen_answer", "rejected_answer"
"""Tags of pairs that come from one row with several answers: the row, and which of its answers these are."""
POSTS_OF = "posts_of"
"""Tag of a pair that shows a person's posts beside a question that is not that person's: one answer is sound, the other
flawed, whichever person is shown."""


class Frozen(BaseModel):
    """Base of what is on disk: immutable, and neither an unknown field nor NaN or infinity passes."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Post(Frozen):
    """Something that the user wrote in the past; a profile is a sequence of posts."""

    id: Text
    text: Text
    category: str = ""


class Aspect(Frozen):
    """One line of the user's rubric. Hidden from every model."""

    aspect: Text
    """Expectation of the user, as a short title."""
    evidence: str = ""
    """Evidence of the aspect: a quotation from the narrative, or ids of posts."""
    reason: str = ""
    """Reason why it matters to this user."""


def read_stances(tags: Mapping[str, str]) -> dict[str, str]:
    """Return what decides a pair and which pole its user wants there, by axis, from the tags `axis` and `pole`.

    Without one of the two tags nothing is said.

    Raises:
        DataError: If there are not as many poles as axes.

    Example:
        >>> read_stances({"axis": "risk+brevity", "pole": "caution+brief"})
        {'risk': 'caution', 'brevity': 'brief'}
    """
    axes, poles = tags.get("axis", ""), tags.get("pole", "")
    if not axes or not poles:
        return {}
    if axes.count("+") != poles.count("+"):
        raise DataError(
            f"axis {axes!r} and pole {poles!r} have not equally many parts",
            hint="give one pole for each axis, joined by '+' in the same order",
        )
    return dict(zip(axes.split("+"), poles.split("+"), strict=True))


class Message(NamedTuple):
    """One turn of a prompt. Chat models use system, user and assistant; other models may name turns as they like."""

    role: str
    content: str


def written_out(turns: Sequence[Message]) -> str:
    """Turns as one text: a single user turn is its own text, several are written with their roles.

    Example:
        >>> print(written_out((Message("user", "Tea?"), Message("assistant", "Yes."), Message("user", "Which?"))))
        User: Tea?
        <BLANKLINE>
        Assistant: Yes.
        <BLANKLINE>
        User: Which?
    """
    if len(turns) == 1 and turns[0].role == "user":
        return turns[0].content
    return "\n\n".join(f"{turn.role.capitalize()}: {turn.content}" for turn in turns)


class Question(Frozen):
    """Question of one user, with the hidden standard that an answer will be held to. A builder starts from it."""

    id: Text
    user: Text
    question: Text
    """The text of the question; of a conversation, all turns that were said so far, each with its role."""
    turns: tuple[Message, ...] = ()
    """The same conversation turn by turn, the question as the last user turn; empty where there is no other turn."""
    profile: tuple[Post, ...] = ()
    narrative: str = ""
    """The full wish of the asker. Hidden from every model."""
    rubric_aspects: tuple[Aspect, ...] = ()
    """Scoring standard for the answers. Hidden from every model but under `oracle`."""
    category: str = ""
    tags: Mapping[str, str] = Field(default_factory=dict)
    """Labels that the data may set freely. Known ones: `split`; `axis` and `pole` (what decides the pair and what this
    user wants there, joined by `+` where there are several); `mirror` (shared by the two pairs that meet the same
    answers with opposite labels); `couple` (shared by the two users who are each other's opposite); `item`,
    `chosen_answer` and `rejected_answer` (pairs of one row with several answers); `posts_of` (whose posts are lent to a
    question of general quality)."""

    @property
    def stances(self) -> dict[str, str]:
        """Return what decides the pair and which pole its user wants there, by axis."""
        return read_stances(self.tags)


class Pair(Question):
    """Two answers to one user's question; the user's own rubric says which is chosen.

    Example:
        >>> pair = Pair(id="1", user="ann", question="Tea?", chosen="Green.", rejected="Black.")
        >>> pair.profile
        ()
    """

    chosen: Text
    rejected: Text

    @model_validator(mode="after")
    def _answers_differ(self) -> Self:
        if self.chosen == self.rejected:
            raise ValueError("chosen and rejected are the same text")
        return self


class Channel(StrEnum):
    """A way in which the user reaches a model."""

    POSTS = "posts"
    PLAN = "plan"


class ContextKind(NamedTuple):
    """One kind of context: everything that help, tables, pages and docs say of it."""

    needs: frozenset[Channel]
    """The channels a model must read for this context to mean anything."""
    shows: str
    """Description of what the model is shown; `{}` stands for the number K of a context that is written NAME@K."""
    tells: str
    """Explanation of what accuracy under this context is good for."""
    own: bool = True
    """Whether it is the pair's own user who is shown."""
    picks: Literal["", "own", "suite"] = ""
    """Posts that are picked from: the user's own, those of a suite's other users, or none."""
    source: Literal["", "profile", "judgments", "rubric"] = "profile"
    """Part of a suite that the context is made of. A model that is shown the rubric is shown the scoring standard
    itself."""

    @property
    def counts(self) -> str:
        """Return the unit that the number K counts."""
        return "labelled pairs" if self.source == "judgments" else "posts"


_POSTS, _PLAN = frozenset({Channel.POSTS}), frozenset({Channel.PLAN})

CONTEXTS: dict[str, ContextKind] = {
    "none": ContextKind(
        frozenset(), "no posts", "what it does without knowing the user (50 % on mirrored pairs)", own=False, source=""
    ),
    "profile": ContextKind(_POSTS, "the user's own posts", "**gain** = own − none"),
    "retrieved": ContextKind(
        _POSTS, "the {} own posts nearest to the question", "gain, where a model takes few posts", picks="own"
    ),
    "recent": ContextKind(_POSTS, "the {} latest own posts", "how much history a model needs", picks="own"),
    "diluted": ContextKind(
        _POSTS,
        "own posts among {} everyday posts of others",
        "how much noise a model stands; the added posts show nothing, are by other people of the split, and are the "
        "same for both halves of a couple and all their pairs, by seed",
        picks="suite",
    ),
    "pairs": ContextKind(
        _POSTS,
        "up to {} pairs that the user has judged",
        "what a few labels tell: as text, or through `fit_user` where the model adapts; never a pair that is scored, "
        "nor a question that is scored for that user",
        source="judgments",
    ),
    "plan": ContextKind(_PLAN, "aspects inferred from the posts", "whether spelling out what the user expects helps"),
    "profile+plan": ContextKind(
        _POSTS | _PLAN, "own posts and inferred aspects", "whether spelling it out helps beside the posts"
    ),
    "other": ContextKind(
        _POSTS,
        "another user's posts",
        "**specificity** = own − other: whether it is *this* user that counts, or any user",
        own=False,
        picks="suite",
    ),
    "opposite": ContextKind(
        _POSTS,
        "the opposite user's posts",
        "**reversal** = own − opposite (mirrored suites): a model that follows the user must flip",
        own=False,
        picks="suite",
    ),
    "oracle": ContextKind(_PLAN, "the true rubric", "**headroom closed** = gain ÷ (oracle − none)", source="rubric"),
}
"""Every context, in the order in which pages show them; `contexts.posts` says which posts each one shows."""


def context_names() -> list[str]:
    """Every context as it is written, such as `recent@K`.

    Example:
        >>> context_names()[:3]
        ['none', 'profile', 'retrieved@K']
    """
    return [f"{name}@K" if _is_counted(name) else name for name in CONTEXTS]


def _is_counted(name: str) -> bool:
    return name in CONTEXTS and "{}" in CONTEXTS[name].shows


@dataclass(frozen=True, slots=True)
class Context:
    """Part of the user's data that a model is shown: one of the kinds in `CONTEXTS`.

    Example:
        >>> Context.parse("retrieved@5")
        Context(name='retrieved', k=5)
        >>> str(Context.parse("profile"))
        'profile'
    """

    name: str
    k: int | None = None

    @classmethod
    def parse(cls, text: str) -> "Context":
        """Read the name of a context; some have a number of posts or labelled pairs, as `recent@5` or `pairs@3`."""
        text = text.strip()
        name, _, number = text.partition("@")
        if _is_counted(name):
            if not re.fullmatch(r"[1-9][0-9]*", number):
                raise ContextError(
                    f"context {text!r} needs a number of {CONTEXTS[name].counts}", hint=f"for example {name}@10"
                )
            return cls(name, int(number))
        if text not in CONTEXTS:
            raise ContextError(f"unknown context {text!r}", hint=did_you_mean(text, context_names()))
        return cls(text)

    def __str__(self) -> str:
        return self.name if self.k is None else f"{self.name}@{self.k}"

    @property
    def kind(self) -> ContextKind:
        """Return the description of contexts of this name."""
        return CONTEXTS[self.name]

    @property
    def needs(self) -> frozenset[Channel]:
        """The channels a model must read for this context to mean anything."""
        return self.kind.needs

    @property
    def leaks(self) -> bool:
        """Whether the model is shown the scoring standard itself."""
        return self.kind.source == "rubric"

    @property
    def words(self) -> str:
        """Return what a model is shown, in words.

        Example:
            >>> Context.parse("retrieved@5").words
            'the 5 own posts nearest to the question'
        """
        return self.kind.shows.format(self.k)


ContextName = Annotated[str, AfterValidator(lambda name: str(Context.parse(name)))]
"""A context as it is written in a file."""


class Judgment(Frozen):
    """A pair that a user has judged: what a model may adapt to. Never a pair that it is scored on."""

    question: Text
    chosen: Text
    rejected: Text


@dataclass(frozen=True, slots=True)
class AnswerView:
    """Part of one answer's data that a Rater may see."""

    question: str
    answer: str
    posts: tuple[Post, ...] = ()
    plan: tuple[str, ...] = ()
    user: str | None = None
    """User whose posts and plan these are; None where no user is shown."""
    turns: tuple[Message, ...] = ()
    """The conversation that `question` is the text of, where it has several turns."""


@dataclass(frozen=True, slots=True)
class PairView:
    """Part of a pair that a Comparer may see: the answers in an order, and no label.

    Example:
        >>> view = PairView("Tea?", "Green.", "Black.")
        >>> view.swap().first
        'Black.'
    """

    question: str
    first: str
    second: str
    posts: tuple[Post, ...] = ()
    plan: tuple[str, ...] = ()
    user: str | None = None
    turns: tuple[Message, ...] = ()

    def swap(self) -> "PairView":
        """Show the same answers the other way round."""
        return replace(self, first=self.second, second=self.first)

    def answers(self) -> tuple[AnswerView, AnswerView]:
        """Split into one view per answer, for a Rater."""
        return (
            AnswerView(self.question, self.first, self.posts, self.plan, self.user, self.turns),
            AnswerView(self.question, self.second, self.posts, self.plan, self.user, self.turns),
        )


@dataclass(frozen=True, slots=True)
class ListView:
    """View of a Ranker: the answers to one question, all at once.

    Example:
        >>> ListView.of(PairView("Tea?", "Green.", "Black.")).answers
        ('Green.', 'Black.')
    """

    question: str
    answers: tuple[str, ...]
    posts: tuple[Post, ...] = ()
    plan: tuple[str, ...] = ()
    user: str | None = None
    turns: tuple[Message, ...] = ()

    @classmethod
    def of(cls, pair: PairView) -> "ListView":
        """The two answers of a pair as a list."""
        return cls(pair.question, (pair.first, pair.second), pair.posts, pair.plan, pair.user, pair.turns)

    def rotated(self, places: int) -> "ListView":
        """The same list, begun so many answers later.

        Example:
            >>> ListView("Tea?", ("Green.", "Black.", "Mint.")).rotated(1).answers
            ('Black.', 'Mint.', 'Green.')
        """
        return replace(self, answers=self.answers[places:] + self.answers[:places])

    def each(self) -> tuple[AnswerView, ...]:
        """One view per answer, for a Rater."""
        shown = (self.posts, self.plan, self.user, self.turns)
        return tuple(AnswerView(self.question, answer, *shown) for answer in self.answers)


class Prompt(NamedTuple):
    """Exactly what a model receives for one call; the call's key is a hash over it."""

    messages: tuple[Message, ...]


Choice = Literal["first", "second", "tie"]
JurorVerdict = Literal["first", "second", "tie", "invalid"]
Status = Literal["ok", "invalid", "failed"]


class Outcome(Frozen):
    """Outcome of one model call. A failure is a status here, never a score."""

    status: Status
    score: float | None = None
    """A Rater's score, higher is better."""
    verdict: Choice | None = None
    """Verdict of a Comparer."""
    margin: float | None = None
    """A Comparer's preference for the first answer in log-odds, where it has one."""
    scores: tuple[float, ...] = ()
    """A Ranker's scores of all answers of a list, in the list's order."""
    reason: str = ""
    """Reason why the outcome is invalid (answered, but unreadable) or failed (no answer)."""
    raw: str = ""
    """The model's words, where it has any."""
    tokens_in: Count = 0
    tokens_out: Count = 0
    tokens_cached: Count = 0
    """Tokens of the prompt that the provider read from its cache."""
    tokens_stored: Count = 0
    """Tokens of the prompt that the provider put into its cache."""
    latency_ms: float = 0.0
    cost_usd: float = 0.0

    @classmethod
    def scored(cls, score: float, **usage: float | str) -> "Outcome":
        """A Rater's answer; a score that is not finite is invalid.

        Example:
            >>> Outcome.scored(float("nan")).status
            'invalid'
        """
        score = float(score)
        if not math.isfinite(score):
            return cls.invalid(f"score is {score}", **usage)
        return cls.model_validate({"status": "ok", "score": score, **usage})

    @classmethod
    def judged(cls, verdict: Choice, margin: float | None = None, **usage: float | str) -> "Outcome":
        """Return the outcome of a Comparer's answer."""
        if margin is not None and not math.isfinite(margin):
            return cls.invalid(f"margin is {margin}", **usage)
        return cls.model_validate({"status": "ok", "verdict": verdict, "margin": margin, **usage})

    @classmethod
    def ranked(cls, scores: Sequence[float], **usage: float | str) -> "Outcome":
        """A Ranker's answer, one score for each answer of the list; one that is not finite makes all invalid.

        Example:
            >>> Outcome.ranked([1.0, 0.0]).scores, Outcome.ranked([1.0, float("inf")]).reason
            ((1.0, 0.0), 'score 2 is inf')
        """
        for place, score in enumerate(scores, 1):
            if not math.isfinite(score):
                return cls.invalid(f"score {place} is {score}", **usage)
        return cls.model_validate({"status": "ok", "scores": tuple(map(float, scores)), **usage})

    @classmethod
    def invalid(cls, reason: str, **usage: float | str) -> "Outcome":
        """The model answered, but not with a score, a verdict or a ranking."""
        return cls.model_validate({"status": "invalid", "reason": reason, **usage})

    @classmethod
    def failed(cls, reason: str, **usage: float | str) -> "Outcome":
        """The model did not answer. Asked again when the run is continued."""
        return cls.model_validate({"status": "failed", "reason": reason, **usage})


Order = Literal["rated", "chosen-first", "chosen-second"]


class CallUse(Frozen):
    """One model call behind a record. Records may share a call; what it took counts once."""

    key: str
    """Content hash over who was asked and what."""
    tokens_in: Count = 0
    tokens_out: Count = 0
    tokens_cached: Count = 0
    latency_ms: float = 0.0
    cost_usd: float = 0.0
    cached: bool = False
    """Whether the answer was there already from an earlier run, so that nothing was spent on it in this one."""


class Record(Frozen):
    """One line of `records.jsonl`: what a model made of one pair, in one context, order and repeat."""

    pair: str
    context: str
    order: Order
    """`rated` where each answer was scored alone, else which answer the Comparer saw first."""
    repeat: Count = 0
    status: Status
    reason: str = ""
    verdict: Choice | None = None
    """`first` and `second` are positions as shown; under `rated` the chosen answer is first."""
    chosen_score: float | None = None
    rejected_score: float | None = None
    margin: float | None = None
    """Preference for the *chosen* answer, in the model's own units."""
    shown_user: str | None = None
    """User whose posts the model saw; differs from the pair's user under `other` and `opposite`."""
    posts: Count = 0
    """Number of posts that the model saw."""
    dropped: tuple[str, ...] = ()
    """Ids of posts left out because they did not fit."""
    raw: tuple[str, ...] = ()
    jurors: tuple[JurorVerdict, ...] = ()
    """Verdict of each juror of a jury, by positions as shown."""
    calls: tuple[CallUse, ...] = ()
    """The model calls behind this record; equal rendered inputs share one."""

    @property
    def slot(self) -> tuple[str, str, str, int]:
        """The place this record fills; a later record for the same slot replaces an earlier one."""
        return (self.pair, self.context, self.order, self.repeat)

    @property
    def latency_ms(self) -> float:
        """Time of all calls behind this record."""
        return sum(call.latency_ms for call in self.calls)

    @property
    def credit(self) -> float | None:
        """1 if the chosen answer won, ½ for a tie, 0 if it lost; None if there is no verdict."""
        return credit(self.status, self.verdict, self.order)

    @property
    def asked(self) -> bool:
        """Whether the model was asked for it now, so that not all of it was there from an earlier run."""
        return not self.calls or not all(call.cached for call in self.calls)


def credit(status: str, verdict: str | None, order: str) -> float | None:
    """Return the credit of a verdict: 1 if the chosen answer won, ½ for a tie, 0 if it lost; None without a verdict."""
    if status != "ok" or verdict is None:
        return None
    if verdict == "tie":
        return 0.5
    return 1.0 if verdict == ("second" if order == "chosen-second" else "first") else 0.0
