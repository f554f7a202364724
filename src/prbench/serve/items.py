"""What comes over the wire and what goes back: items to score, and for each a score or an error, never both.

Whatever is wrong with a request is told with its place and its value, so that it can be found in a batch of hundreds.
"""

from typing import Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, Field, ValidationError, field_validator

from prbench.types import Frozen, Judgment, Post, Text

ErrorKind = Literal["unknown-user", "unfit", "invalid", "failed"]
"""`unknown-user`: neither posts nor a user that the suite has; `unfit`: cannot be shown to this model; `invalid`: the
model answered with what is no finite number; `failed`: the model raised or did not answer."""

_SHOWN_VALUE = 80
"""Most characters of a wrong value in a message."""


class Item(Frozen):
    """One answer to score, for one user: somebody of the suite by name, or anybody with posts.

    Example:
        >>> Item(question="Tea?", answer="Green.", posts=["I sleep badly."]).posts
        (Post(id='1', text='I sleep badly.', category=''),)
    """

    question: Text
    answer: str
    """May be empty: a policy is free to say nothing."""
    user: Text | None = None
    posts: tuple[Post, ...] | None = None
    """What is to be shown of the user in place of what the suite knows; an empty list shows none."""
    plan: tuple[Text, ...] = ()

    @field_validator("posts", mode="before")
    @classmethod
    def _texts(cls, posts: Any) -> Any:
        """Plain texts are posts that are named by their place."""
        if not isinstance(posts, list | tuple):
            return posts
        return [
            {"id": str(place), "text": post} if isinstance(post, str) else post for place, post in enumerate(posts, 1)
        ]


class ScoreRequest(Frozen):
    """The body of POST /score."""

    items: tuple[Item, ...] = Field(min_length=1)


class RemoteRewardRequest(Frozen):
    """The body of POST /get_reward, as OpenRLHF sends it: whole texts, and a label that says for whom."""

    query: tuple[str, ...] = Field(min_length=1)
    """Prompt and response, as one text."""
    prompts: tuple[str, ...]
    labels: tuple[str, ...]


class FeedbackRequest(Judgment):
    """The body of POST /users/{user}/feedback."""


class ItemError(NamedTuple):
    """Why an item has no score."""

    kind: ErrorKind
    message: str


Scored = float | ItemError
"""What an item came to."""

Body = TypeVar("Body", bound=BaseModel)


class BadRequestError(ValueError):
    """A body that is not what was agreed; says where."""


def parse(schema: type[Body], body: bytes) -> Body:
    """Read a body.

    Example:
        >>> parse(ScoreRequest, b'{"items": [{"question": "Tea?", "answer": 3}]}')
        Traceback (most recent call last):
        prbench.serve.items.BadRequestError: items[0].answer is 3: Input should be a valid string
    """
    try:
        return schema.model_validate_json(body)
    except ValidationError as error:
        raise BadRequestError(_where(error)) from error


def _where(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False)[0]
    if first["type"] == "json_invalid":
        return f"the body is not JSON: {first['msg']}"
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in first["loc"]).lstrip(".")
    if first["type"] == "missing":
        return f"{place} is missing"
    return f"{place or 'the body'} is {_short(first['input'])}: {first['msg']}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_VALUE else text[:_SHOWN_VALUE] + "…"


def entry(scored: Scored) -> dict[str, Any]:
    """An item's place in the reply.

    Example:
        >>> entry(1.5), entry(ItemError("invalid", "score is nan"))
        ({'score': 1.5}, {'error': {'kind': 'invalid', 'message': 'score is nan'}})
    """
    if isinstance(scored, ItemError):
        return {"error": scored._asdict()}
    return {"score": scored}
