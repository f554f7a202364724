"""Ranking: which of a user's posts bear on a question. Ids travel with their texts, always."""

from prbench.rank.bm25 import BM25
from prbench.rank.dense import Dense, TextEncoder
from prbench.rank.protocol import PostRanker

__all__ = ["BM25", "Dense", "PostRanker", "TextEncoder"]
