"""A PPO study, resolved: who is trained on what, by whom it is paid, and how it is judged."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from prbench.config import ModelOptions
from prbench.errors import ConfigError, RunError
from prbench.files import checked
from prbench.results.folder import RunFolder
from prbench.studies.ppo.options import PPOConfig
from prbench.types import Frozen, Text

FILE = "settings.json"


class PPOStudyConfig(Frozen):
    """What all trainings of a study have in common."""

    policy: Text
    suite: Text = "mirror"
    train_split: Text = "train"
    test_split: Text = "test"
    items: int = Field(default=64, ge=2)
    """Held-out items on which every trained policy is judged; both halves of a couple are in or out."""
    answers: int = Field(default=2, ge=1)
    """Answers to each of them."""
    item_seed: int = Field(default=0, ge=0)
    """Of the items and of the draws in which they are answered: the same for all policies."""
    judge: str = ""
    judge_options: ModelOptions = ModelOptions()
    judge_pairs: int = Field(default=400, ge=20)
    """Labelled pairs on which the judge's own accuracy is measured."""
    reserve: float = Field(default=0.0, ge=0, lt=1)
    """Train the judge on this share of the material alone, and refuse models that have not left it."""
    options: PPOConfig = PPOConfig()

    @property
    def shared(self) -> dict[str, Any]:
        """What must be the same in all of a study's trainings, or their scores could not be compared."""
        chosen = self.model_dump(mode="json", exclude={"judge", "judge_options", "judge_pairs", "reserve", "options"})
        options = self.options.identity
        del options["seed"]
        return {**chosen, "options": options}


def make_settings(values: Mapping[str, Any]) -> PPOStudyConfig:
    """Check what a user typed.

    Example:
        >>> make_settings({"policy": "lm:smollm2", "judge_options": {"dtype": "int8"}})
        Traceback (most recent call last):
        prbench.errors.ConfigError: judge-options.dtype is 'int8': Input should be 'float32', 'bfloat16' or 'float16'
    """
    try:
        return PPOStudyConfig.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])).replace("_", "-")
        raise ConfigError(f"{place} is {first['input']!r}: {first['msg']}") from error


def keep_settings(out: Path, settings: PPOStudyConfig) -> None:
    """Claim a folder for one study; more reward models, seeds or another judge may come later."""
    folder = RunFolder(out)
    file = out / FILE
    if file.exists():
        with checked(file, raises=RunError, hint="restore the file"):
            before = _flat(folder.read_json(FILE))
        if changed := [name for name, value in _flat(settings.shared).items() if before.get(name) != value]:
            name = changed[0]
            raise RunError(
                f"{str(out)!r} holds a study with {name} {before.get(name)!r}, not {_flat(settings.shared)[name]!r}",
                hint="give this study a folder of its own with -o",
            )
        return
    if out.is_dir() and any(out.iterdir()):
        raise RunError(f"{str(out)!r} is not empty and not a PPO study", hint="give this study a folder of its own")
    folder.write_json(FILE, settings.shared)


def _flat(data: dict[str, Any]) -> dict[str, Any]:
    return {**data, **data.get("options", {}), "options": None}
