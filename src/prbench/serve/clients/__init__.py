"""Clients of the reward server, for trainers: they raise, or drop the sample and count it; they never make up a number.

No trainer is imported here: each module speaks to one through the signature that the trainer calls.
"""

from prbench.serve.clients.client import RewardClient, RewardError, Tally
from prbench.serve.clients.trl_reward import trl_reward

__all__ = ["RewardClient", "RewardError", "Tally", "trl_reward"]
