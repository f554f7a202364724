"""Ranking: which of a user's posts bear on a question. Ids travel with their texts, always."""

from prbench.rank.bm25 import BM25
from prbench.rank.dense import Dense, Encoder
from prbench.rank.protocol import Ranker

__all__ = ["BM25", "Dense", "Encoder", "Ranker"]
