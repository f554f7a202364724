"""Requests and replies on the wire: items to score, and for each a score or an error, never both.

Whatever is wrong with a request is told with its place and its value, so that it can be found in a batch of hundreds.
"""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, Field, ValidationError, ValidationInfo, field_validator, model_validator

from prbench.types import Frozen, Judgment, Post, Text

ErrorKind = Literal["too-large", "unknown-user", "unfit", "invalid", "failed"]
"""`too-large`: a text, or all of them, beyond what the server takes; `unknown-user`: neither posts nor a user that the
suite has; `unfit`: cannot be shown to this model; `invalid`: the model answered with what is no finite number;
`failed`: the model raised or did not answer."""

_MOST_POSTS = 200_000
"""Posts of all items of a request; sixteen megabytes of posts of real length are fewer."""
_SHOWN_VALUE = 80
"""Most characters of a wrong value in a message."""


class _Sent(Frozen):
    """Something that a client sends: of what is too long or wrong, no more is read than it takes to refuse it."""

    @model_validator(mode="before")
    @classmethod
    def _few_keys(cls, value: Any) -> Any:
        return _cut_keys(value, cls)


class ScoreItem(_Sent):
    """One answer to score, for one user: a user of the suite by name, or any person by posts.

    Example:
        >>> ScoreItem(question="Tea?", answer="Green.", posts=["I sleep badly."]).posts
        (Post(id='1', text='I sleep badly.', category=''),)
    """

    question: Text
    answer: str
    """May be empty: a policy is free to say nothing."""
    user: Text | None = None
    posts: tuple[Post, ...] | None = Field(default=None, fail_fast=True)
    """Posts to be shown of the user in place of what the suite knows; an empty list shows none."""
    plan: tuple[Text, ...] = Field(default=(), fail_fast=True)

    @field_validator("posts", mode="before")
    @classmethod
    def _texts(cls, posts: Any, info: ValidationInfo) -> Any:
        """Plain texts are posts that are named by their place."""
        if not isinstance(posts, list | tuple):
            return posts
        return [
            {"id": str(place), "text": post} if isinstance(post, str) else _cut_keys(post, Post)
            for place, post in enumerate(_cut(posts, info, "posts"), 1)
        ]

    @field_validator("plan", mode="before")
    @classmethod
    def _lines(cls, plan: Any, info: ValidationInfo) -> Any:
        return _cut(plan, info, "posts")


class ItemBounds(NamedTuple):
    """Limits on the size of an item or a judgment: one long text would keep all other clients waiting.

    Example:
        >>> ItemBounds(text=5).excess(ScoreItem(question="Tea?", answer="Green tea."))
        'answer has 10 characters, and a text may have 5 (--max-text)'
    """

    text: int = 12_000
    """Most characters of one text; the shipped reference reads an answer of that length in 1.6 s of one core."""
    posts: int = 2_000
    """Most posts of an item, and most lines of its plan; the longest profile of the paper has 1,488."""
    item: int = 400_000
    """Most characters of an item with all its posts (0.4 s of one core), and of all that a user has judged."""
    judgments: int = 500
    """Most judgments of one user."""
    items: int = 4096
    """Most items of a request."""

    def excess(self, item: ScoreItem) -> str:
        """Return what is too large in an item, with the limit; empty where nothing is."""
        posts = item.posts or ()
        if len(posts) > self.posts:
            return f"there are more than {self.posts} posts, the most that an item may have (--max-posts)"
        if len(item.plan) > self.posts:
            return f"the plan has more than {self.posts} lines, the most that it may have (--max-posts)"
        lengths = [len(item.question), len(item.answer), len(item.user or "")]
        lengths += [len(post.text) for post in posts]
        lengths += map(len, item.plan)
        if max(lengths) <= self.text and sum(lengths) <= self.item:
            return ""  # before anything is given a name: there may be a million posts in a request
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


class ScoreRequest(_Sent):
    """The body of POST /score."""

    items: tuple[ScoreItem, ...] = Field(min_length=1, fail_fast=True)

    @field_validator("items", mode="before")
    @classmethod
    def _few(cls, items: Any, info: ValidationInfo) -> Any:
        few = _cut(items, info, "items")
        if isinstance(few, list) and isinstance(info.context, ItemBounds):
            check_posts((item.get("posts") for item in few if isinstance(item, dict)), info.context)
        return few


class RemoteRewardRequest(_Sent):
    """The body of POST /get_reward, as OpenRLHF sends it: whole texts, and a label that says for whom."""

    query: tuple[str, ...] = Field(min_length=1, fail_fast=True)
    """Prompt and response, as one text."""
    prompts: tuple[str, ...] = Field(fail_fast=True)
    labels: tuple[str, ...] = Field(fail_fast=True)

    @field_validator("query", "prompts", "labels", mode="before")
    @classmethod
    def _few(cls, texts: Any, info: ValidationInfo) -> Any:
        return _cut(texts, info, "items")


class FeedbackRequest(_Sent, Judgment):
    """The body of POST /users/{user}/feedback."""


class ItemError(NamedTuple):
    """Reason why an item has no score."""

    kind: ErrorKind
    message: str


class FloorScore(float):
    """The reward of an answer that says nothing: below that of every sound answer the server has tried."""


Scored = float | ItemError
"""Score of an item, or the error in its place."""

Body = TypeVar("Body", bound=BaseModel)


class BadRequestError(ValueError):
    """A body that is not what was agreed; says where."""


class TooManyError(Exception):
    """A request with more items or posts than are taken, or more work than its deadline leaves time for."""


def check_posts(posts_of: Iterable[Any], bounds: ItemBounds) -> None:
    """Refuse a request whose items have too many posts together: each by itself is allowed more than all can have."""
    counts = (len(posts) for posts in posts_of if isinstance(posts, list | tuple))
    if sum(min(count, bounds.posts + 1) for count in counts) > _MOST_POSTS:
        raise TooManyError(f"the items have more than {_MOST_POSTS:,} posts together: send fewer items in a request")


def parse(schema: type[Body], body: bytes, bounds: ItemBounds | None = None) -> Body:
    """Read a body; of a list that is longer than its bound, one more than the bound.

    Example:
        >>> parse(ScoreRequest, b'{"items": [{"question": "Tea?", "answer": 3}]}')
        Traceback (most recent call last):
        prbench.serve.items.BadRequestError: items[0].answer is 3: Input should be a valid string
    """
    try:
        return schema.model_validate_json(body, context=bounds)
    except ValidationError as error:
        raise BadRequestError(_where(error)) from error


def _cut(value: Any, info: ValidationInfo, bound: Literal["items", "posts"]) -> Any:
    """The beginning of a list that is longer than its bound, still longer than it."""
    if not isinstance(value, list | tuple) or not isinstance(info.context, ItemBounds):
        return value
    return value[: getattr(info.context, bound) + 1]


def _cut_keys(value: Any, schema: type[BaseModel]) -> Any:
    """The beginning of an object with more keys than there are fields, still with one too many."""
    most = len(schema.model_fields) + 1
    return dict(islice(value.items(), most)) if isinstance(value, dict) and len(value) > most else value


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
