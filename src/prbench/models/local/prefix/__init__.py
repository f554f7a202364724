"""PREFIX: scoring that computes what many prompts begin with once and keeps its keys and values."""

from prbench.models.local.prefix.scorer import PrefixScorer, Reading, Request, last_logits, log_likelihood

__all__ = ["PrefixScorer", "Reading", "Request", "last_logits", "log_likelihood"]
