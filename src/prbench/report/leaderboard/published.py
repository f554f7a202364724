"""Figures that others have published, for a table beside ours: read from `published.toml` in the package."""

import tomllib
from functools import cache
from typing import Literal

from prbench.show.page import asset
from prbench.types import Frozen, Text


class PublishedFigure(Frozen):
    """Figure from another publication, as printed there."""

    benchmark: Text
    what: Text
    figure: Text
    """Figure in percent, as published; two settings are separated by a slash."""
    confidence: Literal["primary", "secondary"]
    source: Text
    url: Text


@cache
def published() -> tuple[PublishedFigure, ...]:
    """All figures, in the order of the file.

    Example:
        >>> published()[0].figure
        '75.94'
    """
    return tuple(
        PublishedFigure.model_validate(row)
        for row in tomllib.loads(asset("published.toml", "prbench.report"))["figure"]
    )
