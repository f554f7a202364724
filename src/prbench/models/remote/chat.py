"""`chat:MODEL@BASE_URL#compare|rate|rank`: an LLM judge on an OpenAI-compatible endpoint; also `anthropic:`, `gemini:`.

`compare` gives a verdict on two answers, `rate` a rating from 1 to 10 of one, `rank` the order of a list; all can also
write text. A reply that
cannot be read is invalid, a request that is not answered is failed; neither is ever a score. Nothing of the hidden
standard can be shown: prompts are rendered from views.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, get_args
from urllib.parse import urlsplit

from prbench.config import ModelOptions
from prbench.errors import AddressError, ModelError, did_you_mean
from prbench.models.effort import Effort
from prbench.models.lists import check_lists, compare_by_rank
from prbench.models.protocols import ModelCard
from prbench.models.remote.completions import Call, Completion, Completions, estimate_tokens
from prbench.models.remote.dialects import DIALECTS, Dialect
from prbench.models.remote.order import prefix_order, restored
from prbench.models.remote.prices import listed_price
from prbench.models.remote.readings import read_ranking, read_rating, read_text, read_verdict, verdict_schema
from prbench.models.remote.wire import PATIENT, Backoff, Wire, clean_url
from prbench.prompts import Template, judged_conversation
from prbench.types import AnswerView, Channel, ListView, Outcome, PairView, Prompt
from prbench.web import is_loopback

__all__ = [
    "ChatComparer",
    "ChatGenerator",
    "ChatRanker",
    "ChatRater",
    "load",
    "load_anthropic",
    "load_gemini",
    "load_generator",
]

Mode = Literal["compare", "rate", "rank"]
View = AnswerView | PairView | ListView


def load(
    rest: str, options: ModelOptions, *, backoff: Backoff = PATIENT, dialect: str = "chat"
) -> "ChatComparer | ChatRater | ChatRanker":
    """Open a judge; no request is sent yet.

    Args:
        rest: `MODEL@BASE_URL#compare`, `#rate` or `#rank`. Without `@BASE_URL` it is taken from OPENAI_BASE_URL,
            without a mode it is `compare`. The key, where there is one, is from the variable that `key_env` names;
            else from the provider's own, which is sent to the provider's own host and to this machine only.
        options: Decoding, patience, price and template.
        backoff: How long to wait before a request is sent again.
        dialect: Which provider's words are spoken.

    Example:
        >>> judge = load("my/judge@http://127.0.0.1:8000/v1", ModelOptions())
        >>> judge.card.address
        'chat:my/judge@http://127.0.0.1:8000/v1#compare'
    """
    address = _parse(rest, DIALECTS[dialect])
    completions = _completions(address, options, backoff)
    if address.mode == "rank":
        return ChatRanker(completions, options, Template.load(options.template, "rank", "rank.jinja"))
    if address.mode == "rate":
        return ChatRater(completions, options, Template.load(options.template, "rate", "rate.jinja"))
    return ChatComparer(completions, options, Template.load(options.template, "compare", "compare.jinja"))


load_anthropic = partial(load, dialect="anthropic")
load_gemini = partial(load, dialect="gemini")


def load_generator(
    rest: str, options: ModelOptions, *, backoff: Backoff = PATIENT, dialect: str = "chat"
) -> "ChatGenerator":
    """Open a chat model that only writes; a mode in the address is ignored.

    Example:
        >>> load_generator("writer@http://127.0.0.1:8000/v1", ModelOptions()).card.address
        'chat:writer@http://127.0.0.1:8000/v1'
    """
    return ChatGenerator(_completions(_parse(rest, DIALECTS[dialect]), options, backoff), options)


load_generator_anthropic = partial(load_generator, dialect="anthropic")
load_generator_gemini = partial(load_generator, dialect="gemini")


class _Address(NamedTuple):
    dialect: Dialect
    model: str
    base_url: str
    mode: Mode


def _parse(rest: str, dialect: Dialect) -> _Address:
    scheme = dialect.name
    named, _, mode = rest.partition("#")
    model, _, base_url = named.partition("@")
    if not model:
        raise AddressError(
            f"'{scheme}:' names no model", hint=f"{scheme}:MODEL@BASE_URL, for example {scheme}:judge@http://…/v1"
        )
    if not base_url:
        base_url = os.environ.get("OPENAI_BASE_URL", "") if scheme == "chat" else f"https://{dialect.host}"
    if not base_url:
        raise AddressError(
            f"'chat:{rest}' has no base URL",
            hint=f"chat:{model}@http://127.0.0.1:8000/v1, or set OPENAI_BASE_URL",
        )
    base_url = clean_url(base_url, f"{scheme}:{model}@…")
    for known in get_args(Mode):
        if (mode or "compare") == known:
            return _Address(dialect, model, base_url, known)
    raise AddressError(f"unknown mode {mode!r} in '{scheme}:{rest}'", hint=did_you_mean(mode, get_args(Mode)))


def _completions(address: _Address, options: ModelOptions, backoff: Backoff) -> Completions:
    dialect = address.dialect
    if options.structured == "json-schema" and "schema" not in dialect.abilities:
        raise ModelError(
            f"'{dialect.name}:' takes no JSON schema", hint="--structured auto reads the verdict from text there"
        )
    wire = Wire(
        address.base_url,
        key_variable=_key_variable(address, options),
        timeout_s=options.timeout_s,
        retries=options.retries,
        backoff=backoff,
        headers=dialect.headers,
    )
    return Completions(
        wire,
        address.model,
        dialect,
        concurrency=options.concurrency,
        price=options.price or listed_price(address.model, address.base_url),
        body=dict(options.body),
        structured=options.structured,
    )


def _key_variable(address: _Address, options: ModelOptions) -> str | None:
    """The variable whose key may be sent to this host: a key goes nowhere but where it belongs."""
    dialect, host = address.dialect, urlsplit(address.base_url).hostname or ""
    if options.key_env is not None:
        if not os.environ.get(options.key_env, "").strip():
            raise ModelError(f"the variable {options.key_env!r} holds no key", hint=f"set {options.key_env}")
        return options.key_env
    named = urlsplit(os.environ.get("OPENAI_BASE_URL", "")).hostname if dialect.name == "chat" else None
    return dialect.key_variable if host in (dialect.host, named) or is_loopback(host) else None


class ChatGenerator:
    """A chat model that writes.

    Args:
        completions: The model and its server.
        options: Decoding parameters, window and price.
    """

    def __init__(self, completions: Completions, options: ModelOptions) -> None:
        self._completions = completions
        self._options = options
        self._card = self._make_card("", {}, frozenset())

    @property
    def card(self) -> ModelCard:
        """Description of the model that answers; never the key."""
        return self._card

    @property
    def window(self) -> int | None:
        """The most tokens a prompt may have, where the user said so: the endpoint does not tell."""
        return self._options.window

    @property
    def effort(self) -> Effort:
        """Tokens of the prompts, and those that the server had to compute; both 0 where it does not tell."""
        return self._completions.effort

    @property
    def peak_flops(self) -> None:
        """Peak speed, not known of a machine that is not ours."""
        return

    @property
    def note(self) -> str | None:
        """Note on what this endpoint was found not to take, and how much was thought."""
        return self._completions.note

    def length(self, prompt: Prompt) -> int:
        """Estimated tokens of a prompt, from its bytes: right to about a third, mostly too high for English."""
        return estimate_tokens(prompt)

    def generate(
        self,
        prompts: Sequence[Prompt],
        *,
        n: int = 1,
        max_tokens: int = 512,
        temperature: float = 0.0,
        seed: int = 0,
        stop: Sequence[str] = (),
    ) -> Iterator[tuple[int, tuple[Outcome, ...]]]:
        """Write `n` texts for each prompt, each by its own request with its own seed.

        A text that `max_tokens` cut off is still a text; its outcome's reason says so.
        """

        def call(index: int) -> Call:
            parameters = {"max_tokens": max_tokens, "temperature": temperature, "seed": seed + index % n}
            return Call(prompts[index // n], {**parameters, **({"stop": list(stop)} if stop else {})})

        waiting: dict[int, dict[int, Outcome]] = {}
        for index, outcome in self._completions.ask(
            len(prompts) * n, call, lambda _, completion: read_text(completion)
        ):
            texts = waiting.setdefault(index // n, {})
            texts[index % n] = outcome
            if len(texts) == n:
                del waiting[index // n]
                yield index // n, tuple(texts[number] for number in range(n))

    def _make_card(self, mode: str, parameters: dict[str, Any], reads: frozenset[Channel]) -> ModelCard:
        options = self._options
        scheme = self._completions.dialect.name
        model = f"{self._completions.model}@{self._completions.wire.base_url}"
        if options.body:
            parameters = {**parameters, "body": dict(options.body)}
        return ModelCard(
            address=f"{scheme}:{model}#{mode}" if mode else f"{scheme}:{model}",
            reads=reads,
            parameters=parameters,
            deterministic=options.temperature == 0,
            price=self._completions.price,
        )


class _Judge(ChatGenerator):
    """Base of all judges: a template and the decoding parameters of the user."""

    mode: Mode

    def __init__(self, completions: Completions, options: ModelOptions, template: Template) -> None:
        super().__init__(completions, options)
        self._template = template
        parameters = {
            "mode": self.mode,
            "temperature": options.temperature,
            "max_tokens": options.max_tokens,
            "seed": options.seed,
            "template": template.digest,
        }
        if options.structured != "off":
            parameters["structured"] = options.structured
        if options.logprobs:
            parameters["logprobs"] = True
        self._card = self._make_card(self.mode, parameters, template.reads)

    def _prompt(self, view: View) -> Prompt:
        return Prompt(judged_conversation(self._template, view))

    def _ask(self, views: Sequence[View], read: Callable[[int, Completion], Outcome]) -> Iterator[tuple[int, Outcome]]:
        """One user's prompts follow each other, so that a server with a prefix cache reads the posts once."""
        order = prefix_order(views)
        replies = self._completions.ask(
            len(views),
            lambda place: self._call(views[order[place]]),
            lambda place, completion: read(order[place], completion),
        )
        return restored(order, replies)

    def _call(self, view: View) -> Call:
        parameters: dict[str, Any] = {"temperature": self._options.temperature, "max_tokens": self._options.max_tokens}
        if self._options.temperature == 0:
            # A judge that samples gets no seed: with one, every repeat of a call would be the same draw.
            parameters["seed"] = self._options.seed
        if self._options.structured != "off":
            parameters["schema"] = verdict_schema(self.mode)
        if self._options.logprobs and self.mode == "compare":
            parameters["logprobs"] = True
        prompt = self._prompt(view)
        return Call(prompt, parameters, _shared(prompt, view))


