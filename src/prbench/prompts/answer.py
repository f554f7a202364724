"""The parser beside `answer.jinja`: one answer within the word limit, or a reason. An answer is never cut to fit."""

import re

from prbench.prompts._reply import UnreadableReply, after_thinking
from prbench.texts import words as words_of

__all__ = ["UnreadableReply", "count_words", "parse_answer"]

_LABEL = re.compile(r"^\s*[*_]*(?:answer|response)[*_]*\s*:[*_]*\s*", re.IGNORECASE)


def parse_answer(reply: str, words: int) -> str | UnreadableReply:
    """Read an answer of at most so many words.

    Example:
        >>> parse_answer("Answer: Take the train.", words=100)
        'Take the train.'
        >>> parse_answer("Take the early train.", words=3)
        UnreadableReply(reason='4 words, over the limit of 3')
    """
    said = after_thinking(reply)
    if isinstance(said, UnreadableReply):
        return said
    answer = _LABEL.sub("", said, count=1).strip()
    if len(answer) > 1 and answer[0] + answer[-1] in ('""', "“”", "«»") and '"' not in answer[1:-1]:
        answer = answer[1:-1].strip()
    if not answer:
        return UnreadableReply("empty reply")
    if "<<<" in answer or ">>>" in answer:
        return UnreadableReply("repeats the marks of the request")
    found = count_words(answer)
    return UnreadableReply(f"{found} words, over the limit of {words}") if found > words else answer


def count_words(text: str) -> int:
    """Words of a text, as they are counted everywhere in this package.

    Example:
        >>> count_words("Drink green tea."), count_words("喝绿茶")
        (3, 3)
    """
    return len(words_of(text))
