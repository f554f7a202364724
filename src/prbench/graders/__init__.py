"""JUDGE: how far an answer meets a user's true rubric, aspect by aspect, by a judge whose own accuracy is known.

For downstream studies only: a judge is shown the standard that reward models must not see, shares neither encoder nor
weights with any of them, and what it cannot grade is a status, never a number.
"""

from prbench.graders.accuracy import Examination, examine, judge_accuracy, require_able, rubric_tags
from prbench.graders.load import load_judge
from prbench.graders.protocol import HIGHEST, Grade, Grading, RubricJudge
from prbench.graders.shared import shares, shares_training

__all__ = [
    "HIGHEST",
    "Examination",
    "Grade",
    "Grading",
    "RubricJudge",
    "examine",
    "judge_accuracy",
    "load_judge",
    "require_able",
    "rubric_tags",
    "shares",
    "shares_training",
]
