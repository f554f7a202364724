"""Fixed conversations whose scores tell whether a served reward model gives what its weights give here.

Score the first one where the weights are (`prbench models probe hf:DIR`) and state that number where they are served
(`--expect-logit`): another chat template, other weights or an activation over the logits then cannot pass unnoticed.
"""

from prbench.config import ModelOptions
from prbench.errors import AddressError, ModelError
from prbench.models.lists import alone
from prbench.models.registry import load_model
from prbench.types import AnswerView

__all__ = ["PROBES", "probe_score"]

PROBES = (
    AnswerView("What can I drink in the evening?", "Chamomile or warm milk: both are gentle and free of caffeine."),
    AnswerView("What can I drink in the evening?", "No."),
    AnswerView("How many days has a leap year?", "A leap year has 366 days, because February has a 29th."),
    AnswerView("How many days has a leap year?", "Purple furniture, as my uncle used to sing, sings."),
)
"""Never to be changed: users keep known scores of the first."""


def probe_score(address: str, options: ModelOptions | None = None) -> float:
    """A rater's score of the first probe.

    Example:
        >>> probe_score("longer")
        11.0
    """
    rater = alone(load_model(address, options))
    if rater is None:
        raise AddressError(f"{address!r} judges pairs and gives no scores", hint="name a rater, for example hf:DIR")
    [(_, outcome)] = rater.rate(PROBES[:1])
    if outcome.score is None:
        raise ModelError(f"{address!r} gave the probe no score: {outcome.reason}", hint="see whether it scores at all")
    return float(outcome.score)
