"""A griffe extension for the API page: `Example:` in a docstring is a section of examples, shown as code."""

import re
from typing import Any

import griffe


class Examples(griffe.Extension):
    """Names the section as the parser of Google docstrings does."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rename the heading of the examples."""
        if obj.docstring:
            obj.docstring.value = re.sub(r"^(\s*)Example:$", r"\1Examples:", obj.docstring.value, flags=re.MULTILINE)
