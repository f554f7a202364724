"""Prompts: files that turn a view into what a model receives, each beside the parser of its answer."""

from prbench.prompts.instruction import Instruction
from prbench.prompts.ranking import parse_ranking
from prbench.prompts.rating import parse_rating
from prbench.prompts.template import Template
from prbench.prompts.turns import conversation, judged_conversation
from prbench.prompts.verdict import UnreadableReply, parse_verdict

__all__ = [
    "Instruction",
    "Template",
    "UnreadableReply",
    "conversation",
    "judged_conversation",
    "parse_ranking",
    "parse_rating",
    "parse_verdict",
]
