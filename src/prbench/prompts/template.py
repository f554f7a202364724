"""Templates: files that turn a view into text, in one pass.

A template is a Jinja file in a sandbox. Its only variables are the fields of a view, as plain values, so user text is
never read as a template, nothing is called and the hidden standard cannot be named. A template that lacks a slot it
needs is refused before any call (a template without the answer gives every answer the same reward).
"""

import hashlib
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from jinja2 import TemplateError as JinjaError
from jinja2 import TemplateSyntaxError, meta

from prbench.errors import TemplateError, did_you_mean
from prbench.files import read_text
from prbench.prompts.sandbox import Sandbox, plain, write
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
        self._last: tuple[dict[str, Any], str] | None = None
        required, optional = _SLOTS[kind]
        try:
            self._compiled = _SANDBOX.from_string(source)
            self._slots = meta.find_undeclared_variables(_SANDBOX.parse(source))
        except TemplateSyntaxError as error:
            raise TemplateError(f"template {name}, line {error.lineno}: {error.message}") from error
        except (SyntaxError, RecursionError, MemoryError, ValueError) as error:  # of Python, which is what it becomes
            raise TemplateError(f"template {name} cannot be compiled: {error or type(error).__name__}") from error
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
        values = {slot: getattr(view, slot) for slot in self._slots}
        last = self._last  # the answers of a pair come one after another and often share all that is shown before them
        if last is not None and all(values[slot] is last[0][slot] for slot in self._slots):
            return last[1]
        try:
            text = write(self._compiled, {slot: plain(value) for slot, value in values.items()}).strip()
            self._last = (values, text)
            return text
        except (JinjaError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
            raise TemplateError(f"template {self.name} cannot be filled: {error}") from error