class ChatComparer(_Judge):
    """A chat model as pairwise judge."""

    mode: Mode = "compare"

    @property
    def has_margins(self) -> bool:
        """Whether verdicts come with log-odds, as far as the endpoint gives them."""
        return self._options.logprobs and "logprobs" in self._completions.dialect.abilities

    def render(self, view: PairView) -> Prompt:
        """Exactly what the model will receive for this view."""
        return self._prompt(view)

    def compare(self, views: Sequence[PairView]) -> Iterator[tuple[int, Outcome]]:
        """Judge each view; closing the iterator early cancels what is under way."""
        return self._ask(views, lambda _, completion: read_verdict(completion))


class ChatRater(_Judge):
    """A chat model as pointwise judge: a rating from 1 to 10."""

    mode: Mode = "rate"

    def render(self, view: AnswerView) -> Prompt:
        """Exactly what the model will receive for this view."""
        return self._prompt(view)

    def rate(self, views: Sequence[AnswerView]) -> Iterator[tuple[int, Outcome]]:
        """Rate each view; closing the iterator early cancels what is under way."""
        return self._ask(views, lambda _, completion: read_rating(completion))


class ChatRanker(_Judge):
    """A chat model as listwise judge: all answers in one prompt, their order in its reply.

    An answer's score is the share of the others that it beats. A pair is a list of two, and has no margin.
    """

    mode: Mode = "rank"
    favours_places = True
    most_answers = None
    has_margins = False

    def render(self, view: ListView | PairView) -> Prompt:
        """Exactly what the model will receive for this list."""
        return self._prompt(ListView.of(view) if isinstance(view, PairView) else view)

    def rank(self, views: Sequence[ListView]) -> Iterator[tuple[int, Outcome]]:
        """Rank each list as it stands; closing the iterator early cancels what is under way."""
        check_lists(views)
        return self._ask(views, lambda place, completion: read_ranking(completion, len(views[place].answers)))

    def compare(self, views: Sequence[PairView]) -> Iterator[tuple[int, Outcome]]:
        """Judge each pair by the ranking of its two answers."""
        return compare_by_rank(self, views, margins=False)


def _shared(prompt: Prompt, view: View) -> int:
    """Return how much of the prompt every call for this user begins with: up to the end of the last post."""
    text = prompt.messages[-1].content
    return max((text.rfind(post.text) + len(post.text) for post in view.posts if post.text in text), default=0)
