"""Settings of a PPO study: how a policy is trained (part of a checkpoint's key), on what, and how it is judged."""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from prbench.config import Config, ModelOptions
from prbench.errors import RunError
from prbench.files import checked
from prbench.models.local.precision import Products, told
from prbench.results import RunFolder
from prbench.types import Text

FILE = "settings.json"


Algorithm = Literal["ppo", "grpo"]


class PPOConfig(Config):
    """Settings for training a policy.

    Example:
        >>> PPOConfig().batch
        8
    """

    algorithm: Algorithm = "ppo"
    steps: int = Field(default=40, ge=1)
    prompts: int = Field(default=2, ge=1)
    """Number of questions in a step."""
    rollouts: int = Field(default=4, ge=2)
    """Answers to each: a reward is held against those of the same question."""
    new_tokens: int = Field(default=56, ge=1)
    """Most tokens of an answer."""
    posts: int = Field(default=2, ge=0)
    """Posts that the policy is shown: the best for the question. Without any it cannot know whom it answers."""
    words: int = Field(default=40, ge=5)
    """Most words that the policy is asked for."""
    temperature: float = Field(default=0.7, gt=0)
    """Divides the policy's logits in sampling, in training and in the reference: it is a part of the policy."""
    epochs: int = Field(default=3, ge=1)
    """Passes over a step's answers."""
    learning_rate: float = Field(default=5e-4, gt=0)
    value_learning_rate: float = Field(default=2e-3, gt=0)
    clip: float = Field(default=0.2, gt=0)
    """Largest change of the odds of a token before its gain no longer counts."""
    value_clip: float = Field(default=0.2, gt=0)
    value_weight: float = Field(default=0.1, ge=0)
    entropy_weight: float = Field(default=0.0, ge=0)
    kl_weight: float = Field(default=0.05, ge=0)
    """Price of one nat per token away from the base model, in standard deviations of the reward."""
    discount: float = Field(default=1.0, gt=0, le=1)
    trace: float = Field(default=0.95, ge=0, le=1)
    """λ of generalised advantage estimation."""
    target_kl: float = Field(default=0.1, gt=0)
    """A step's epochs end once the policy has moved so far (per token) from the one that wrote the answers."""
    max_norm: float = Field(default=1.0, gt=0)
    """Gradients longer than this are shortened."""
    rank: int = Field(default=8, ge=1)
    """Rank of the low-rank adapters."""
    layers: int | None = Field(default=None, ge=1)
    """Number of the upper layers that have adapters; default: half of them."""
    products: Products = "auto"
    """Precision of the matrix products in learning: `auto` takes bfloat16 where the processor has instructions for it.
    Answers are written in float32."""
    checkpoint_every: int = Field(default=5, ge=1)
    seed: int = Field(default=0, ge=0)

    @property
    def batch(self) -> int:
        """Number of answers in a step."""
        return self.prompts * self.rollouts

    @property
    def identity(self) -> dict[str, Any]:
        """Return the settings that decide which policy comes out: all but how often it is saved."""
        products = told(self.products) if self.algorithm == "ppo" else {}
        return {**self.model_dump(mode="json", exclude={"checkpoint_every", "products"}), **products}


class PPOStudyConfig(Config):
    """Settings that all trainings of a study have in common."""

    policy: Text
    suite: Text = "mirror"
    train_split: Text = "train"
    test_split: Text = "test"
    items: int = Field(default=64, ge=2)
    """Held-out items on which every trained policy is judged; both halves of a couple are in or out."""
    answers: int = Field(default=2, ge=1)
    """Answers to each of them."""
    people: int = Field(default=0, ge=0)
    """People of the held-out split, whole couples, who each get a policy of their own: it learns on half of their
    questions, the same half for a couple, and is judged on the other. 0: one policy for all, taught by other people."""
    item_seed: int = Field(default=0, ge=0)
    """Seed of the items and of the draws in which they are answered: the same for all policies."""
    judge: str = ""
    judge_options: ModelOptions = ModelOptions()
    judge_pairs: int = Field(default=400, ge=20)
    """Labelled pairs on which the judge's own accuracy is measured."""
    reserve: float = Field(default=0.0, ge=0, lt=1)
    """Train the judge on this share of the material alone, and refuse models that have not left it."""
    options: PPOConfig = PPOConfig()

    @property
    def shared(self) -> dict[str, Any]:
        """Return what must be the same in all of a study's trainings, or their scores could not be compared."""
        chosen = self.model_dump(mode="json", exclude={"judge", "judge_options", "judge_pairs", "reserve", "options"})
        if not self.people:
            del chosen["people"]
        options = self.options.identity
        del options["seed"]
        return {**chosen, "options": options}


def keep_settings(out: Path, settings: PPOStudyConfig) -> None:
    """Claim a folder for one study; more reward models, seeds or another judge may come later."""
    folder = RunFolder(out)
    file = out / FILE
    if file.exists():
        with checked(file, raises=RunError, hint="restore the file"):
            before = _flat(folder.read_json(FILE))
        now = _flat(settings.shared)
        if changed := [name for name in {**now, **before} if before.get(name) != now.get(name)]:
            name = changed[0]
            raise RunError(
                f"{str(out)!r} holds a study with {name} {before.get(name)!r}, not {now.get(name)!r}",
                hint="give this study a folder of its own with -o",
            )
        return
    if out.is_dir() and any(out.iterdir()):
        raise RunError(f"{str(out)!r} is not empty and not a PPO study", hint="give this study a folder of its own")
    folder.write_json(FILE, settings.shared)


def _flat(data: dict[str, Any]) -> dict[str, Any]:
    return {**data, **data.get("options", {}), "options": None}
