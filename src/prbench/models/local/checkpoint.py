"""A transformers checkpoint, in a folder or on the hub, opened in two steps.

Config and tokenizer come first: they are enough to render, count and check. Weights come later, and a checkpoint that
lacks some of them is refused: transformers would fill the gap at random, and random weights give random scores. Code
of its own is run only where that was allowed, at one revision.
"""

import contextlib
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from logging import ERROR, getLogger
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from prbench.errors import MissingExtraError, ModelError
from prbench.models.local.flops import Arithmetic, body_weights, foreseen_seconds
from prbench.models.local.own_code import OwnCode, find_code
from prbench.models.local.placement import placement
from prbench.models.registry import ModelOptions
from prbench.models.revision import folder_revision

_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")


@dataclass(frozen=True)
class Checkpoint:
    """A model whose config and tokenizer are open and whose weights are not yet."""

    address: str
    """Address that the user wrote, for messages."""
    source: str
    """A folder or a hub name, as transformers takes it."""
    commit: str | None
    """The hub commit; None for a folder."""
    config: Any
    tokenizer: Any
    code: OwnCode | None = None
    """The code that computes it, where that is the checkpoint's own and may run."""

    @classmethod
    def open(cls, name: str, address: str, *, trust: bool = False) -> "Checkpoint":
        """Read config and tokenizer of `DIR`, `ORG/NAME` or `ORG/NAME@REVISION`; `trust` allows code of its own."""
        require_extra(address)
        from transformers import AutoConfig, AutoTokenizer

        source, revision = _locate(name, address)
        with translated(address), quiet():
            code = find_code(source, revision, address, trust=trust)
            allowed = {} if code is None else code.allowed
            revision = revision if code is None else code.commit
            config = AutoConfig.from_pretrained(source, **{"revision": revision, "trust_remote_code": False, **allowed})
            commit = None if Path(source).is_dir() else getattr(config, "_commit_hash", None) or revision
            tokenizer = AutoTokenizer.from_pretrained(
                source, **{"revision": commit, "trust_remote_code": False, **allowed}
            )
        return cls(address, source, commit, config, tokenizer, code)

    @cached_property
    def revision(self) -> str:
        """The hub commit, or a hash over the folder's content."""
        return folder_revision(Path(self.source)) if Path(self.source).is_dir() else self.commit or ""

    @cached_property
    def positions(self) -> int | None:
        """The most tokens this model can read; None where neither config nor tokenizer sets a limit."""
        config = self.config.get_text_config()
        limits = [getattr(config, "max_position_embeddings", None), self.tokenizer.model_max_length]
        if limits[0] is not None and _counts_from_padding(config):
            limits[0] -= config.pad_token_id + 1
        # transformers says "no limit" with 10^30, old configs with -1.
        return min((int(limit) for limit in limits if limit is not None and 0 < limit < 10**9), default=None)

    def load_weights(self, kind: Any, options: ModelOptions, *, lacking: Collection[str] = ()) -> Any:
        """Load all weights as `kind` (an Auto class), on the device, ready to score; refuses a gap in them.

        Weights whose names begin with one of `lacking` may be missing: they are not read, or come from elsewhere.
        """
        import torch

        from prbench.models.local.linear import pack_linears

        if options.quantize is not None:
            raise ModelError(
                f"{self.address}: --quantize is for reward models (hf:, dpo:)",
                hint="leave it out; --dtype bfloat16 halves the memory",
            )
        if self.code is not None:
            self.code.check_unchanged(self.address)
        spread = placement(options, self.address)
        with translated(self.address), quiet():
            device = torch.device(pick_device(options.device))
            model, info = kind.from_pretrained(
                self.source,
                **{
                    "revision": self.commit,
                    "config": self.config,
                    "dtype": getattr(torch, options.dtype),
                    "trust_remote_code": False,
                    "output_loading_info": True,
                    "ignore_mismatched_sizes": True,  # said below, with names and shapes; transformers only logs them
                    **({} if self.code is None else self.code.allowed),
                    **spread,
                },
            )
        _check_complete(info, self, lacking)
        if spread:
            return model.eval()
        with translated(self.address):
            model = model.eval().to(device)
        pack_linears(model)
        return model

    def parameter_count(self, kind: Any) -> int:
        """Count the parameters from the config alone, without reading the weights."""
        import torch

        with quiet(), torch.device("meta"):
            allowed = {} if self.code is None else self.code.allowed
            return sum(parameter.numel() for parameter in kind.from_config(self.config, **allowed).parameters())

    def foreseen_seconds(self, kind: Any, options: ModelOptions, tokens: int, length: int) -> float:
        """Return the seconds that so many tokens of prompts of this length would take here, from the config alone."""
        import torch

        device = pick_device(options.device)
        with quiet(), torch.device("meta"):
            model = kind.from_config(self.config)
        counted = Arithmetic.of(model) or Arithmetic(2 * body_weights(model), 0, 0)
        run = SimpleNamespace(dtype=options.dtype, device=device)
        return foreseen_seconds(run, counted, tokens, length)


