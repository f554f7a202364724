"""Prompts: files that turn a view into what a model receives, each beside the parser of its answer."""

from prbench.prompts.template import Template

__all__ = ["Template"]
