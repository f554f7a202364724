"""The policy's language model: loaded as any other `lm:` model, asked as in every study."""

from typing import Any, NamedTuple

from prbench.config import ModelOptions
from prbench.errors import ConfigError
from prbench.studies.policy import policy_prompt
from prbench.studies.ppo.config import PPOConfig
from prbench.studies.ppo.loop import Speech
from prbench.types import Pair


class Speaker(NamedTuple):
    """A base model with its tokenizer."""

    weights: Any
    tokenizer: Any
    speech: Speech
    revision: str


def load_speaker(address: str, options: PPOConfig) -> Speaker:
    """Open the base model behind `lm:NAME`.

    Example:
        >>> load_speaker("chat:gpt@http://127.0.0.1:1", PPOConfig())
        Traceback (most recent call last):
        prbench.errors.ConfigError: policy 'chat:gpt@http://127.0.0.1:1' cannot be trained here
        <BLANKLINE>
        hint: name a local language model: lm:smollm2, lm:DIR or lm:ORG/NAME
    """
    scheme, _, name = address.partition(":")
    if scheme != "lm" or not name or "#" in name:
        raise ConfigError(
            f"policy {address!r} cannot be trained here",
            hint="name a local language model: lm:smollm2, lm:DIR or lm:ORG/NAME",
        )
    from prbench.models.local.language_model import LanguageModel, open_named

    model = LanguageModel(open_named(name, address), ModelOptions())
    weights = model.weights
    weights.requires_grad_(False)

    def encode(pair: Pair) -> list[int]:
        ids = list(model.encoder.encode(policy_prompt(pair, posts=options.posts, words=options.words)).ids)
        if model.window is not None and len(ids) + options.new_tokens > model.window:
            raise ConfigError(
                f"pair {pair.id!r}: the policy's prompt of {len(ids)} tokens and an answer of {options.new_tokens} do "
                f"not fit its window of {model.window}",
                hint="show it fewer --posts",
            )
        return ids

    tokenizer = model.checkpoint.tokenizer
    speech = Speech(encode, lambda ids: str(tokenizer.decode(ids, skip_special_tokens=True)), _ends(weights, tokenizer))
    return Speaker(weights, tokenizer, speech, model.checkpoint.revision)


def _ends(weights: Any, tokenizer: Any) -> tuple[int, ...]:
    """Tokens that end a text: the checkpoint's own and the tokenizer's."""
    own = weights.generation_config.eos_token_id
    listed = own if isinstance(own, list) else [own]
    return tuple(sorted(token for token in {*listed, tokenizer.eos_token_id} if token is not None))
