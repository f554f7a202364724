"""PAGE: the frame, the templates and the sections of self-contained HTML pages."""

from prbench.show.page.shell import (
    Section,
    asset,
    breakable,
    context_label,
    context_words,
    fill,
    masthead,
    policy,
    shell,
    templates,
)

__all__ = [
    "Section",
    "asset",
    "breakable",
    "context_label",
    "context_words",
    "fill",
    "masthead",
    "policy",
    "shell",
    "templates",
]
