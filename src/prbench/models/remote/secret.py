"""The key of an endpoint, and how it is kept out of everything that a server says: a server may echo it."""

import json
import os
import re
from functools import cached_property
from typing import Any

from prbench.errors import ModelError

_SHORTEST = 6
"""Shortest key that is kept secret: a shorter one stands in where a server wants none (`EMPTY`, `none`, `x`), and is a
common word."""
_HIDDEN = "***"


class SecretKey:
    """A key from the environment; there need not be one.

    Args:
        variable: Name of the environment variable that holds it.
    """

    def __init__(self, variable: str | None) -> None:
        self.variable = variable
        self.value = _read(variable)
        self._secret = self.value if self.value and len(self.value) >= _SHORTEST else None

    def cleared(self, body: bytes) -> bytes:
        """A reply without the key, also where it is spelt with JSON's escapes or has bytes that are no text."""
        if self._secret is None:
            return body
        text = body.decode("utf-8", "replace")
        if self._surely_none(text):
            return body
        for form in (body, text):
            try:
                value = json.loads(form)
                cleared = self._cleared_value(value)
                same = form is body and cleared == value and self.hidden(text) == text
                return body if same else json.dumps(cleared).encode()
            except (ValueError, RecursionError):
                continue
        return self.hidden(text.replace("\0", "")).encode()  # UTF-16 is the same letters with zeros between them

    def _surely_none(self, text: str) -> bool:
        """Whether a reply cannot hold the key: no escapes, no zeros, not the key itself, and no number is like it."""
        plain = "\\" not in text and "\0" not in text and not re.fullmatch(r"[0-9.e+-]+", self._secret or "")
        return plain and self.hidden(text) == text

    def _cleared_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.hidden(value)
        if isinstance(value, list):
            return [self._cleared_value(one) for one in value]
        if isinstance(value, dict):
            return {self.hidden(key): self._cleared_value(one) for key, one in value.items()}
        if isinstance(value, int | float) and self._secret is not None and self._secret in str(value):
            return None
        return value

    def hidden(self, text: str) -> str:
        """A text without the key, also where some of its characters are spelt with JSON's escapes or a URL's."""
        if self._secret is None:
            return text
        spelt = "\\" in text or "%" in text
        return self._spelt.sub(_HIDDEN, text) if spelt else text.replace(self._secret, _HIDDEN)

    @cached_property
    def _spelt(self) -> re.Pattern[str]:
        """The key in any spelling; a few backslashes more are escapes that were escaped again."""
        return re.compile("".join(map(_any_spelling, self._secret or "")))


def _read(variable: str | None) -> str | None:
    key = os.environ.get(variable, "").strip() if variable else ""
    if not (key.isascii() and key.isprintable()):  # checked here, because the client's own error would show it
        raise ModelError(f"the key in {variable} has characters that no key has", hint=f"set {variable} anew")
    return key or None


def _any_spelling(character: str) -> str:
    plain = re.escape(character)
    escape = rf"(?:{plain}|\\{{1,8}}(?i:u{ord(character):04x})|(?i:%{ord(character):02x})"
    return escape + (rf"|\\{{1,8}}{plain})" if character in '/"' else ")")
