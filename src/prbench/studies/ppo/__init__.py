"""PPO: a policy trained with each reward model, on the same questions and in the same way; then judged, once."""

from prbench.studies.ppo.config import Algorithm, PPOConfig, PPOStudyConfig

__all__ = ["Algorithm", "PPOConfig", "PPOStudyConfig"]
