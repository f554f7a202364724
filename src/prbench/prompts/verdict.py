r"""Reads the reply to `compare.jinja`: strict and anchored, so that no verdict is ever guessed.

Read: a last line `Result: A`, `Result: B` or `Result: tie`, with or without emphasis, brackets, quotation marks, a
final full stop or the word "Answer"; a JSON object with a key `result` at the end; a last line with `\boxed{A}`; or a
reply that is nothing but such a value. Earlier result lines must agree. Refused, with a reason: everything else, also
what a reader might guess, such as "Both", "A or B", "A (because …)", a letter that was not offered, look-alike letters
of other alphabets, and any text after the result that is more than a courtesy.
"""

from prbench.prompts._reply import ReplyResult, UnreadableReply, excerpt, find_result
from prbench.types import Choice

__all__ = ["UnreadableReply", "parse_verdict"]

_NOUNS = ("", "answer ", "response ", "option ")
_VERDICTS: dict[str, Choice] = {
    **{noun + "a": "first" for noun in _NOUNS},
    **{noun + "b": "second" for noun in _NOUNS},
    "tie": "tie",
}


def parse_verdict(text: str) -> Choice | UnreadableReply:
    r"""Read a judge's verdict, where answer A is the first one shown and B the second.

    Example:
        >>> parse_verdict("A is longer, but B fits the user.\nResult: Answer B")
        'second'
        >>> parse_verdict("Both")
        UnreadableReply(reason="the result is not A, B or tie: 'Both'")
    """
    result = find_result(text, "result")
    return result if isinstance(result, UnreadableReply) else _agreed(result)


def _agreed(result: ReplyResult) -> Choice | UnreadableReply:
    verdicts: set[Choice] = set()
    for value in result.values:
        verdict = _VERDICTS.get(" ".join(value.lower().split()))
        if verdict is None:
            return UnreadableReply(f"the result is not A, B or tie: {excerpt(value)}")
        verdicts.add(verdict)
    if len(verdicts) > 1:
        return UnreadableReply("the result lines contradict each other")
    return verdicts.pop()
