"""Pairs and what they are made of: posts, rubric aspects, conversations, tags."""

from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from prbench.errors import DataError

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
