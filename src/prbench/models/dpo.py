"""`dpo:POLICY,REFERENCE`: the implicit reward of a policy that was trained by direct preference optimisation.

The reward is log p(answer | turn) under the policy minus the same under the reference (Rafailov et al. 2023, eq. 5,
with β = 1), summed over the answer's tokens and the mark that ends its turn. The two may have different tokenizers.
"""

import inspect
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from prbench.errors import AddressError
from prbench.models._batching import Item, pad
from prbench.models._checkpoint import Checkpoint
from prbench.models._encoding import Encoder, Encoding
from prbench.models._local import LocalRater
from prbench.models.protocols import ModelCard
from prbench.models.registry import ModelOptions
from prbench.types import Prompt


def load(rest: str, options: ModelOptions) -> "ImplicitReward":
    """Open the two models behind `dpo:POLICY,REFERENCE`; reads configs and tokenizers, not yet the weights.

    Example:
        >>> load("only-one", ModelOptions())
        Traceback (most recent call last):
        prbench.errors.AddressError: dpo:only-one: expected a policy and a reference
        <BLANKLINE>
        hint: write dpo:POLICY,REFERENCE, each a model folder or ORG/NAME
    """
    names = [name.strip() for name in rest.split(",")]
    if len(names) != 2 or not all(names):
        raise AddressError(
            f"dpo:{rest}: expected a policy and a reference",
            hint="write dpo:POLICY,REFERENCE, each a model folder or ORG/NAME",
        )
    policy, reference = (CausalModel(Checkpoint.open(name, f"dpo:{rest}"), options) for name in names)
    return ImplicitReward(f"dpo:{rest}", policy, reference, options)


class CausalModel:
    """A causal language model that tells how likely an answer is after a turn."""

    def __init__(self, checkpoint: Checkpoint, options: ModelOptions) -> None:
        self.checkpoint = checkpoint
        self.encoder = Encoder(checkpoint.tokenizer, checkpoint.address)
        self._options = options

    @cached_property
    def model(self) -> Any:
        """The weights, loaded when first asked for."""
        from transformers import AutoModelForCausalLM

        return self.checkpoint.load_weights(AutoModelForCausalLM, self._options)

    def parameter_count(self) -> int:
        """Parameters of the model, from its config alone."""
        from transformers import AutoModelForCausalLM

        return self.checkpoint.parameter_count(AutoModelForCausalLM)

    def log_likelihoods(self, encodings: Sequence[Encoding]) -> list[float]:
        """Sum of the log-probabilities of each answer's tokens; not a number where an answer has none."""
        ids, mask, _ = pad(encodings, 0, self.model.device)
        # Logits are kept only from the token before the earliest answer on: a long profile has none worth its memory.
        start = max(min(encoding.answer_start for encoding in encodings) - 1, 0)
        keep = {"logits_to_keep": ids.shape[1] - start} if self._can_drop_logits else {}
        logits = self.model(input_ids=ids, attention_mask=mask, **keep).logits
        logits = logits[:, -(ids.shape[1] - start) :]
        return [
            _answer_log_likelihood(logits[row], ids[row], encoding, start) for row, encoding in enumerate(encodings)
        ]

    @cached_property
    def _can_drop_logits(self) -> bool:
        return "logits_to_keep" in inspect.signature(self.model.forward).parameters


class ImplicitReward(LocalRater):
    """How much likelier the policy finds an answer than the reference does."""

    def __init__(self, address: str, policy: CausalModel, reference: CausalModel, options: ModelOptions) -> None:
        limits = [model.checkpoint.positions for model in (policy, reference)]
        super().__init__(options, min((limit for limit in limits if limit is not None), default=None))
        self._address = address
        self._models = (policy, reference)

    @cached_property
    def card(self) -> ModelCard:
        """Who answers, with everything that could change a score."""
        revisions = [model.checkpoint.revision for model in self._models]
        return ModelCard(
            address=self._address,
            revision=",".join(revisions),
            reads=self._template.reads,
            parameters={
                "template": self._template.digest,
                "chat_template": [model.encoder.chat_template_digest for model in self._models],
                "format": [model.encoder.format for model in self._models],
                "beta": 1.0,
                "dtype": self._options.dtype,
                "window": self.window,
            },
            reusable=all(revisions),
        )

    def prepare(self) -> None:
        """Load the weights of both models."""
        for model in self._models:
            _ = model.model

    def parameter_count(self) -> int:
        """Parameters of both models together, from their configs alone."""
        return sum(model.parameter_count() for model in self._models)

    def _encode(self, prompt: Prompt) -> Item:
        return tuple(model.encoder.encode_answer(prompt) for model in self._models)

    def _forward(self, batch: list[Item]) -> list[float]:
        sides = zip(*batch, strict=True)
        policy, reference = (
            model.log_likelihoods(encodings) for model, encodings in zip(self._models, sides, strict=True)
        )
        return [one - other for one, other in zip(policy, reference, strict=True)]


def _answer_log_likelihood(logits: Any, ids: Any, encoding: Encoding, start: int) -> float:
    """Sum over one row; `start` is the position in `ids` that the first row of `logits` stands for."""
    begin, end = max(encoding.answer_start, 1), len(encoding.ids)
    if begin >= end:
        return float("nan")
    rows = logits[begin - 1 - start : end - 1 - start].float()
    picked = rows.gather(-1, ids[begin:end, None])[:, 0]
    return float((picked - rows.logsumexp(-1)).double().sum())
