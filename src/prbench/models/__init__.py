"""Models: three protocols, one registry of addresses, and the backends behind them."""

from prbench.config import ModelOptions, Price
from prbench.models.protocols import Comparer, Generator, Model, ModelCard, Rater, Replay, Windowed
from prbench.models.registry import BASELINES, load_encoder, load_generator, load_model, schemes

__all__ = [
    "BASELINES",
    "Comparer",
    "Generator",
    "Model",
    "ModelCard",
    "ModelOptions",
    "Price",
    "Rater",
    "Replay",
    "Windowed",
    "load_encoder",
    "load_generator",
    "load_model",
    "schemes",
]
