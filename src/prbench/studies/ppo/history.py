"""History of a training, kept step by step."""

from pathlib import Path

from prbench.errors import StudyError
from prbench.files import read_models, write_whole
from prbench.types import Frozen

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


def cut_history(path: Path, done: int) -> None:
    """Forget steps after the last checkpoint: they are made again."""
    if path.is_file():
        kept = [step for step in read_history(path) if step.step <= done]
        write_whole(path, "".join(step.model_dump_json() + "\n" for step in kept))
