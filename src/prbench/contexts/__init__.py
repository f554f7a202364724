"""Contexts: what of the user a model is shown, and whether it fits."""

from prbench.contexts.budget import Unfit, render_all
from prbench.contexts.builder import ContextBuilder, Shown, ShownAnswers, aspect_line
from prbench.contexts.derange import derangement, mirror_twins, user_stances

__all__ = [
    "ContextBuilder",
    "Shown",
    "ShownAnswers",
    "Unfit",
    "aspect_line",
    "derangement",
    "mirror_twins",
    "render_all",
    "user_stances",
]
