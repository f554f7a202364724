"""Plans: what a user is likely to expect of an answer, inferred from the profile, and how good such plans are."""

from prbench.plan.matching import ENCODER, THRESHOLD, MatchCalibration, Matcher, calibrate
from prbench.plan.needs import Need, limited, need_id, needs_of
from prbench.plan.planner import Plan, Planner, read_plan
from prbench.plan.quality import FIGURES, Held, HeldPlans, PlanQuality, hold, summarise
from prbench.plan.stored import StoredPlans, read_plan_file

__all__ = [
    "ENCODER",
    "FIGURES",
    "THRESHOLD",
    "Held",
    "HeldPlans",
    "MatchCalibration",
    "Matcher",
    "Need",
    "Plan",
    "PlanQuality",
    "Planner",
    "StoredPlans",
    "calibrate",
    "hold",
    "limited",
    "need_id",
    "needs_of",
    "read_plan",
    "read_plan_file",
    "summarise",
]
