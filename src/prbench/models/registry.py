"""Addresses: `scheme:rest` names a model, `name` alone a baseline.

A scheme is looked up among the built-in ones, then among the entry points of the group `prbench.models`, so a new kind
of model never needs an edit of this package. A factory is a callable `(rest, options) -> Rater | Comparer`; it is
imported only when its scheme is asked for, so listing models loads nothing heavy.
"""

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from typing import NamedTuple, cast

from prbench.config import ModelOptions, one_address
from prbench.errors import AddressError, MissingExtraError, did_you_mean
from prbench.models.protocols import Generator, Model
from prbench.rank import TextEncoder

__all__ = [
    "BASELINES",
    "BUILTIN",
    "Factory",
    "ModelOptions",
    "Scheme",
    "load_encoder",
    "load_generator",
    "load_model",
    "schemes",
]

GROUP = "prbench.models"


Factory = Callable[[str, ModelOptions], Model]


class Scheme(NamedTuple):
    """Scheme of addresses of one kind: their form, what they give, and where the code is."""

    pattern: str
    summary: str
    target: str
    """`module:attribute` of the factory."""


BUILTIN: dict[str, Scheme] = {
    "random": Scheme("random", "a hash of question and answer: chance", "prbench.models.baselines:random"),
    "longer": Scheme("longer", "prefers the longer answer", "prbench.models.baselines:longer"),
    "shorter": Scheme("shorter", "prefers the shorter answer", "prbench.models.baselines:shorter"),
    "overlap": Scheme("overlap", "prefers the answer with the question's words", "prbench.models.baselines:overlap"),
    "hf": Scheme(
        "hf:ORG/NAME[@REV], hf:DIR or hf:BASE+ADAPTER [#label=L or #read=WAY]",
        "reward model",
        "prbench.models.local.hf:load",
    ),
    "lm": Scheme(
        "lm:smollm2, lm:DIR, lm:FILE.gguf, lm:ORG/NAME [#compare|rate|rank|loglik|pmi|yes-no]",
        "local language model as judge or rater, read from its logits",
        "prbench.models.local.lm:load",
    ),
    "embed": Scheme(
        "embed:minilm, embed:DIR", "closeness of embeddings: a simple baseline", "prbench.models.local.embed:load"
    ),
    "dpo": Scheme("dpo:POLICY,REFERENCE", "implicit reward of a DPO-trained policy", "prbench.models.local.dpo:load"),
    "chat": Scheme(
        "chat:MODEL@BASE_URL#compare|rate|rank",
        "LLM judge on any OpenAI-compatible endpoint",
        "prbench.models.remote.chat:load",
    ),
    "anthropic": Scheme(
        "anthropic:MODEL[@BASE_URL]#compare|rate|rank",
        "LLM judge, Anthropic's own",
        "prbench.models.remote.chat:load_anthropic",
    ),
    "gemini": Scheme(
        "gemini:MODEL[@BASE_URL]#compare|rate|rank", "LLM judge, Gemini's own", "prbench.models.remote.chat:load_gemini"
    ),
    "http": Scheme(
        "http:http://HOST:PORT or http:vllm:MODEL@URL",
        "a served reward model, also on a vLLM server",
        "prbench.models.remote.http:load",
    ),
    "personal": Scheme(
        "personal:DIR or personal:reference",
        "a personalized reward model: trained by `prbench train`, or the one that ships",
        "prbench.models.personal.rater:load",
    ),
    "jury": Scheme("jury:ADDRESS,ADDRESS,…[#majority|mean]", "several models, one verdict", "prbench.models.jury:load"),
    "stored": Scheme("stored:FILE", "scores computed elsewhere, by pair id", "prbench.models.stored:load"),
    "py": Scheme("py:MODULE:ATTR", "a Python function, Rater or Comparer", "prbench.models.python:load"),
}
"""Every scheme that ships with the package, baselines first."""

BASELINES = ("random", "longer", "shorter", "overlap")


def load_model(address: str, options: ModelOptions | None = None) -> Model:
    """Open a model by its address.

    Example:
        >>> load_model("longer").card.address
        'longer'
    """
    scheme, _, rest = one_address(address).partition(":")
    return _factory(scheme, address)(rest, options or ModelOptions())


def load_generator(address: str, options: ModelOptions | None = None) -> Generator:
    """Open a model that writes text, by its address; not every kind of model can.

    A scheme can if the module of its factory has a function `load_generator(rest, options)`.
    """
    opener = _other_door(address, "load_generator", "write text", "chat:MODEL@BASE_URL")
    return cast(Generator, opener(address, options))


def load_encoder(address: str, options: ModelOptions | None = None) -> TextEncoder:
    """Open a model that embeds texts, by its address, for dense ranking.

    A scheme can if the module of its factory has a function `load_encoder(rest, options)`.
    """
    return cast(TextEncoder, _other_door(address, "load_encoder", "embed texts", "embed:minilm")(address, options))


def _other_door(address: str, name: str, verb: str, example: str) -> Callable[[str, ModelOptions | None], object]:
    scheme, _, rest = address.partition(":")
    _factory(scheme, address)
    module = import_module(schemes()[scheme].target.partition(":")[0])
    if not hasattr(module, name):
        raise AddressError(f"{address!r} cannot {verb}", hint=f"name a model that can, for example {example}")
    own = f"{name}_{scheme}"  # schemes that share a module have doors of their own
    return lambda _, options: getattr(module, own if hasattr(module, own) else name)(rest, options or ModelOptions())


def schemes() -> dict[str, Scheme]:
    """All known kinds of address: built in and installed."""
    found = dict(BUILTIN)
    for point in entry_points(group=GROUP):
        found.setdefault(point.name, Scheme(f"{point.name}:…", f"from {point.value}", point.value))
    return found


def _factory(scheme: str, address: str) -> Factory:
    known = schemes()
    if scheme not in known:
        raise AddressError(f"unknown model address {address!r}", hint=did_you_mean(scheme, known))
    module, _, attribute = known[scheme].target.partition(":")
    try:
        return cast(Factory, getattr(import_module(module), attribute))
    except ModuleNotFoundError as error:
        missing = MissingExtraError.of(error, address) if scheme in BUILTIN else None
        if missing is None or isinstance(error, MissingExtraError):
            raise
        raise missing from error
