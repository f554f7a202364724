"""A causal language model on this machine: found by name, loaded once per process, read through shared prefixes."""

import hashlib
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from prbench.config import ModelOptions
from prbench.errors import MissingExtraError, ModelError
from prbench.models.effort import Effort
from prbench.models.local import weights
from prbench.models.local.adapter import is_adapter, open_adapter, open_with_adapter
from prbench.models.local.checkpoint import Checkpoint, pick_device
from prbench.models.local.encoding import PromptEncoder
from prbench.models.local.flops import matmul_peak
from prbench.models.local.placement import spread_note
from prbench.models.local.precision import has_bfloat16
from prbench.models.local.prefix import PrefixScorer
from prbench.types import Message, Prompt

_BEFORE = ("", " ", "\n")
"""Texts that may stand before a letter in the reply; tokenizers have separate tokens for `A` and ` A`."""

_loaded: "WeakValueDictionary[tuple[str, ...], Any]" = WeakValueDictionary()
"""Weights in use, so that a judge and a planner of the same name share them."""


def open_named(name: str, address: str, *, trust: bool = False) -> Checkpoint:
    """Open `smollm2`, a folder, a `.gguf` file, `ORG/NAME` or an adapter trained here; what can be pulled is pulled."""
    opener = partial(_open_plain, trust=trust)
    return open_adapter(name, address, opener) if is_adapter(name) else open_with_adapter(name, address, opener)


def _open_plain(name: str, address: str, *, trust: bool) -> Checkpoint:
    if is_adapter(name):  # a base that has an adapter itself
        return open_adapter(name, address, partial(_open_plain, trust=trust))
    try:
        checkpoint = Checkpoint.open(_located(name, address), address, trust=trust)
    except MissingExtraError as error:
        raise MissingExtraError(address, "lm") from error
    _refuse_other_kinds(checkpoint)
    return checkpoint


class LanguageModel:
    """Tokenizer, limits and, once they are needed, the weights of a causal language model."""

    def __init__(self, checkpoint: Checkpoint, options: ModelOptions) -> None:
        self.checkpoint = checkpoint
        self.encoder = PromptEncoder(checkpoint.tokenizer, checkpoint.address)
        self.options = options
        self.window = options.window or checkpoint.positions

    @cached_property
    def weights(self) -> Any:
        """The model itself, ready to be run."""
        from transformers import AutoModelForCausalLM

        device = pick_device(self.options.device)
        spread = f"{self.options.device_map} {dict(self.options.max_memory)}"
        key = (self.checkpoint.source, self.checkpoint.revision, self.options.dtype, device, spread)
        model = _loaded.get(key)
        if model is None:
            model = self.checkpoint.load_weights(AutoModelForCausalLM, self.options)
            _loaded[key] = model
        return model

    @cached_property
    def scorer(self) -> PrefixScorer:
        """Reads logits, running what prompts have in common once."""
        return PrefixScorer(self.weights, batch_tokens=self.options.batch_tokens)

    @property
    def note(self) -> str | None:
        """Note that a user should know about how this model is run; loads the weights."""
        known = (self.encoder.note, self.scorer.note, _slow_precision(self.weights), spread_note(self.weights))
        return "; ".join(note for note in known if note is not None) or None

    @property
    def effort(self) -> Effort:
        """Effort of reading so far; asking loads no weights."""
        return self.scorer.effort if "scorer" in self.__dict__ else Effort()

    @property
    def peak_flops(self) -> float | None:
        """Operations per second of a matrix product here, as this model makes it; None before weights are loaded."""
        return matmul_peak(self.weights) if "scorer" in self.__dict__ else None

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the facts of the model and its options that can change an answer, besides the weights."""
        return {
            "chat_template": self.encoder.chat_template_digest,
            "format": self.encoder.format,
            "dtype": self.options.dtype,
            "window": self.window,
            **({} if self.checkpoint.code is None else {"code": self.checkpoint.code.record}),
        }

    def parameter_count(self) -> int:
        """Parameters of the model, from its config alone."""
        from transformers import AutoModelForCausalLM

        return self.checkpoint.parameter_count(AutoModelForCausalLM)

    def foreseen_seconds(self, tokens: int, length: int) -> float:
        """Return the seconds that so many tokens of prompts of this length would take here."""
        from transformers import AutoModelForCausalLM

        return self.checkpoint.foreseen_seconds(AutoModelForCausalLM, self.options, tokens, length)

    def reply_tokens(self, words: tuple[str, ...]) -> tuple[tuple[int, ...], ...]:
        """The tokens with which a reply that is one of these short words can begin, for each word.

        Only spellings that every word has are taken, so that none has an advantage by its number of tokens.
        """
        spellings = [[self._last_token(before, word) for word in words] for before in _BEFORE]
        whole = [row for row in spellings if None not in row]
        columns = tuple(tuple(dict.fromkeys(token for token in column)) for column in zip(*whole, strict=True))
        flat = [token for column in columns for token in column]
        if not flat or len(set(flat)) < len(flat):
            raise ModelError(
                f"{self.checkpoint.address}: the tokenizer has no separate tokens for {', '.join(words)}",
                hint="this model cannot be asked for a letter or a digit; use #loglik or #pmi",
            )
        return columns

    @cached_property
    def closing_tokens(self) -> int:
        """Number of tokens that the chat template writes after an answer: they are not the answer's own."""
        one, other = (
            self.encoder.encode(Prompt((Message("user", "x"), Message("assistant", text)))).ids for text in ("a", "b")
        )
        shared = 0
        while shared < min(len(one), len(other)) and one[-1 - shared] == other[-1 - shared]:
            shared += 1
        return shared

    def _last_token(self, before: str, word: str) -> Any:
        tokenizer = self.checkpoint.tokenizer
        ids = tokenizer(before + word, add_special_tokens=False)["input_ids"]
        return ids[-1] if ids and tokenizer.decode(ids[-1:]).strip() == word else None


def short_hash(data: bytes) -> int:
    """A number below 2^63 from a content hash, for seeds."""
    return int.from_bytes(hashlib.sha256(data).digest()[:8], "big") >> 1


def _slow_precision(model: Any) -> str | None:
    """Half precision that the processor has no instructions for is converted back and forth at every step."""
    import torch

    if model.device.type != "cpu" or model.dtype != torch.bfloat16 or has_bfloat16() is not False:
        return None
    return "this processor has no bfloat16 instructions: --dtype float32 is faster"


def _located(name: str, address: str) -> str:
    if name in weights.SOURCES:
        return str(weights.pull(name))
    path = Path(name).expanduser()
    if path.suffix != ".gguf":
        return name
    if not path.is_file():
        raise ModelError(f"{address}: there is no file {name!r}", hint="check the path of the GGUF file")
    return str(weights.convert_gguf(path))


def _refuse_other_kinds(checkpoint: Checkpoint) -> None:
    """An encoder or a reward model can be opened as a language model, and would give numbers without meaning."""
    kinds = getattr(checkpoint.config, "architectures", None) or []
    if kinds and not any("CausalLM" in kind or "LMHead" in kind or "ConditionalGeneration" in kind for kind in kinds):
        raise ModelError(
            f"{checkpoint.address}: the checkpoint was saved as {', '.join(kinds)}, not as a causal language model",
            hint="hf: takes sequence classifiers, embed: takes sentence encoders",
        )
