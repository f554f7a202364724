"""PREFIX: scoring that computes what many prompts begin with once and keeps its keys and values."""

from prbench.models.local.prefix.scorer import LogitRequest, PrefixScorer, Reading, last_logits, log_likelihood

__all__ = ["LogitRequest", "PrefixScorer", "Reading", "last_logits", "log_likelihood"]
