"""What comes over the wire and what goes back: items to score, and for each a score or an error, never both.

Whatever is wrong with a request is told with its place and its value, so that it can be found in a batch of hundreds.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, Field, ValidationError, field_validator

from prbench.types import Frozen, Judgment, Post, Text

ErrorKind = Literal["too-large", "unknown-user", "unfit", "invalid", "failed"]
"""`too-large`: a text, or all of them, beyond what the server takes; `unknown-user`: neither posts nor a user that the
suite has; `unfit`: cannot be shown to this model; `invalid`: the model answered with what is no finite number;
`failed`: the model raised or did not answer."""

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


class ItemBounds(NamedTuple):
    """How much an item or a judgment may hold: one long text would keep everybody else waiting.

    Example:
        >>> ItemBounds(text=5).excess(Item(question="Tea?", answer="Green tea."))
        'answer has 10 characters, and a text may have 5 (--max-text)'
    """

    text: int = 20_000
    """Most characters of one text."""
    posts: int = 2_000
    """Most posts of an item; the longest profile of the paper has 1,488."""
    item: int = 400_000
    """Most characters of an item with all its posts."""
    judgments: int = 500
    """Most judgments of one user."""

    def excess(self, item: Item) -> str:
        """What is too large in an item, with the limit; empty where nothing is."""
        posts = item.posts or ()
        if len(posts) > self.posts:
            return f"there are {len(posts)} posts, and an item may have {self.posts} (--max-posts)"
        texts = {"question": item.question, "answer": item.answer, "user": item.user or ""}
        texts |= {f"posts[{place}]": post.text for place, post in enumerate(posts)}
        texts |= {f"plan[{place}]": line for place, line in enumerate(item.plan)}
        if said := self.long_text(texts):
            return said
        total = sum(map(len, texts.values()))
        return f"it has {total} characters, and an item may have {self.item} (--max-item)" if total > self.item else ""

    def long_text(self, texts: Mapping[str, str]) -> str:
        """The first of these texts that is too long, by its name."""
        for name, text in texts.items():
            if len(text) > self.text:
                return f"{name} has {len(text)} characters, and a text may have {self.text} (--max-text)"
        return ""


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


class FloorScore(float):
    """The reward of an answer that says nothing: below that of every sound answer the server has tried."""


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
        >>> entry(FloorScore(-2.0))
        {'score': -2.0, 'degenerate': True}
        >>> entry(1.5), entry(ItemError("invalid", "score is nan"))
        ({'score': 1.5}, {'error': {'kind': 'invalid', 'message': 'score is nan'}})
    """
    if isinstance(scored, ItemError):
        return {"error": scored._asdict()}
    if isinstance(scored, FloorScore):
        return {"score": float(scored), "degenerate": True}
    return {"score": scored}
