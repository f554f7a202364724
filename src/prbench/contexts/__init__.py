"""Contexts: what of the user a model is shown, and whether it fits."""

from prbench.contexts.blind import check_length, check_prompts
from prbench.contexts.budget import Unfit, render_all
from prbench.contexts.builder import ContextBuilder, ShownAnswers, ShownView, aspect_line
from prbench.contexts.derange import derangement, mirror_twins, user_stances
from prbench.contexts.judged import judged_pairs, known_as, questions_aside
from prbench.contexts.posts import ShownPosts

__all__ = [
    "ContextBuilder",
    "ShownAnswers",
    "ShownPosts",
    "ShownView",
    "Unfit",
    "aspect_line",
    "check_length",
    "check_prompts",
    "derangement",
    "judged_pairs",
    "known_as",
    "mirror_twins",
    "questions_aside",
    "render_all",
    "user_stances",
]
