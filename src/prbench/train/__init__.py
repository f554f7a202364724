"""Training of personalized reward models: from a suite's training split to a model that `personal:DIR` opens.

Importing this room loads no torch; `train` does.
"""

from prbench.train.config import TrainConfig
from prbench.train.train import train

__all__ = ["TrainConfig", "train"]
