"""The policy: a causal language model of Llama's shape, with low-rank adapters and a value head, run by hand.

Three decisions make PPO bearable on two cores, and none of them is an approximation:

- The adapters act on the answer's positions only, from the prompt's last token on (as in "activated LoRA"). So what the
  prompt leaves behind is the base model's own: it is read once, and serves all of its rollouts, the reference and every
  epoch.
- Only the upper layers have adapters. What comes out of the lower ones never changes, so it is kept from sampling, and
  the backward pass ends there.
- All rollouts of a prompt attend to one copy of its keys and values.

With the adapters off this is the base model, to rounding: the reference of the KL penalty is no second model.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from prbench.errors import ModelError
from prbench.models.local.linear import arranged, can_arrange, product
from prbench.models.local.precision import COPIED_BYTES

MAPS = ("qkv", "out", "gate_up", "down")
"""The linear maps of a layer; those that read the same input are one, with one adapter."""
SCALE = 2.0
"""α / rank of LoRA."""
_ELSEWHERE = "name a policy of Llama's shape, for example lm:smollm2, or train this one with --engine verl"
_KINDS = ("llama", "mistral", "qwen2")
_TRIED = (*range(3, 99, 13), *range(5, 30, 8))
"""Tokens on which the model as it is and as it is run here are compared."""
_NEAR = 0.01
"""Largest distance of their logits, as a share of the largest: rounding leaves a hundredth of that."""

Method = TypeVar("Method", bound=Callable[..., Any])


def without_gradient(method: Method) -> Method:
    """Return the method wrapped so that it computes no gradients."""
    return cast(Method, torch.no_grad()(method))


class Keys(NamedTuple):
    """Keys and values of some positions, in one layer: (rows, heads, positions, width) each."""

    keys: Tensor
    values: Tensor


@dataclass(frozen=True)
class Prefix:
    """State that some prompts leave behind, but for their last token: with it the answer begins."""

    layers: list[Keys]
    """One row for each prompt, padded on the right."""
    lengths: Tensor
    """Tokens of each prompt, the last one not counted."""
    last: Tensor
    """The last token of each prompt."""
    rollouts: int
    """Answers to each prompt; row `i` of the answers belongs to prompt `i // rollouts`."""

    @cached_property
    def padding(self) -> Tensor:
        """Mask that hides keys that are padding, for each answer: (answers, 1, 1, positions)."""
        places = torch.arange(self.layers[0].keys.shape[2])
        hidden = torch.zeros(len(self.lengths), len(places)).masked_fill_(places >= self.lengths[:, None], -torch.inf)
        return hidden.repeat_interleave(self.rollouts, 0)[:, None, None]


class Read(NamedTuple):
    """Reading of the policy at each position of its answers: before it, not after it."""

    logits: Tensor
    """(answers, positions, tokens), divided by the temperature."""
    values: Tensor
    """Estimated values, (answers, positions)."""


class Map(NamedTuple):
    """A linear map, stored as (inputs, outputs): for few rows that product is half as fast again as the other way."""

    weight: Tensor
    bias: Tensor | None
    change: tuple[Tensor, Tensor] | None = None
    """Low-rank adapter beside the map."""
    arranged: Tensor | None = None
    """The weight once more, as the processor multiplies it fastest where nothing is learned."""

    @classmethod
    def of(cls, *linears: Any) -> Self:
        """Several linear layers of the same input as one map."""
        weight = torch.cat([linear.weight.detach() for linear in linears]).T.contiguous()
        biases = [linear.bias for linear in linears]
        return cls(weight, None if biases[0] is None else torch.cat([bias.detach() for bias in biases]))

    def fast(self) -> Self:
        """The same map for reading and writing: nothing learns through it."""
        return self._replace(arranged=arranged(self.weight.T))

    def __call__(self, x: Tensor) -> Tensor:
        """Apply the map to `x`."""
        if self.arranged is not None:
            return product(x, self.arranged, self.bias)
        y = x @ self.weight if self.bias is None else x @ self.weight + self.bias
        return y if self.change is None else y + (x @ self.change[0]) @ self.change[1] * SCALE


Maps = Mapping[str, Map]


class Layer(NamedTuple):
    """Decoder layer of the policy."""

    maps: Maps
    norms: tuple[Any, Any]
    activation: Any

    @classmethod
    def of(cls, layer: Any) -> Self:
        """Take a layer of transformers apart."""
        look, feed = layer.self_attn, layer.mlp
        maps = {
            "qkv": Map.of(look.q_proj, look.k_proj, look.v_proj),
            "out": Map.of(look.o_proj),
            "gate_up": Map.of(feed.gate_proj, feed.up_proj),
            "down": Map.of(feed.down_proj),
        }
        return cls(maps, (layer.input_layernorm, layer.post_attention_layernorm), feed.act_fn)


class WrittenAnswers(NamedTuple):
    """Answers as they were written, and what was known while writing them; (answers, positions) each."""

    tokens: Tensor
    middle: Tensor
    """The state before the first adapter, with a further dimension."""
    logprobs: Tensor
    values: Tensor


class Policy(nn.Module):
    """Base weights (frozen), adapters and a value head.

    Args:
        model: A causal language model of transformers; it is never changed.
        rank: Rank of the adapters.
        layers: How many of the upper layers have adapters; default half of them.
        temperature: Divides the logits, wherever the policy is asked: it is a part of the policy.
        seed: Of the adapters' first values.
    """

    def __init__(
        self, model: Any, *, rank: int = 8, layers: int | None = None, temperature: float = 1.0, seed: int = 0
    ) -> None:
        super().__init__()
        config = model.config
        _refuse_other_shapes(config)
        size = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
        self._is_fast = size <= COPIED_BYTES and can_arrange(model.dtype)
        self._layers = [self._quick(Layer.of(layer)) for layer in model.model.layers]
        # In tuples: these are no parameters of this module.
        self._base = (model.model.embed_tokens, model.model.rotary_emb, model.model.norm)
        head = Map(model.get_output_embeddings().weight.detach().T.contiguous(), None)
        self._head = head.fast() if self._is_fast else head
        self.temperature = temperature
        self.depth = len(self._layers)
        self.lowest = self.depth - (math.ceil(self.depth / 2) if layers is None else min(layers, self.depth))
        self.heads, self.key_heads = config.num_attention_heads, config.num_key_value_heads
        self.width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        draws = torch.Generator().manual_seed(seed)
        self.adapters = nn.ParameterDict(dict(self._fresh(rank, draws)))
        self.value = nn.Linear(config.hidden_size, 1)
        nn.init.zeros_(self.value.weight)
        nn.init.zeros_(self.value.bias)
        self._refuse_other_results(model)

    def _fresh(self, rank: int, draws: torch.Generator) -> Iterator[tuple[str, nn.Parameter]]:
        """Adapters that change nothing yet: one factor is drawn, the other is zero."""
        for number in range(self.lowest, self.depth):
            for name in MAPS:
                inputs, outputs = self._layers[number].maps[name].weight.shape
                drawn = torch.randn(inputs, rank, generator=draws) / math.sqrt(inputs)
                yield f"{number}/{name}/in", nn.Parameter(drawn)
                yield f"{number}/{name}/out", nn.Parameter(torch.zeros(rank, outputs))

    @without_gradient
    def _refuse_other_results(self, model: Any) -> None:
        """A config may ask for what is not computed here; so the model itself is asked, once."""
        ids = [number % model.config.vocab_size for number in _TRIED]
        half = len(ids) // 2
        prefix = self.read_prompts([ids[:half]], 1)
        found = self.read_upper(prefix, self.read_lower(prefix, torch.tensor([ids[half:]])), adapted=False).logits[0]
        expected = model(torch.tensor([ids])).logits[0, half - 1 : -1]
        apart = float((found * self.temperature - expected).abs().max() / expected.abs().max())
        if not apart <= _NEAR:
            raise ModelError(
                f"the local engine does not compute what this {model.config.model_type!r} computes: its logits are "
                f"{apart:.1%} off",
                hint=_ELSEWHERE,
            )

    # ------------------------------------------------------------------ reading

    @without_gradient
    def read_prompts(self, prompts: Sequence[Sequence[int]], rollouts: int) -> Prefix:
        """Read prompts as the base model does, all but their last token."""
        lengths = torch.tensor([len(ids) - 1 for ids in prompts])
        ids = torch.zeros(len(prompts), max(1, int(lengths.max())), dtype=torch.long)
        for row, prompt in enumerate(prompts):
            ids[row, : len(prompt) - 1] = torch.tensor(list(prompt[:-1]))
        hidden, turns, kept = self._base[0](ids), self._turns(torch.arange(ids.shape[1])[None]), []
        for layer in self._layers:
            queries, own = self._looked(layer.maps, layer, hidden, turns)
            repeated = [part.repeat_interleave(self.heads // self.key_heads, 1) for part in own]
            seen = functional.scaled_dot_product_attention(queries, repeated[0], repeated[1], is_causal=True)
            hidden = self._fed(layer.maps, layer, hidden, seen)
            kept.append(Keys(*(part.contiguous() for part in own)))  # read again at every token
        return Prefix(kept, lengths, torch.tensor([prompt[-1] for prompt in prompts]), rollouts)

    @without_gradient
    def read_lower(self, prefix: Prefix, answers: Tensor) -> Tensor:
        """Return the frozen layers' output for answers (answers, positions): the state before the first adapter."""
        first = prefix.last.repeat_interleave(prefix.rollouts)[:, None]
        return self._through(self._base[0](torch.cat([first, answers[:, :-1]], 1)), prefix, range(self.lowest), False)

    def read_upper(self, prefix: Prefix, middle: Tensor, *, adapted: bool = True) -> Read:
        """Logits and values from where the frozen layers ended; with the adapters off, the base model's."""
        return self._judged(self._through(middle, prefix, range(self.lowest, self.depth), adapted))

    def _through(self, hidden: Tensor, prefix: Prefix, numbers: range, adapted: bool) -> Tensor:
        length = hidden.shape[1]
        turns, later = self._answer_turns(prefix, torch.arange(length)), _later(length)
        for number in numbers:
            layer = self._layers[number]
            maps = self._adapted(number) if adapted else layer.maps
            queries, own = self._looked(maps, layer, hidden, turns)
            hidden = self._fed(maps, layer, hidden, self._attend(queries, prefix, number, own, later))
        return hidden

    # ------------------------------------------------------------------ writing

    @without_gradient
    def write(
        self, prefix: Prefix, limit: int, ends: Sequence[int], draws: torch.Generator | None, *, adapted: bool = True
    ) -> WrittenAnswers:
        """Write an answer for each rollout, token by token; without `draws`, the likeliest token each time.

        The adapters are merged into the weights once: a step costs what it costs without them.
        """
        maps = [self._merged(number) if adapted else layer.maps for number, layer in enumerate(self._layers)]
        token = prefix.last.repeat_interleave(prefix.rollouts)
        room = (len(token), self.key_heads, limit, self.width)
        buffers = [Keys(torch.empty(room), torch.empty(room)) for _ in self._layers]
        done, stops = torch.zeros(len(token), dtype=torch.bool), torch.tensor(list(ends))
        steps: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
        while len(steps) < limit and not bool(done.all()):
            middle, read = self._next(token, len(steps), prefix, maps, buffers)
            odds = functional.log_softmax(read.logits[:, 0], -1)
            token = _drawn(odds, draws)
            steps.append((token, middle[:, 0], odds.gather(1, token[:, None])[:, 0], read.values[:, 0]))
            done |= torch.isin(token, stops)
        return WrittenAnswers(*(torch.stack(parts, 1) for parts in zip(*steps, strict=True)))

    def _next(
        self, token: Tensor, place: int, prefix: Prefix, maps: Sequence[Maps], buffers: Sequence[Keys]
    ) -> tuple[Tensor, Read]:
        """One more position of every answer: the state before the first adapter, and what comes out at the end."""
        middle = hidden = self._base[0](token[:, None])
        turns = self._answer_turns(prefix, torch.tensor([place]))
        for number, layer in enumerate(self._layers):
            if number == self.lowest:
                middle = hidden
            queries, own = self._looked(maps[number], layer, hidden, turns)
            for buffer, fresh in zip(buffers[number], own, strict=True):
                buffer[:, :, place : place + 1] = fresh
            so_far = Keys(*(buffer[:, :, : place + 1] for buffer in buffers[number]))
            hidden = self._fed(maps[number], layer, hidden, self._attend(queries, prefix, number, so_far, None))
        return middle, self._judged(hidden)

    # ------------------------------------------------------------------ pieces of a layer

    def _adapted(self, number: int) -> Maps:
        """A layer's maps with the adapters beside them, for learning."""
        return {
            name: plain._replace(change=self._factors(number, name), arranged=None)
            for name, plain in self._maps(number)
        }

    def _merged(self, number: int) -> Maps:
        """A layer's maps with the adapters inside them, for writing."""
        if number < self.lowest:
            return self._layers[number].maps
        maps = {
            name: plain._replace(weight=torch.addmm(plain.weight, *self._factors(number, name), alpha=SCALE))
            for name, plain in self._maps(number)
        }
        return self._quick(self._layers[number]._replace(maps=maps)).maps

    def _quick(self, layer: Layer) -> Layer:
        """A layer that is read and written with, but not learned through."""
        if not self._is_fast:
            return layer
        return layer._replace(maps={name: plain.fast() for name, plain in layer.maps.items()})

    def _maps(self, number: int) -> Iterable[tuple[str, Map]]:
        return self._layers[number].maps.items()

    def _factors(self, number: int, name: str) -> tuple[Tensor, Tensor]:
        return self.adapters[f"{number}/{name}/in"], self.adapters[f"{number}/{name}/out"]

    def _turns(self, positions: Tensor) -> Keys:
        """Cosine and sine of positions (rows, positions), with a dimension for heads."""
        cosine, sine = self._base[1](self._head.weight, positions)
        return Keys(cosine[:, None], sine[:, None])

    def _answer_turns(self, prefix: Prefix, places: Tensor) -> Keys:
        return self._turns(prefix.lengths.repeat_interleave(prefix.rollouts)[:, None] + places[None])

    def _looked(self, maps: Maps, layer: Layer, hidden: Tensor, turns: Keys) -> tuple[Tensor, Keys]:
        """Queries, keys and values of some positions."""
        fused = maps["qkv"](layer.norms[0](hidden))
        fused = fused.view(*fused.shape[:2], -1, self.width).transpose(1, 2)
        turning, values = fused.split([self.heads + self.key_heads, self.key_heads], 1)
        left, right = turning.chunk(2, -1)
        turned = turning * turns.keys + torch.cat([-right, left], -1) * turns.values
        queries, keys = turned.split([self.heads, self.key_heads], 1)
        return queries, Keys(keys, values)

    def _attend(self, queries: Tensor, prefix: Prefix, number: int, own: Keys, later: Tensor | None) -> Tensor:
        """Attention over the prompt, of which there is one copy, and over the answer so far.

        Query heads that share a key head, and rollouts that share a prompt, are rows of one matrix product.
        """
        rows, length = queries.shape[0], queries.shape[2]
        prompts, shared = len(prefix.last), self.heads // self.key_heads
        kept = prefix.layers[number]
        grouped = (queries * self.width**-0.5).reshape(rows, self.key_heads, shared * length, self.width)
        together = grouped.view(prompts, prefix.rollouts, self.key_heads, -1, self.width).transpose(1, 2).flatten(2, 3)
        far = (together @ kept.keys.transpose(2, 3)).view(prompts, self.key_heads, prefix.rollouts, shared * length, -1)
        far = far.transpose(1, 2).flatten(0, 1) + prefix.padding
        near = grouped @ own.keys.transpose(2, 3)
        if later is not None:
            near = near.masked_fill(later.repeat(shared, 1), -torch.inf)
        weights = functional.softmax(torch.cat([far, near], 3), 3)
        far, near = weights.split([far.shape[3], near.shape[3]], 3)
        far = far.view(prompts, prefix.rollouts, self.key_heads, shared * length, -1).transpose(1, 2).flatten(2, 3)
        seen = (far @ kept.values).view(prompts, self.key_heads, prefix.rollouts, shared * length, self.width)
        seen = seen.transpose(1, 2).flatten(0, 1) + near @ own.values
        return seen.reshape(rows, self.heads, length, self.width)

    def _fed(self, maps: Maps, layer: Layer, hidden: Tensor, seen: Tensor) -> Tensor:
        """The rest of a layer: what attention saw, and the feed-forward part."""
        hidden = hidden + maps["out"](seen.transpose(1, 2).flatten(2))
        gate, up = maps["gate_up"](layer.norms[1](hidden)).chunk(2, -1)
        return hidden + maps["down"](layer.activation(gate) * up)

    def _judged(self, hidden: Tensor) -> Read:
        final = self._base[2](hidden)
        head = self._head._replace(arranged=None) if final.requires_grad else self._head
        return Read(head(final / self.temperature), self.value(final)[..., 0])


def _later(length: int) -> Tensor:
    return torch.ones(length, length, dtype=torch.bool).triu(1)


def _drawn(odds: Tensor, draws: torch.Generator | None) -> Tensor:
    """One token for each row of log-probabilities, where a uniform number falls on their sum; or the likeliest."""
    if draws is None:
        return odds.argmax(-1)
    sums = odds.double().exp().cumsum(-1)
    return torch.searchsorted(sums, torch.rand(len(odds), 1, generator=draws, dtype=sums.dtype) * sums[:, -1:])[:, 0]


def _refuse_other_shapes(config: Any) -> None:
    if config.model_type not in _KINDS:
        raise ModelError(
            f"the local engine trains policies of Llama's shape ({', '.join(_KINDS)}), not {config.model_type!r}",
            hint=_ELSEWHERE,
        )
    window = getattr(config, "sliding_window", None)
    sliding = "sliding_attention" in (getattr(config, "layer_types", None) or ["sliding_attention"])
    if window is not None and sliding and window < config.max_position_embeddings:
        raise ModelError(
            f"the local engine has no sliding window, and this {config.model_type!r} looks back {window} tokens only",
            hint=_ELSEWHERE,
        )
