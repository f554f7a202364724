"""MODELS: protocols, one registry of addresses, and the backends behind them (`local`, `remote`, `personal`)."""

from prbench.config import ModelOptions, Price
from prbench.models.effort import Effort
from prbench.models.jury import Jury, is_hosted, seated
from prbench.models.lists import alone, as_ranker
from prbench.models.protocols import (
    Accounted,
    Adaptive,
    Comparer,
    Foreseeable,
    Forgetful,
    Generator,
    Model,
    ModelCard,
    Noted,
    Paced,
    Preparable,
    Rater,
    Replay,
    Sized,
    TextByText,
    Windowed,
    is_adaptive,
    is_rater,
)
from prbench.models.registry import BASELINES, load_encoder, load_generator, load_model, schemes

__all__ = [
    "BASELINES",
    "Accounted",
    "Adaptive",
    "Comparer",
    "Effort",
    "Foreseeable",
    "Forgetful",
    "Generator",
    "Jury",
    "Model",
    "ModelCard",
    "ModelOptions",
    "Noted",
    "Paced",
    "Preparable",
    "Price",
    "Rater",
    "Replay",
    "Sized",
    "TextByText",
    "Windowed",
    "alone",
    "as_ranker",
    "is_adaptive",
    "is_hosted",
    "is_rater",
    "load_encoder",
    "load_generator",
    "load_model",
    "schemes",
    "seated",
]
