"""The former name of `prbench.graders`, kept for scripts that import it."""

from prbench.graders import *  # noqa: F403
