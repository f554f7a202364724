"""Templates: files that turn a view into text, in one pass.

A template is a Jinja file in a sandbox. Its only variables are the fields of a view, as plain values, so user text is
never read as a template, nothing is called and the hidden standard cannot be named. A template that lacks a slot it
needs is refused before any call (a template without the answer gives every answer the same reward).
"""

import hashlib
import secrets
from collections import Counter
from collections.abc import Set
from functools import cached_property
from importlib.resources import files
from operator import is_
from pathlib import Path
from typing import Any, Literal

from jinja2 import TemplateError as JinjaError
from jinja2 import TemplateSyntaxError, meta, nodes

from prbench.errors import TemplateError, did_you_mean
from prbench.files import read_text
from prbench.prompts.sandbox import Sandbox, fits, plain, write
from prbench.types import AnswerView, Channel, ListView, PairView

Kind = Literal["turn", "rate", "compare", "rank", "plan"]
"""`turn`: the user's turn before an answer; `rate`: a request to rate one answer; `compare`: to compare two; `rank`: to
rank a list; `plan`: to infer what the user expects."""

_SLOTS: dict[Kind, tuple[frozenset[str], frozenset[str]]] = {  # (required, allowed besides)
    "turn": (frozenset({"question"}), frozenset({"posts", "plan"})),
    "rate": (frozenset({"question", "answer"}), frozenset({"posts", "plan"})),
    "compare": (frozenset({"question", "first", "second"}), frozenset({"posts", "plan"})),
    "rank": (frozenset({"question", "answers"}), frozenset({"posts", "plan"})),
    "plan": (frozenset({"question", "posts"}), frozenset()),
}

_TEXTS = frozenset({"question", "answer", "first", "second"})
"""Slots that hold a text."""
_BORDER = f"\0{secrets.token_hex(16)}\0"
_MOST_SKELETONS = 1024

_SANDBOX = Sandbox()


class Template:
    """One template, checked when it is made.

    Example:
        >>> template = Template("{{ question }}", "turn")
        >>> template.render(AnswerView("Tea?", "Green."))
        'Tea?'
        >>> sorted(template.reads)
        []
    """

    def __init__(self, source: str, kind: Kind, name: str = "<template>") -> None:
        self.source = source
        self.kind: Kind = kind
        self.name = name
        self._skeletons: dict[Any, list[str]] = {}
        required, optional = _SLOTS[kind]
        try:
            self._compiled = _SANDBOX.from_string(source)
            tree = _SANDBOX.parse(source)
            self._slots = meta.find_undeclared_variables(tree)
        except TemplateSyntaxError as error:
            raise TemplateError(f"template {name}, line {error.lineno}: {error.message}") from error
        except (SyntaxError, RecursionError, MemoryError, ValueError) as error:  # of Python, which is what it becomes
            raise TemplateError(f"template {name} cannot be compiled: {error or type(error).__name__}") from error
        self._bare = _bare_slots(tree, self._slots & _TEXTS)
        self._others = sorted(self._slots - self._bare)
        self._last: tuple[tuple[Any, ...], list[str]] = ((), [])
        """The last values of the others, and what was written of them."""
        if missing := sorted(required - self._slots):
            raise TemplateError(
                f"template {name} has no slot {{{{ {missing[0]} }}}}",
                hint=f"a {kind!r} template must show: {', '.join(sorted(required))}",
            )
        if unknown := sorted(self._slots - required - optional):
            raise TemplateError(
                f"template {name} asks for {unknown[0]!r}, which no model may see or no view has",
                hint=did_you_mean(unknown[0], sorted(required | optional)),
            )

    @classmethod
    def builtin(cls, file: str, kind: Kind) -> "Template":
        """Load one of the templates that ship beside this module."""
        return cls(files("prbench.prompts").joinpath(file).read_text(encoding="utf-8"), kind, file)

    @classmethod
    def load(cls, path: Path | None, kind: Kind, default: str) -> "Template":
        """Load a user's template file, or the built-in one where there is none."""
        if path is None:
            return cls.builtin(default, kind)
        return cls(read_text(Path(path), raises=TemplateError), kind, str(path))

    @property
    def reads(self) -> frozenset[Channel]:
        """The channels that this template shows."""
        return frozenset(channel for channel in Channel if channel.value in self._slots)

    @cached_property
    def digest(self) -> str:
        """Short content hash, part of every call's key."""
        return hashlib.sha256(self.source.encode()).hexdigest()[:12]

    def render(self, view: AnswerView | PairView | ListView) -> str:
        """Fill the template from a view, in one pass, without surrounding white space."""
        try:
            parts = enumerate(self._skeleton(view))
            text = "".join([getattr(view, part) if place % 2 else part for place, part in parts]).strip()
            return fits(text)
        except (JinjaError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
            raise TemplateError(f"template {self.name} cannot be filled: {error}") from error

    def _skeleton(self, view: AnswerView | PairView | ListView) -> list[str]:
        """Return the text around the slots that are written as they are, and between its parts their names.

        Thousands of prompts show the same posts, and writing those out takes nearly all the time.
        """
        key = tuple([getattr(view, slot) for slot in self._others])
        last, parts = self._last
        if parts and all(map(is_, key, last)):  # the same pair the other way round
            return parts
        if (known := self._skeletons.get(key)) is not None:
            self._last = (key, known)
            return known
        # No text can hold the border, for it is drawn anew in each process.
        marked = {slot: f"{_BORDER}{slot}{_BORDER}" for slot in self._bare}
        others = {slot: plain(value) for slot, value in zip(self._others, key, strict=True)}
        parts = write(self._compiled, {**others, **marked}).split(_BORDER)
        if len(self._skeletons) >= _MOST_SKELETONS:
            self._skeletons.clear()
        self._skeletons[key] = parts
        self._last = (key, parts)
        return parts


def _bare_slots(tree: nodes.Template, slots: Set[str]) -> frozenset[str]:
    """The slots that a template writes as they are, wherever it names them."""
    written = [node for output in tree.find_all(nodes.Output) for node in output.nodes if isinstance(node, nodes.Name)]
    named = Counter(node.name for node in tree.find_all(nodes.Name))
    return frozenset(
        slot for slot, count in Counter(node.name for node in written).items() if count == named[slot] and slot in slots
    )
