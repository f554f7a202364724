"""Agreement of two rankings of reward models: coefficients with their chance level and uncertainty.

The paper shows six reward models and a bare coefficient (p = 0.25 to 0.33). Here none leaves without a permutation
test, intervals over models and over items, and a verdict that may not say more than the data do.
"""

from prbench.stats.correlation.coefficients import COEFFICIENTS, Coefficient, chance_level, coefficient
from prbench.stats.correlation.lineages import (
    LEAST_LINEAGES,
    LineageAgreement,
    LineageDifference,
    difference_over_lineages,
    over_lineages,
)
from prbench.stats.correlation.partial import Partial, partial_correlation
from prbench.stats.correlation.permutation import PERMUTATIONS, PermutationTest, permutation_test
from prbench.stats.correlation.power import fisher_interval, models_needed, power_table
from prbench.stats.correlation.resampling import ItemScores, Jackknife, jackknife, over_items, over_models
from prbench.stats.correlation.rivals import Rivalry, Williams, compare_benchmarks, williams
from prbench.stats.correlation.simulated import Design, Power, lineage_power, simulated_power
from prbench.stats.correlation.verdict import CorrelationVerdict, rivalry_verdict, verdict

__all__ = [
    "COEFFICIENTS",
    "LEAST_LINEAGES",
    "PERMUTATIONS",
    "Coefficient",
    "CorrelationVerdict",
    "Design",
    "ItemScores",
    "Jackknife",
    "LineageAgreement",
    "LineageDifference",
    "Partial",
    "PermutationTest",
    "Power",
    "Rivalry",
    "Williams",
    "chance_level",
    "coefficient",
    "compare_benchmarks",
    "difference_over_lineages",
    "fisher_interval",
    "jackknife",
    "lineage_power",
    "models_needed",
    "over_items",
    "over_lineages",
    "over_models",
    "partial_correlation",
    "permutation_test",
    "power_table",
    "rivalry_verdict",
    "simulated_power",
    "verdict",
    "williams",
]
