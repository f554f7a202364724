"""Every threshold of an audit in one place, and what it knows of axes by name (`axes.toml`, beside this file)."""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import Field

from prbench.config import Config
from prbench.errors import ConfigError
from prbench.files import read_toml


class AuditConfig(Config):
    """Thresholds of an audit.

    Example:
        >>> settings = default_settings()
        >>> settings.is_exempt("brevity", "words"), settings.is_exempt("risk", "words")
        (True, False)
    """

    style_warn: float = 0.5
    """Standardised difference between the poles of an axis from which the audit warns: Cohen's "medium"."""
    style_fail: float = 1.0
    """Standardised difference from which the audit fails: beyond Cohen's "large"."""
    style_share: float = 0.05
    """Means that differ by less than this share of the larger one are equal, however little they vary."""
    reading_points: float = 10.0
    """Flesch reading ease between poles; ten points are about one step of its scale."""
    near_warn: float = Field(0.25, gt=0, le=1)
    """Jaccard similarity of word 5-grams from which two texts are worth a look."""
    near_fail: float = Field(0.5, gt=0, le=1)
    """Jaccard similarity from which two texts are the same text."""
    sentence_words: int = 5
    """Fewest words of a sentence that may not recur."""
    copied_words: int = 8
    """Number of words of narrative, reason or question in a row that make a copy."""
    answer_words: int = 10
    """Number of words of an answer in a row in a profile that make a copy."""
    title_words: int = 4
    """Aspect titles (and whole questions or answers) with fewer words than this are not looked for."""
    everyday_share: float = 0.005
    """A name that stands in this share of unrelated texts is an everyday word."""
    everyday: tuple[str, ...] = ()
    """Names that are everyday words whatever the texts say."""
    evidence_posts: int = 2
    """Posts that must show each stance."""
    profile_posts: int = 5
    """Fewest posts that make a history."""
    post_words: tuple[int, int] = (15, 140)
    """Words of a post, from and to."""
    correlation: float = 0.6
    """|phi| between two axes over users who hold both."""
    level: float = 0.05
    """Significance level, after Holm's correction."""
    preference: float = 0.2
    """Distance from ½ of the share by which a user-blind rater prefers a pole."""
    probe_questions: int = 4
    """Axes with fewer questions are not probed."""
    train: str = "train"
    """The split in which unseen axes must not occur."""
    sharing: Mapping[str, Mapping[str, str]] = {"seen-users": {"users": "train", "questions": "test"}}
    """Kinds that a split may share with another one: `users`, `questions` (with their answers)."""
    warn_only: tuple[str, ...] = ()
    """Measures of style that warn but never fail, on any axis."""
    exempt: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    """Axis → measures and raters that are the axis itself; `*` holds for every axis."""
    seed: int = 0

    def is_exempt(self, axis: str, measure: str) -> bool:
        """Whether the poles of this axis are expected to differ in this measure."""
        return any(measure in self.exempt.get(name, ()) for name in (axis, "*"))


def default_settings() -> AuditConfig:
    """The settings that ship with the package."""
    return AuditConfig.model_validate(_shipped())


def load_settings(path: Path) -> AuditConfig:
    """Lay a TOML file over the settings that ship with the package; `exempt` is laid over axis by axis.

    Raises:
        ConfigError: If the file cannot be read or says something unknown.
    """
    own = read_toml(path, raises=ConfigError, hint="write them as TOML")
    shipped = _shipped()
    exempt = own.get("exempt", {})
    merged = {**shipped, **own, "exempt": {**shipped["exempt"], **exempt} if isinstance(exempt, dict) else exempt}
    return AuditConfig.of(str(path), **merged)


def _shipped() -> dict[str, Any]:
    return tomllib.loads(files("prbench.audit").joinpath("axes.toml").read_text(encoding="utf-8"))
