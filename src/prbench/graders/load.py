"""Judges by address: `chat:…` writes its grades, `lm:…` is read from its logits, `stances:…` is trained here."""

from collections.abc import Sequence

from prbench.config import ModelOptions
from prbench.errors import AddressError, did_you_mean
from prbench.graders.protocol import RubricJudge
from prbench.types import Pair

SCHEMES = ("chat", "lm", "stances")


def load_judge(
    address: str, options: ModelOptions | None = None, *, training: Sequence[Pair] = (), reserve: float = 0.0
) -> RubricJudge:
    """Open a judge; nothing is asked yet.

    Args:
        address: `chat:MODEL@URL`, `lm:NAME`, `stances:tfidf` or `stances:ENCODER`.
        options: Of the model behind it.
        training: Labelled pairs that a stance probe is trained on, never those that it will be examined on; of a
            `Suite` the card tells the name, so that reward models that learnt from the same one are found.
        reserve: Train a stance probe on this share of couples, questions and passages alone: the one that models
            trained with the same `--reserve` have left to it.

    Example:
        >>> load_judge("oracle")
        Traceback (most recent call last):
        prbench.errors.AddressError: unknown judge 'oracle'
        <BLANKLINE>
        hint: known: chat, lm, stances
    """
    options = options or ModelOptions()
    scheme, _, rest = address.partition(":")
    match scheme:
        case "chat":
            from prbench.graders.chat import ChatJudge

            return ChatJudge.load(rest, options)
        case "lm":
            from prbench.graders.logits import LogitJudge

            return LogitJudge.load(rest, options)
        case "stances":
            from prbench.graders.stance_judge import StanceJudge

            return StanceJudge.load(rest, options, training, reserve)
    raise AddressError(f"unknown judge {address!r}", hint=did_you_mean(scheme, SCHEMES))
