"""Plans: what a user is likely to expect of an answer, inferred from the profile."""

from prbench.plan.planner import Plan, Planner, read_plan

__all__ = ["Plan", "Planner", "read_plan"]
