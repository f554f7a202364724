"""prbench evaluates whether a reward model knows what this user wants.

Example:
    >>> from prbench import evaluate
    >>> found = evaluate("longer", "mirror", contexts=["none"], limit=100)
    >>> found.contexts["none"].accuracy.value
    0.5

Names are imported when they are first used, so `import prbench` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from prbench._version import __version__

if TYPE_CHECKING:
    from prbench.api import (
        PersonalizedReward,
        Scale,
        calibrate,
        compare,
        evaluate,
        evaluate_personalized_reward,
    )
    from prbench.api.callback import PersonalRewardCallback
    from prbench.config import ModelOptions
    from prbench.data import Suite, load_pairs, load_questions, suites
    from prbench.errors import PrbenchError
    from prbench.models import Comparer, Generator, ModelCard, Rater, load_model
    from prbench.results import Result
    from prbench.run import Evaluation
    from prbench.stats import Estimate
    from prbench.types import AnswerView, Aspect, Judgment, ListView, Message, Outcome, Pair, PairView, Post, Prompt

_HOMES = {
    "AnswerView": "prbench.types",
    "Aspect": "prbench.types",
    "Comparer": "prbench.models",
    "Estimate": "prbench.stats",
    "Evaluation": "prbench.run",
    "Generator": "prbench.models",
    "Judgment": "prbench.types",
    "ListView": "prbench.types",
    "Message": "prbench.types",
    "ModelCard": "prbench.models",
    "ModelOptions": "prbench.config",
    "Outcome": "prbench.types",
    "Pair": "prbench.types",
    "PairView": "prbench.types",
    "PersonalRewardCallback": "prbench.api.callback",
    "PersonalizedReward": "prbench.api",
    "Post": "prbench.types",
    "PrbenchError": "prbench.errors",
    "Prompt": "prbench.types",
    "Rater": "prbench.models",
    "Result": "prbench.results",
    "Scale": "prbench.api",
    "Suite": "prbench.data",
    "calibrate": "prbench.api",
    "compare": "prbench.api",
    "evaluate": "prbench.api",
    "evaluate_personalized_reward": "prbench.api",
    "load_model": "prbench.models",
    "load_pairs": "prbench.data",
    "load_questions": "prbench.data",
    "suites": "prbench.data",
}

__all__ = [
    "AnswerView",
    "Aspect",
    "Comparer",
    "Estimate",
    "Evaluation",
    "Generator",
    "Judgment",
    "ListView",
    "Message",
    "ModelCard",
    "ModelOptions",
    "Outcome",
    "Pair",
    "PairView",
    "PersonalRewardCallback",
    "PersonalizedReward",
    "Post",
    "PrbenchError",
    "Prompt",
    "Rater",
    "Result",
    "Scale",
    "Suite",
    "__version__",
    "calibrate",
    "compare",
    "evaluate",
    "evaluate_personalized_reward",
    "load_model",
    "load_pairs",
    "load_questions",
    "suites",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'prbench' has no attribute {name!r}")
    try:
        return getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        from prbench.errors import MissingExtraError

        if (missing := MissingExtraError.of(error, f"prbench.{name}")) is None:
            raise
        raise missing from error


def __dir__() -> list[str]:
    return __all__
