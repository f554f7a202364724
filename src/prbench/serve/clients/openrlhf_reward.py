"""A remote reward for OpenRLHF: give this file's path, or the server's own `/get_reward`, as `--reward.remote_url`.

Both want the data set's label column to say for whom a sample is scored: `prbench.serve.label(question, user)`. This
file is for servers that want a token. It asks the server named by PRBENCH_REWARD_URL, with the token in
PRBENCH_REWARD_TOKEN if there is one.

A sample without a score raises here. OpenRLHF (0.11.2) catches that, says so at level INFO only and goes on with no
reward for the sample: no number is paid, and training stops later, where the reward is missing. So it is logged as an
error here.
"""

import logging
import os
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from prbench.errors import ConfigError
from prbench.serve.clients.client import RewardClient
from prbench.serve.rollout import items_of

URL_VARIABLE = "PRBENCH_REWARD_URL"
TOKEN_VARIABLE = "PRBENCH_REWARD_TOKEN"  # noqa: S105  # its name
_LOG = logging.getLogger("prbench.serve.clients.openrlhf_reward")  # OpenRLHF loads this file under another name


def reward_func(queries: Sequence[str], prompts: Sequence[str], labels: Sequence[str]) -> dict[str, Any]:
    """Rewards of samples: as OpenRLHF calls it, with whole texts, prompts and labels."""
    try:
        scores = environment_client(os.getpid()).score(items_of(queries, prompts, labels))
    except Exception as error:
        _LOG.error("no reward for %d samples, and training cannot go on without: %s", len(queries), error)
        raise
    rewards = _tensor(scores)
    return {"rewards": rewards, "scores": rewards, "extra_logs": {}}


@lru_cache(maxsize=1)
def environment_client(process: int) -> RewardClient:
    """The client that the environment asks for, one in each process."""
    url = os.environ.get(URL_VARIABLE, "")
    if not url:
        raise ConfigError(f"{URL_VARIABLE} is not set", hint=f"for example {URL_VARIABLE}=http://127.0.0.1:8000")
    return RewardClient(url, token_env=TOKEN_VARIABLE if os.environ.get(TOKEN_VARIABLE) else None)


def _tensor(scores: Sequence[float | None]) -> Any:
    """A tensor, as OpenRLHF's own examples return; without PyTorch, which it always has, a list."""
    try:
        import torch
    except ImportError:
        return list(scores)
    return torch.tensor(scores, dtype=torch.float32)
