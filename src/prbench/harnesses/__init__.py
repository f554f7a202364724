"""HARNESSES: the suites as tasks of other evaluation harnesses, Inspect AI and lm-evaluation-harness.

They show a model what `prbench run` shows it, with the same pairs, users and couples, so that a number can be compared
with a run's. What the harness cannot do stays with `prbench run`: intervals over users and questions, the verdict,
records that verify. Nothing here is imported by the rest of the package, and nothing here needs an extra of it.
"""

from prbench.harnesses.views import ShownPair, shown_pairs

__all__ = ["ShownPair", "shown_pairs"]
