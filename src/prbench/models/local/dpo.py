"""`dpo:POLICY,REFERENCE`: the implicit reward of a policy that was trained by direct preference optimisation.

The reward is log p(answer | turn) under the policy minus the same under the reference (Rafailov et al. 2023, eq. 5,
with β = 1), summed over the answer's tokens and the mark that ends its turn. The two may have different tokenizers.
"""

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any, Literal

from prbench.errors import AddressError
from prbench.models.local.adapter import open_with_adapter
from prbench.models.local.batching import Item
from prbench.models.local.checkpoint import Checkpoint
from prbench.models.local.encoding import PromptEncoder
from prbench.models.local.prefix import LogitRequest, PrefixScorer, log_likelihood
from prbench.models.local.rater import PrefixRater
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
    opener = partial(Checkpoint.open, trust=options.trust_remote_code)
    policy, reference = (CausalModel(open_with_adapter(name, f"dpo:{rest}", opener), options) for name in names)
    return ImplicitReward(f"dpo:{rest}", policy, reference, options)


class CausalModel:
    """A causal language model that tells how likely an answer is after a turn."""

    def __init__(self, checkpoint: Checkpoint, options: ModelOptions) -> None:
        self.checkpoint = checkpoint
        self.encoder = PromptEncoder(checkpoint.tokenizer, checkpoint.address)
        self._options = options

    @cached_property
    def model(self) -> Any:
        """The weights, loaded when first asked for."""
        from transformers import AutoModelForCausalLM

        return self.checkpoint.load_weights(AutoModelForCausalLM, self._options.model_copy(update={"quantize": None}))

    def parameter_count(self) -> int:
        """Parameters of the model, from its config alone."""
        from transformers import AutoModelForCausalLM

        return self.checkpoint.parameter_count(AutoModelForCausalLM)

    def foreseen_seconds(self, tokens: int, length: int) -> float:
        """Return the seconds that so many tokens of prompts of this length would take here."""
        from transformers import AutoModelForCausalLM

        return self.checkpoint.foreseen_seconds(AutoModelForCausalLM, self._options, tokens, length)


class ImplicitReward(PrefixRater):
    """Rater by how much likelier the policy finds an answer than the reference does."""

    def __init__(
        self,
        address: str,
        policy: CausalModel,
        reference: CausalModel,
        options: ModelOptions,
        *,
        shared: bool = True,
    ) -> None:
        limits = [model.checkpoint.positions for model in (policy, reference)]
        super().__init__(options, min((limit for limit in limits if limit is not None), default=None), shared=shared)
        self._address = address
        self._models = (policy, reference)

    @cached_property
    def card(self) -> ModelCard:
        """Description of the model, with everything that could change a score."""
        revisions = [model.checkpoint.revision for model in self._models]
        return ModelCard(
            address=self._address,
            revision=",".join(revisions),
            reads=self._template.reads,
            units="log-odds",
            parameters={
                "template": self._template.digest,
                "chat_template": [model.encoder.chat_template_digest for model in self._models],
                "format": [model.encoder.format for model in self._models],
                "beta": 1.0,
                **self._precision,
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

    @property
    def computes_once(self) -> Literal["prefixes", "nothing"]:
        """Part that several prompts share and that is computed once."""
        return "prefixes" if self._shared else "nothing"

    def foreseen_seconds(self, tokens: int, length: int) -> float:
        """Return the seconds that so many tokens of prompts of this length would take here, in both models."""
        return sum(model.foreseen_seconds(tokens, length) for model in self._models)

    def _encoders(self) -> Sequence[PromptEncoder]:
        return [model.encoder for model in self._models]

    def _encode(self, prompt: Prompt) -> Item:
        return tuple(model.encoder.encode_answer(prompt) for model in self._models)

    @cached_property
    def _scorers(self) -> tuple[PrefixScorer, ...]:
        return tuple(
            PrefixScorer(model.model, batch_tokens=self._options.batch_tokens, shared=self._shared)
            for model in self._models
        )

    def _requests(self, item: Item) -> tuple[LogitRequest, ...]:
        return tuple(log_likelihood(encoding.ids, encoding.answer_start) for encoding in item)

    def _score(self, values: tuple[tuple[float, ...], ...]) -> float:
        """Return the difference of the two models; not a number where an answer has no tokens."""
        policy, reference = (sum(logs) if logs else float("nan") for logs in values)
        return policy - reference
