"""Statements: what somebody says outright, in a sentence or in a form, and whether they want what they name."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from prbench.models.personal.traits import Floats

_SURE = 12.0
"""Log-odds with which models of earlier versions take every statement for a wish."""


class Attitude(NamedTuple):
    """Log-odds that a statement wants what it names, linear in its vector and its terms.

    Example:
        >>> attitude = Attitude(np.array([0.0, -9.0]), np.array([-9.0]), 4.5)
        >>> coffee, no_tea = np.array([1.0, 0.0]), np.array([0.0, 1.0])
        >>> attitude.willing(np.stack([coffee, no_tea, coffee]), np.array([[0.0], [0.0], [1.0]])).round(2).tolist()
        [0.98, -0.98, -0.98]
    """

    vectors: Floats
    terms: Floats
    """Of all known terms; none where models of earlier versions read the vector alone."""
    start: float

    @classmethod
    def of(cls, weights: Mapping[str, Any], width: int) -> "Attitude":
        """Return what the arrays of `weights.safetensors` hold of it."""
        found = weights.get("attitude", np.append(np.zeros(width), _SURE)).astype(np.float64)
        return cls(found[:-1], weights.get("attitude_terms", np.zeros(0)).astype(np.float64), float(found[-1]))

    @property
    def arrays(self) -> dict[str, Any]:
        """The arrays that are kept of it."""
        vectors = np.append(self.vectors, self.start).astype(np.float32)
        return {"attitude": vectors, "attitude_terms": self.terms.astype(np.float16)}

    def willing(self, vectors: Floats, rows: Any) -> Floats:
        """How far statements want what they name: 1 where they do, −1 where they want it not, (N).

        Args:
            vectors: Of the statements, (N, width).
            rows: Their terms, (N, terms), sparse or not.
        """
        odds = vectors @ self.vectors + self.start
        return np.asarray(np.tanh((odds + rows @ self.terms if len(self.terms) else odds) / 2))


def statements(text: str) -> list[str]:
    """Return the statements of a form, a line each; none where a text is no form.

    Example:
        >>> statements('{"preference_for_brevity": true, "tone": {"warm": false}, "likes": ["tables", "figures"]}')
        ['preference for brevity: yes', 'tone warm: no', 'likes: tables, figures']
        >>> statements("I like tea.")
        []
    """
    if not text.strip().startswith("{"):
        return []
    try:
        form = json.loads(text)
    except ValueError:
        return []
    return list(_lines(form)) if isinstance(form, dict) else []


def _lines(form: Mapping[str, Any], before: str = "") -> Iterator[str]:
    for key, value in form.items():
        name = f"{before}{key}".replace("_", " ")
        if isinstance(value, Mapping):
            yield from _lines(value, f"{name} ")
        elif isinstance(value, bool):
            yield f"{name}: {'yes' if value else 'no'}"
        elif value is not None:
            yield f"{name}: {', '.join(map(str, value)) if isinstance(value, list) else value}"
