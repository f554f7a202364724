"""Plain Python as a model: `py:module:attribute`, or any callable handed to `evaluate`.

A function says by its parameter names what it reads:

    def rate(question, answer) -> float                     a Rater that ignores the user
    def rate(question, answer, posts) -> float              a Rater that reads the profile
    def compare(question, first, second, posts)             a Comparer: "first", "second", "tie", or log-odds for first

Known names: question, answer, first, second, posts, plan, user. A single parameter named `view` takes the whole view.
"""

import hashlib
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from prbench.errors import AddressError, ModelError, did_you_mean
from prbench.models.lists import comparing
from prbench.models.protocols import Model, ModelCard, is_ranker
from prbench.models.registry import ModelOptions
from prbench.types import AnswerView, Channel, Message, Outcome, PairView, Prompt

_RATER_NAMES = ("question", "answer", "posts", "plan", "user")
_COMPARER_NAMES = ("question", "first", "second", "posts", "plan", "user")


def load(rest: str, options: ModelOptions) -> Model:
    """Import `module:attribute`; the attribute may be a model, a function, or a class to call without arguments."""
    module_name, _, attribute = rest.partition(":")
    if not module_name or not attribute:
        raise AddressError(f"py:{rest} should be py:MODULE:ATTRIBUTE", hint="for example py:my_models:score")
    if str(Path.cwd()) not in sys.path:  # a script in the working folder is what users mean
        sys.path.insert(0, str(Path.cwd()))
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        raise AddressError(f"py:{rest}: {error}", hint="is the file in the working folder or installed?") from error
    if not hasattr(module, attribute):
        names = [name for name in vars(module) if not name.startswith("_")]
        raise AddressError(f"{module_name!r} has no {attribute!r}", hint=did_you_mean(attribute, names))
    return wrap(getattr(module, attribute), address=f"py:{rest}")


def wrap(thing: Any, address: str = "") -> Model:
    """Turn a model or a callable into a Rater or a Comparer; a Ranker compares lists of two.

    Example:
        >>> def shorter(question, answer):
        ...     return -len(answer)
        >>> [outcome.score for _, outcome in wrap(shorter).rate([AnswerView("Tea?", "Green.")])]
        [-6.0]
    """
    if inspect.isclass(thing):
        thing = thing()
    if hasattr(thing, "card") and hasattr(thing, "render") and (hasattr(thing, "rate") or hasattr(thing, "compare")):
        return cast(Model, thing)
    if hasattr(thing, "card") and hasattr(thing, "render") and is_ranker(thing):
        return comparing(thing)
    if not callable(thing):
        missing = [name for name in ("card", "render", "rate, compare or rank") if not hasattr(thing, name.split()[0])]
        raise ModelError(
            f"{thing!r} is not a model: it has no {', no '.join(missing)}, and cannot be called",
            hint="pass an address such as 'longer', a Rater, Comparer or Ranker, a function (question, answer, posts)",
        )
    names = _parameters(thing)
    address = address or f"py:{getattr(thing, '__module__', '?')}:{_name(thing)}"
    if "first" in names or "second" in names:
        return FunctionComparer(thing, names, address)
    return FunctionRater(thing, names, address)


def _name(thing: Callable[..., Any]) -> str:
    return str(getattr(thing, "__qualname__", type(thing).__name__))


