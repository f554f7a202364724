"""Writing with a local language model, in batches padded on the left.

Sampling adds Gumbel noise to the logits and takes the largest, which is exact sampling. The noise is drawn per text
from the seed, the prompt and the text's number, so a text does not depend on what else is in its batch.
"""

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, cast

from prbench.models.local.batching import plan_batches, try_forward
from prbench.models.local.language_model import LanguageModel, short_hash
from prbench.models.local.placement import input_device
from prbench.models.protocols import ModelCard
from prbench.types import Outcome, Prompt


class _Text(NamedTuple):
    """One text to write."""

    prompt: int
    number: int
    ids: Sequence[int]


class _Decoding(NamedTuple):
    temperature: float
    seed: int
    stop: tuple[str, ...]
    limit: int
    """The most tokens that may be written."""


class LanguageModelGenerator:
    """A local language model that writes."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    @cached_property
    def card(self) -> ModelCard:
        """Description of the model that answers."""
        checkpoint = self._model.checkpoint
        return ModelCard(
            address=checkpoint.address,
            revision=checkpoint.revision,
            parameters=self._model.parameters,
            reusable=bool(checkpoint.revision),
        )

    @property
    def window(self) -> int | None:
        """The most tokens that prompt and text together may have."""
        return self._model.window

    def length(self, prompt: Prompt) -> int:
        """Tokens that this prompt takes, special tokens included."""
        return self._model.encoder.length(prompt)

    def generate(
        self,
        prompts: Sequence[Prompt],
        *,
        n: int = 1,
        max_tokens: int = 512,
        temperature: float = 0.0,
        seed: int = 0,
        stop: Sequence[str] = (),
    ) -> Iterator[tuple[int, tuple[Outcome, ...]]]:
        """Write `n` texts for each prompt; the same seed gives the same texts.

        A stop string ends a text and is not part of it. A text that was cut off, by `max_tokens` or by the window, is
        still a text; its outcome's reason says so.
        """
        groups: dict[int, list[_Text]] = defaultdict(list)
        for index, prompt in enumerate(prompts):
            ids = self._model.encoder.encode(prompt).ids
            room = max_tokens if self.window is None else min(max_tokens, self.window - len(ids))
            if room < 1:
                reason = f"prompt of {len(ids)} tokens leaves no room in the window of {self.window}"
                yield index, (Outcome.invalid(reason, tokens_in=len(ids)),) * n
            else:
                groups[room] += [_Text(index, number, ids) for number in range(n)]
        waiting: dict[int, dict[int, Outcome]] = defaultdict(dict)
        for limit, texts in groups.items():
            for text, outcome in self._write_all(texts, _Decoding(temperature, seed, tuple(stop), limit)):
                written = waiting[text.prompt]
                written[text.number] = outcome
                if len(written) == n:
                    del waiting[text.prompt]
                    yield text.prompt, tuple(written[number] for number in range(n))

    def _write_all(self, texts: Sequence[_Text], decoding: _Decoding) -> Iterator[tuple[_Text, Outcome]]:
        lengths = [len(text.ids) + decoding.limit for text in texts]
        batches = plan_batches(lengths, self._model.options.batch_tokens)
        pending = [[texts[index] for index in batch] for batch in reversed(batches)]
        while pending:
            batch = pending.pop()
            start = time.perf_counter()
            rows = cast(Any, try_forward)(lambda batch=batch: self._run(batch, decoding))
            if rows is None and len(batch) > 1:
                middle = len(batch) // 2
                pending += [batch[middle:], batch[:middle]]
                continue
            share_ms = (time.perf_counter() - start) * 1000 / len(batch)
            for place, text in enumerate(batch):
                if rows is None:
                    reason = f"out of memory on a prompt of {len(text.ids)} tokens"
                    yield text, Outcome.failed(reason, tokens_in=len(text.ids))
                else:
                    yield text, self._outcome(text, rows[place], decoding, share_ms)

    def _run(self, batch: Sequence[_Text], decoding: _Decoding) -> list[list[int]]:
        import torch
        from transformers import GenerationConfig

        model = self._model.weights
        width = max(len(text.ids) for text in batch)
        ids = torch.full((len(batch), width), self._pad)
        mask = torch.zeros_like(ids)
        for row, text in enumerate(batch):
            ids[row, width - len(text.ids) :] = torch.tensor(text.ids)
            mask[row, width - len(text.ids) :] = 1
        config = GenerationConfig(
            max_new_tokens=decoding.limit, do_sample=False, num_beams=1, eos_token_id=self._ends, pad_token_id=self._pad
        )
        # A checkpoint's own decoding habits (penalties, top-p …) would fill in whatever is not set here.
        habits, model.generation_config = model.generation_config, GenerationConfig()
        try:
            written = model.generate(
                input_ids=ids.to(input_device(model)),
                attention_mask=mask.to(input_device(model)),
                generation_config=config,
                logits_processor=[_Noise(batch, decoding)] if decoding.temperature > 0 else [],
                stopping_criteria=[_StopStrings(self._model.checkpoint.tokenizer, width, decoding.stop)],
            )
        finally:
            model.generation_config = habits
        return [list(row) for row in written[:, width:].tolist()]

    def _outcome(self, text: _Text, row: list[int], decoding: _Decoding, latency_ms: float) -> Outcome:
        end = next((place for place, token in enumerate(row) if token in self._ends), None)
        words = self._model.checkpoint.tokenizer.decode(row[:end], skip_special_tokens=True)
        stops = [place for mark in decoding.stop if (place := words.find(mark)) >= 0]
        complete = end is not None or stops
        tokens_out = len(row) if end is None else end + 1
        return Outcome(
            status="ok",
            raw=words[: min(stops)] if stops else words,
            reason="" if complete else f"cut off after {tokens_out} tokens",
            tokens_in=len(text.ids),
            tokens_out=tokens_out,
            latency_ms=latency_ms,
        )

    @cached_property
    def _ends(self) -> list[int]:
        """Tokens that end a text: the checkpoint's own and the tokenizer's."""
        own = self._model.weights.generation_config.eos_token_id
        listed = own if isinstance(own, list) else [own]
        found = {*listed, self._model.checkpoint.tokenizer.eos_token_id} - {None}
        return sorted(cast("set[int]", found))

    @property
    def _pad(self) -> int:
        return self._ends[0] if self._ends else 0


class _Noise:
    """A logits processor: Gumbel noise, drawn for each row from its own generator."""

    def __init__(self, batch: Sequence[_Text], decoding: _Decoding) -> None:
        import torch

        self._temperature = decoding.temperature
        self._generators = [
            torch.Generator().manual_seed(short_hash(f"{decoding.seed} {text.number} {list(text.ids)}".encode()))
            for text in batch
        ]

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        import torch

        uniform = torch.stack([torch.rand(scores.shape[-1], generator=generator) for generator in self._generators])
        gumbel = -torch.log(-torch.log(uniform.clamp(1e-20, 1 - 1e-7)))
        return scores.float() / self._temperature + gumbel.to(scores.device)


class _StopStrings:
    """A stopping criterion: a row is done as soon as its text contains a stop string."""

    def __init__(self, tokenizer: Any, start: int, stop: Sequence[str]) -> None:
        self._tokenizer = tokenizer
        self._start = start
        self._stop = stop

    def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
        import torch

        done = torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)
        if self._stop:
            texts = self._tokenizer.batch_decode(input_ids[:, self._start :], skip_special_tokens=True)
            for row, text in enumerate(texts):
                done[row] = any(mark in text for mark in self._stop)
        return done
