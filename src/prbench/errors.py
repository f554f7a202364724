"""Everything prbench raises on purpose.

A user's mistake is a `PrbenchError`: the command line prints its message, a blank line and its hint, and exits with 2,
without a traceback. Anything else is a bug and keeps its traceback.

    PrbenchError
    ├── FileError (ValueError)        a file that cannot be read or written, or whose content is damaged
    ├── DataError (ValueError)        a suite cannot be read: names file, line and field
    ├── ConfigError (ValueError)      options that do not fit together
    ├── AddressError (ValueError)     a model address that nothing answers to
    ├── ModelError (RuntimeError)     a model that cannot be loaded or asked at all
    ├── TemplateError (ValueError)    a prompt template that lacks a slot or asks for what it may not see
    ├── ContextError (ValueError)     a context that this suite or this model cannot have
    ├── RunError (RuntimeError)       a run folder that is locked, foreign or damaged
    │   └── BudgetError               the run would cost, or has cost, more than allowed
    ├── StudyError (ValueError)       a downstream study that cannot be read, or from which nothing may be ranked
    └── MissingExtraError (ImportError)   an optional dependency is not installed
"""

import difflib
from collections.abc import Iterable


class PrbenchError(Exception):
    """A mistake that the user can mend.

    Args:
        message: What is wrong, with the value and the place.
        hint: The way out, as a sentence or a command.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n\nhint: {self.hint}" if self.hint else self.message


class FileError(PrbenchError, ValueError):
    """A file that cannot be read or written, or whose content is damaged."""


class DataError(PrbenchError, ValueError):
    """A suite cannot be read."""


class ConfigError(PrbenchError, ValueError):
    """Options that do not fit together."""


class AddressError(PrbenchError, ValueError):
    """A model address that nothing answers to."""


class ModelError(PrbenchError, RuntimeError):
    """A model that cannot be loaded, or cannot be asked at all."""


class TemplateError(PrbenchError, ValueError):
    """A prompt template that lacks a slot or asks for what it may not see."""


class ContextError(PrbenchError, ValueError):
    """A context that this suite or this model cannot have."""


class RunError(PrbenchError, RuntimeError):
    """A run folder that is locked, foreign or damaged."""


class BudgetError(RunError):
    """The run would cost, or has cost, more than allowed."""


class StudyError(PrbenchError, ValueError):
    """A downstream study that cannot be read, or from which nothing may be ranked."""


EXTRAS: dict[str, tuple[str, ...]] = {
    "hf": ("torch", "transformers", "safetensors", "accelerate"),
    "int8": ("torchao",),
    "lm": ("torch", "transformers", "safetensors", "gguf", "accelerate"),
    "api": ("httpx", "stamina", "genai_prices"),
    "hub": ("datasets",),
    "serve": ("httpx", "prometheus_client", "starlette"),
    "train": ("torch", "transformers", "safetensors", "peft"),
    "annotate": ("starlette", "nltk"),
    "ppo": ("torch", "transformers", "safetensors", "gguf", "accelerate", "datasets", "peft", "trl"),
    "scale": ("ray",),
    "wandb": ("wandb",),
    "mlflow": ("mlflow",),
}
"""Optional dependencies by extra, as they are imported; pyproject.toml says which versions."""


class MissingExtraError(PrbenchError, ImportError):
    """An optional dependency is not installed.

    Example:
        >>> print(MissingExtraError("hf:my/model", "hf"))
        hf:my/model needs the optional dependencies of 'hf'
        <BLANKLINE>
        hint: pip install 'personalized-rewardbench[hf]', or in a clone pip install -e '.[hf]'
    """

    def __init__(self, wanted_by: str, extra: str) -> None:
        super().__init__(f"{wanted_by} needs the optional dependencies of {extra!r}", hint=install_hint(extra))

    @classmethod
    def of(cls, error: ImportError, wanted_by: str, extra: str = "") -> "MissingExtraError | None":
        """Return the error for an import that failed; None where no extra brings the package.

        Example:
            >>> MissingExtraError.of(ModuleNotFoundError(name="ray.data"), "this").message
            "this needs the optional dependencies of 'scale'"
        """
        package = (error.name or "").partition(".")[0]
        able = [name for name, packages in EXTRAS.items() if package in packages]
        return cls(wanted_by, extra if extra in able else able[0]) if able else None


def install_hint(extra: str) -> str:
    """The command that installs an extra, from an index and in a clone."""
    return f"pip install 'personalized-rewardbench[{extra}]', or in a clone pip install -e '.[{extra}]'"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Suggest the nearest known word, or list all of them.

    Example:
        >>> did_you_mean("profil", ["none", "profile"])
        "did you mean 'profile'?"
        >>> did_you_mean("x", ["none", "profile"])
        'known: none, profile'
    """
    known = list(known)
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else "known: " + ", ".join(known)
