"""What is kept of a training: its steps, and checkpoints that know whose they are.

Another reward model's, policy's or seed's checkpoint is refused, not continued.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from prbench.config import digest
from prbench.errors import RunError, StudyError
from prbench.files import read_json, read_models, write_whole
from prbench.train import checkpoint
from prbench.types import Frozen

KEY = "key.json"


def claim(folder: Path, key: Mapping[str, Any]) -> None:
    """Mark a folder as one training's; refuse one that is another's, naming what differs."""
    file = folder / KEY
    if not file.exists():
        write_whole(file, json.dumps(key, ensure_ascii=False, indent=2) + "\n")
        return
    found = read_json(file, raises=RunError, hint="remove that folder, and the training begins anew")
    if found == json.loads(json.dumps(key)):
        return
    name, theirs, ours = next(_differences(found, key))
    raise RunError(
        f"{str(folder)!r} holds the training of another policy: its {name} is {theirs!r}, not {ours!r}",
        hint="give this study a folder of its own with -o, or remove that one",
    )


def keep(folder: Path, key: Mapping[str, Any], content: Mapping[str, Any]) -> None:
    """Replace the checkpoint of a folder."""
    checkpoint.keep(folder, digest(key), content)


def read(folder: Path, key: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The checkpoint of a folder, None where there is none; another training's is refused."""
    claim(folder, key)
    return checkpoint.read(folder, digest(key))


def _differences(left: Any, right: Any, path: str = "") -> Any:
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        for name in dict.fromkeys([*left, *right]):
            yield from _differences(left.get(name), right.get(name), f"{path} {name}".strip())
    elif left != right:
        yield path, left, right


HISTORY = "history.jsonl"


class TrainingStep(Frozen):
    """One line of `history.jsonl`."""

    step: int
    reward: float | None
    """Mean of the reward model's own scores; None where no answer got one."""
    spread: float | None = None
    """Standard deviation of the rewards within a question: what there was to learn from; None if not told."""
    kl: float
    """KL divergence from the base model, of a whole answer."""
    entropy: float | None
    """Entropy of the policy, per token; None where no pass was made."""
    length: float
    """Mean number of tokens of an answer."""
    ended: float
    """Share of answers that the policy itself brought to an end."""
    dropped: int
    """Answers without a reward (or alone in their question with one): they were not learned from."""
    loss: float = 0.0
    value_loss: float = 0.0
    epochs: int = 0
    """Passes that were made before the policy had moved far enough."""
    moved: float = 0.0
    seconds: float = 0.0


def read_history(path: Path) -> list[TrainingStep]:
    """The steps of a training, in order."""
    return list(
        read_models(path, TrainingStep, raises=StudyError, hint="restore the file, or remove the training's folder")
    )


def mean_steps(histories: Sequence[Sequence[TrainingStep]]) -> list[TrainingStep]:
    """The mean of several policies' steps; seconds and dropped answers are added up.

    Example:
        >>> one = TrainingStep(step=1, reward=0.5, kl=1, entropy=2, length=40, ended=1, dropped=1, seconds=3)
        >>> two = one.model_copy(update={"reward": None, "kl": 2.0})
        >>> (both,) = mean_steps([[one], [two]])
        >>> both.reward, both.kl, both.dropped, both.seconds
        (0.5, 1.5, 2, 6.0)
    """
    found = []
    for together in zip(*histories, strict=False):
        told: dict[str, Any] = {}
        for name in TrainingStep.model_fields:
            values = [value for step in together if (value := getattr(step, name)) is not None]
            whole = sum(values) if name in ("dropped", "seconds") else fmean(values) if values else None
            told[name] = int(whole) if name in ("step", "dropped", "epochs") and whole is not None else whole
        found.append(TrainingStep(**told))
    return found


def cut_history(path: Path, done: int) -> None:
    """Forget steps after the last checkpoint: they are made again."""
    if path.is_file():
        kept = [step for step in read_history(path) if step.step <= done]
        write_whole(path, "".join(step.model_dump_json() + "\n" for step in kept))
