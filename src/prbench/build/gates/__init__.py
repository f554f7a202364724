"""GATES: which drafts are good enough to be pairs.

Each gate is a small class with one method that names what it refuses, and why. Most cost nothing; `quality`,
`rubric-margin` and `agreement` ask models. What a gate cannot measure never passes, and couples stay whole.
"""

from prbench.build.gates.copying import RubricCopying
from prbench.build.gates.couples import WholeCouples
from prbench.build.gates.duplicates import NearDuplicates
from prbench.build.gates.gate import Gate, GateCount, GateReport, Reject, is_unmeasured, run_gates
from prbench.build.gates.language import SameLanguage, known_languages, language_shares
from prbench.build.gates.leakage import ProfileLeakage
from prbench.build.gates.length import LengthRatio
from prbench.build.gates.parse import KINDS, left_out, parse_gates
from prbench.build.gates.quality import EqualQuality
from prbench.build.gates.rubric import Margins, RubricMargin, TwoRaters

__all__ = [
    "KINDS",
    "EqualQuality",
    "Gate",
    "GateCount",
    "GateReport",
    "LengthRatio",
    "Margins",
    "NearDuplicates",
    "ProfileLeakage",
    "Reject",
    "RubricCopying",
    "RubricMargin",
    "SameLanguage",
    "TwoRaters",
    "WholeCouples",
    "is_unmeasured",
    "known_languages",
    "language_shares",
    "left_out",
    "parse_gates",
    "run_gates",
]