def require_extra(address: str) -> None:
    """Refuse with the command that installs what is missing."""
    try:
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(address, "hf") from error


def pick_device(name: str) -> str:
    """Resolve `auto` to the fastest device there is.

    Example:
        >>> pick_device("cpu")
        'cpu'
    """
    import torch

    if name != "auto":
        return name
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers from writing warnings and progress bars between our own lines."""
    from transformers.utils import logging

    others = [getLogger(name) for name in ("accelerate.big_modeling", "torchao", "torch.utils._pytree")]
    verbosity, bars, levels = logging.get_verbosity(), logging.is_progress_bar_enabled(), [one.level for one in others]
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    for one in others:
        one.setLevel(ERROR)
    try:
        yield
    finally:
        for one, level in zip(others, levels, strict=True):
            one.setLevel(level)
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


@contextlib.contextmanager
def translated(address: str) -> Iterator[None]:
    """Turn what transformers raises while it loads into an error that names the address and a way out."""
    try:
        yield
    except ModelError:
        raise
    except Exception as error:  # the libraries below raise nearly every type there is; the cause stays attached
        raise ModelError(f"{address}: {_first_line(error)}", hint=_hint(str(error))) from error


def _locate(name: str, address: str) -> tuple[str, str | None]:
    folder = Path(name).expanduser()
    if folder.is_dir():
        _check_folder(folder, address)
        return str(folder), None
    hub_name, _, revision = name.partition("@")
    if not _HUB_NAME.fullmatch(hub_name) or hub_name.startswith("."):
        raise ModelError(f"{address}: there is no folder {name!r}", hint="give a model folder or a hub name ORG/NAME")
    return hub_name, revision or None


def _check_folder(folder: Path, address: str) -> None:
    if (folder / "config.json").is_file():
        return
    if (folder / "adapter_config.json").is_file():
        raise ModelError(
            f"{address}: folder {str(folder)!r} holds an adapter, not a whole model",
            hint=f"name its base as well: {address.partition(':')[0]}:BASE+{folder}",
        )
    raise ModelError(
        f"{address}: folder {str(folder)!r} has no config.json",
        hint="name the folder that save_pretrained wrote, with config.json, weights and tokenizer files",
    )


def _check_complete(info: dict[str, Any], checkpoint: Checkpoint, lacking: Collection[str]) -> None:
    if mismatched := sorted(info["mismatched_keys"]):
        key, saved, expected = mismatched[0]
        raise ModelError(
            f"{checkpoint.address}: {key} is saved as {tuple(saved)}, but config.json asks for {tuple(expected)}",
            hint="config.json and the weights are of two different models; save them again together",
        )
    if missing := sorted(key for key in info["missing_keys"] if not key.startswith(tuple(lacking))):
        raise ModelError(
            f"{checkpoint.address}: the checkpoint has no weights for {', '.join(missing[:3])}"
            f"{' …' if len(missing) > 3 else ''}; it was saved as {_architecture(checkpoint.config)}, "
            f"and random weights would give random scores",
            hint="hf: takes trained sequence classifiers, dpo: takes causal language models; a language model that "
            "replies with a letter or Yes is hf:…#read=letters or #read=yes-no; another head can be brought as "
            "py:MODULE:ATTR",
        )


def _counts_from_padding(config: Any) -> bool:
    # The RoBERTa family numbers positions from the padding index on, so that many positions are never used.
    return "roberta" in config.model_type or config.model_type in {"camembert", "longformer", "mpnet"}


def _architecture(config: Any) -> str:
    return ", ".join(getattr(config, "architectures", None) or ["an unnamed architecture"])


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(": ") if lines else type(error).__name__


def _hint(text: str) -> str:
    if "trust_remote_code" in text or "custom code" in text:
        return "--trust-remote-code runs code that the checkpoint brings along; or bring the model as py:MODULE:ATTR"
    if any(word in text for word in ("gated", "401 Client", "403 Client")):
        return "accept the model's terms on the hub and log in with `hf auth login`"
    if any(word in text for word in ("connect", "offline", "Offline", "cached")):
        return "the hub cannot be reached: download the model where it can, copy the folder and name it as hf:DIR"
    if "out of memory" in text or "CUDA" in text or "device" in text:
        return "devices are auto, cpu, cuda and mps; --dtype bfloat16 halves the memory"
    if "tokenizer" in text:
        return "save the tokenizer beside the weights: tokenizer.save_pretrained(DIR)"
    return "check the name and the files; `prbench doctor` shows what is installed"
