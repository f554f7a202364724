"""Choice of the number in a classifier's head that is the score.

One label: its logit. Two labels of one choice: the logit of the good one minus the other's, where their names tell
which is good. Anything else must be said in the address (`#label=3` or `#label=NAME`); nothing is guessed.
"""

from typing import Any, NamedTuple

from prbench.errors import ModelError, did_you_mean

_GOOD = frozenset(
    {"accepted", "better", "chosen", "good", "label_1", "pos", "positive", "preferred", "true", "yes", "1"}
)


class Head(NamedTuple):
    """Rule by which logits become a score.

    Example:
        >>> Head(1, against=0).describe()
        'logit 1 - logit 0'
    """

    label: int
    against: int | None = None
    """The label whose logit is subtracted; None where the logit stands alone."""

    def describe(self) -> str:
        """Say it in words, for the model's card."""
        return f"logit {self.label}" + ("" if self.against is None else f" - logit {self.against}")

    def scores(self, logits: Any) -> list[float]:
        """Reduce logits (batch × labels) to one float32 score per row."""
        logits = logits.float()
        scores = logits[:, self.label]
        if self.against is not None:
            scores = scores - logits[:, self.against]
        return [float(score) for score in scores.cpu()]


def read_head(config: Any, label: str | None, address: str) -> Head:
    """Choose the score from the config's labels and the address's `#label`, if any."""
    count = int(config.num_labels)
    if label is not None:
        return _head(_index(config, label, address), config)
    if count == 1:
        return Head(0)
    good = [index for index in range(count) if _name(config, index).lower() in _GOOD]
    if count == 2 and len(good) == 1 and _is_one_choice(config):
        return _head(good[0], config)
    raise ModelError(
        f"{address}: the head has {count} labels ({_names(config)}) and it is not clear which one is the score",
        hint=f"name one: {address}#label=0, or by its name",
    )


def _head(index: int, config: Any) -> Head:
    return Head(index, against=1 - index) if config.num_labels == 2 and _is_one_choice(config) else Head(index)


def _is_one_choice(config: Any) -> bool:
    return getattr(config, "problem_type", None) in {None, "single_label_classification"}


def _index(config: Any, label: str, address: str) -> int:
    names = {_name(config, index): index for index in range(config.num_labels)}
    if label in names:
        return names[label]
    if label.isdecimal() and int(label) < config.num_labels:
        return int(label)
    raise ModelError(f"{address}: the head has no label {label!r}", hint=did_you_mean(label, names))


def _name(config: Any, index: int) -> str:
    return str((config.id2label or {}).get(index, index))


def _names(config: Any) -> str:
    names = [_name(config, index) for index in range(config.num_labels)]
    return ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