def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    parameters = inspect.signature(function).parameters.values()
    required = [p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    optional = [p.name for p in parameters if p.default is not p.empty]
    if required == ["view"]:
        return ("view",)
    known, wanted = (_COMPARER_NAMES, {"first", "second"}) if "first" in required else (_RATER_NAMES, {"answer"})
    if unknown := [name for name in required if name not in known]:
        raise ModelError(
            f"{_name(function)} has a parameter {unknown[0]!r} that no view has",
            hint=did_you_mean(unknown[0], known),
        )
    names = (*required, *(name for name in optional if name in known))
    if missing := sorted(wanted - set(names)):
        raise ModelError(
            f"{_name(function)} has no parameter {missing[0]!r}, so it could not tell the answers apart",
            hint=f"known names: {', '.join(known)}",
        )
    return names


def _source_hash(function: Callable[..., Any]) -> str:
    """Return the hash of as much code as can be seen: its module, or its own source, with what it closes over."""
    module = inspect.getmodule(function)
    parts = [repr(getattr(function, "__defaults__", None)), *map(_cell, getattr(function, "__closure__", None) or ())]
    for thing in (module, function, type(function)):
        try:
            parts.append(inspect.getsource(thing))  # type: ignore[arg-type]
        except (OSError, TypeError):
            continue
    if not inspect.isroutine(function):
        parts.append(repr(getattr(function, "__dict__", {})))
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()[:12]


def _cell(cell: Any) -> str:
    try:
        return repr(cell.cell_contents)
    except ValueError:  # not filled yet
        return ""


class _Function:
    """Base of both kinds of wrapped function."""

    def __init__(self, function: Callable[..., Any], names: tuple[str, ...], address: str) -> None:
        self._function = function
        self._names = names
        self._answered = False
        everything = names == ("view",)
        self.card = ModelCard(
            address=address,
            revision=_source_hash(function),
            reads=frozenset(channel for channel in Channel if everything or channel.value in names),
            reusable=False,  # the code behind a function cannot be pinned: what it calls may have changed
        )

    def _call(self, view: AnswerView | PairView) -> Any:
        if self._names == ("view",):
            return self._function(view)
        return self._function(**{name: getattr(view, name) for name in self._names})

    def _guarded(self, view: AnswerView | PairView, read: Callable[[Any], Outcome]) -> Outcome:
        """One input on which a user's function breaks is a failed record; on the very first it stops the run."""
        try:
            outcome = read(self._call(view))
        except Exception as error:
            if not self._answered:
                place = traceback.extract_tb(error.__traceback__)[-1]
                raise ModelError(
                    f"{self.card.address} raised {type(error).__name__}: {error}",
                    hint=f"at {place.filename}, line {place.lineno}: {place.line}",
                ) from error
            return Outcome.failed(f"{type(error).__name__}: {error}")
        self._answered = True
        return outcome

    def _render(self, view: AnswerView | PairView, answers: Sequence[Message]) -> Prompt:
        posts = [Message(f"post {post.id}", post.text) for post in view.posts if Channel.POSTS in self.card.reads]
        plan = [Message("plan", line) for line in view.plan if Channel.PLAN in self.card.reads]
        sees_user = "user" in self._names or self._names == ("view",)
        user = [Message("user id", view.user)] if view.user is not None and sees_user else []
        return Prompt((*user, *posts, *plan, Message("user", view.question), *answers))


class FunctionRater(_Function):
    """A function of one answer."""

    def render(self, view: AnswerView) -> Prompt:
        """The arguments, as named turns."""
        return self._render(view, [Message("assistant", view.answer)])

    def rate(self, views: Sequence[AnswerView]) -> Iterator[tuple[int, Outcome]]:
        """Call the function once for each view."""
        for index, view in enumerate(views):
            yield index, self._guarded(view, _scored)


class FunctionComparer(_Function):
    """A function of two answers in an order."""

    def render(self, view: PairView) -> Prompt:
        """The arguments, as named turns."""
        return self._render(view, [Message("first", view.first), Message("second", view.second)])

    def compare(self, views: Sequence[PairView]) -> Iterator[tuple[int, Outcome]]:
        """Call the function once for each view."""
        for index, view in enumerate(views):
            yield index, self._guarded(view, _judged)


def _scored(score: Any) -> Outcome:
    try:
        return Outcome.scored(score)
    except (TypeError, ValueError):
        return Outcome.invalid(f"returned a {type(score).__name__}, not a number")


def _judged(verdict: Any) -> Outcome:
    if isinstance(verdict, str) and verdict in ("first", "second", "tie"):
        return Outcome.judged(verdict)  # type: ignore[arg-type]
    if isinstance(verdict, int | float) and not isinstance(verdict, bool):
        return Outcome.judged("first" if verdict > 0 else "second" if verdict < 0 else "tie", float(verdict))
    return Outcome.invalid(f"returned a {type(verdict).__name__}, not 'first', 'second', 'tie' or log-odds")
