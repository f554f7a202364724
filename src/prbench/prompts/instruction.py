"""Prompts of the builder: filled from named texts in one pass, like templates, but allowed to hold the standard.

A builder of suites must show narratives and rubric aspects to the model that writes; an evaluation must not. So these
are a class of their own: an `Instruction` renders no view, and a model that is evaluated renders nothing else.
"""

import hashlib
import re
from functools import cached_property
from importlib.resources import files
from typing import Any

from jinja2 import meta

from prbench.errors import TemplateError
from prbench.prompts.sandbox import Sandbox, plain, write
from prbench.types import Message, Prompt

_TURN = re.compile(r"^\{# (system|user|assistant) #\}$", re.MULTILINE)
_MARK = re.compile(r"^[ \t]*(?:<<<[ \t]*[A-Z]|[A-Z]+(?:[ \t]+\d+)?[ \t]*>>>[ \t]*$)", re.MULTILINE)
"""A line like those between which the files quote: text that is filled in must not end its own quotation."""


def _quoted(value: Any) -> Any:
    return _MARK.sub(lambda mark: f"| {mark[0]}", value) if isinstance(value, str) else value


_SANDBOX = Sandbox(finalize=_quoted)


class Instruction:
    """One prompt file of the builder: one user turn, or several turns, each opened by a line `{# user #}` and so on.

    Args:
        source: The Jinja text.
        name: For messages.

    Example:
        >>> Instruction("Answer {{ question }}").fill(question="Tea?").messages[0].content
        'Answer Tea?'
    """

    def __init__(self, source: str, name: str = "<instruction>") -> None:
        self.source = source
        self.name = name
        self.slots = frozenset(meta.find_undeclared_variables(_SANDBOX.parse(source)))
        self._turns = [(role, _SANDBOX.from_string(text)) for role, text in _turns(source)]

    @classmethod
    def builtin(cls, file: str) -> "Instruction":
        """Load one of the files that ship beside this module."""
        return cls(files("prbench.prompts").joinpath(file).read_text(encoding="utf-8"), file)

    @cached_property
    def digest(self) -> str:
        """Content hash, for the card of what was built with it."""
        return hashlib.sha256(self.source.encode()).hexdigest()

    def fill(self, **values: Any) -> Prompt:
        """The request to send; exactly the slots of the file must be given."""
        if values.keys() != self.slots:
            odd = ", ".join(sorted(values.keys() ^ self.slots))
            raise TemplateError(f"{self.name} has slots {', '.join(sorted(self.slots))}; given or missing: {odd}")
        slots = {name: plain(value) for name, value in values.items()}
        return Prompt(tuple(Message(role, write(turn, slots).strip()) for role, turn in self._turns))


def _turns(source: str) -> list[tuple[str, str]]:
    """The turns of a file; it is cut before it is filled, so that no text that is filled in can open a turn."""
    first, *parts = _TURN.split(source)
    return list(zip(parts[::2], parts[1::2], strict=True)) if parts else [("user", first)]
