"""The Python door: evaluate, compare, calibrate, reward one output, and a callback for trainers."""

from prbench.api.evaluating import compare, evaluate
from prbench.api.reward import PersonalizedReward, Scale, calibrate, evaluate_personalized_reward

__all__ = ["PersonalizedReward", "Scale", "calibrate", "compare", "evaluate", "evaluate_personalized_reward"]
