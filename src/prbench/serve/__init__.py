"""The reward server: any Rater over HTTP, batched, shown exactly what the benchmark shows it; and its clients.

Text goes in, numbers come out, so policy and reward model need not share a tokenizer. An error is an HTTP error.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prbench.serve.clients import RewardClient, RewardError, Tally, trl_reward
    from prbench.serve.config import ServeConfig
    from prbench.serve.items import ScoreItem
    from prbench.serve.rollout import label
    from prbench.serve.server import serve, serving

_HOMES = {
    "ScoreItem": "prbench.serve.items",
    "RewardClient": "prbench.serve.clients",
    "RewardError": "prbench.serve.clients",
    "ServeConfig": "prbench.serve.config",
    "Tally": "prbench.serve.clients",
    "label": "prbench.serve.rollout",
    "serve": "prbench.serve.server",
    "serving": "prbench.serve.server",
    "trl_reward": "prbench.serve.clients",
}

__all__ = [
    "RewardClient",
    "RewardError",
    "ScoreItem",
    "ServeConfig",
    "Tally",
    "label",
    "serve",
    "serving",
    "trl_reward",
]


def __getattr__(name: str) -> Any:
    # A trainer's process imports the client and must not need the server's packages, nor the other way round.
    if name not in _HOMES:
        raise AttributeError(f"module 'prbench.serve' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
