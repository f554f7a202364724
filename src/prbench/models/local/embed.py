"""`embed:minilm`, `embed:DIR`, `embed:ORG/NAME`: a sentence encoder, for dense ranking and as a simple baseline.

As a rater it scores an answer by how near it is to the question, plus how near it is to the mean of the posts, plus how
near it is to the mean of the plan, each a cosine, each only where it is shown. A text that is longer than the encoder's
window is embedded in pieces whose vectors are averaged by length: nothing is cut. Every distinct text is embedded once.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from prbench.config import ModelOptions
from prbench.errors import ModelError
from prbench.files import checked, read_json
from prbench.models.local import weights
from prbench.models.local.batching import fitting_tokens, pad, plan_batches, try_forward
from prbench.models.local.checkpoint import Checkpoint
from prbench.models.local.encoding import Encoding
from prbench.models.local.placement import input_device
from prbench.models.personal.stance_encoder import StanceEncoder
from prbench.models.protocols import ModelCard
from prbench.types import AnswerView, Channel, Message, Outcome, Prompt

__all__ = ["SentenceEncoder", "SimilarityRater", "load", "load_encoder"]

Vectors = npt.NDArray[np.float32]
Pooling = Literal["mean", "cls"]
_FEW = 16
"""Pieces of which the lower layers' states are kept: those of one question."""
_CHUNK = 256
"""Views whose texts are embedded together."""


def load(rest: str, options: ModelOptions) -> "SimilarityRater":
    """Open the encoder behind `embed:REST` as a rater; pulls a named one on first use, reads no weights yet."""
    return SimilarityRater(_open(rest, options))


def load_encoder(rest: str, options: ModelOptions | None = None) -> "SentenceEncoder | StanceEncoder":
    """Open the encoder behind `embed:REST`, for `prbench.rank.Dense` and other uses of vectors.

    `embed:DIR#stances` reads one that `prbench train encoder` tuned through its head.

    Example:
        >>> load_encoder("./no/such/folder")
        Traceback (most recent call last):
        prbench.errors.ModelError: embed:./no/such/folder: there is no folder './no/such/folder'
        ...
    """
    name, _, head = rest.partition("#")
    if head not in ("", "stances", "stances+vectors"):
        raise ModelError(f"embed:{rest}: unknown head {head!r}", hint="known: #stances, #stances+vectors")
    encoder = _open(name, options or ModelOptions())
    return StanceEncoder(encoder, Path(name).expanduser(), head) if head else encoder


def _open(rest: str, options: ModelOptions) -> "SentenceEncoder":
    is_folder = rest not in weights.SOURCES and Path(rest).expanduser().is_dir()
    # An encoder of the hub is fetched whole: how it pools stands in files that transformers does not ask for.
    name = str(weights.pull(rest)) if not is_folder and weights.can_pull(rest) else rest
    return SentenceEncoder(Checkpoint.open(name, f"embed:{rest}", trust=options.trust_remote_code), options)


class SentenceEncoder:
    """Maps texts to vectors of length 1; implements `prbench.rank.TextEncoder`."""

    def __init__(self, checkpoint: Checkpoint, options: ModelOptions) -> None:
        self.checkpoint = checkpoint
        self.options = options
        self._shared = 0
        self._lower: dict[tuple[int, ...], Any] = {}
        self._vectors: dict[str, Vectors] = {}
        self._tokens: dict[str, int] = {}
        folder = Path(checkpoint.source)
        self.pooling: Pooling = _pooling(folder, checkpoint.address)
        limits = [options.window or checkpoint.positions, _read_json(folder / "sentence_bert_config.json")]
        with checked(folder / "sentence_bert_config.json", raises=ModelError, hint="save the encoder again"):
            self.window: int | None = min(
                (int(limit) for limit in (limits[0], limits[1].get("max_seq_length")) if limit), default=None
            )
        """The most tokens of one piece of a text."""

    @property
    def name(self) -> str:
        """Name of the encoder, with its revision, and its precision where that is not the full one."""
        rounded = "" if self.options.dtype == "float32" else f"+{self.options.dtype}"
        return f"{self.checkpoint.address.partition(':')[2]}@{self.checkpoint.revision[:12]}{rounded}"

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Embed each text, one row each; texts seen before are not computed again."""
        new = list(dict.fromkeys(text for text in texts if text not in self._vectors))
        if new:
            self._vectors.update(zip(new, self._embed(new), strict=True))
        if not texts:
            return np.zeros((0, int(self.checkpoint.config.get_text_config().hidden_size)), dtype=np.float32)
        return np.stack([self._vectors[text] for text in texts])

    def release(self) -> None:
        """Drop the vectors of all texts that were embedded, for who keeps them elsewhere."""
        self._vectors.clear()
        self._tokens.clear()

    def forget(self) -> None:
        """Drop all that was made of texts."""
        self.release()
        self._lower = {}

    def token_count(self, text: str) -> int:
        """Tokens of a text that has been embedded."""
        return self._tokens[text]

    def prepare(self) -> None:
        """Load the weights of the encoder."""
        _ = self._model

    def foreseen_seconds(self, tokens: int, length: int) -> float:
        """Return the seconds that embedding texts of so many tokens would take here, each of about this length."""
        from transformers import AutoModel

        window = length if self.window is None else min(length, self.window)
        return self.checkpoint.foreseen_seconds(AutoModel, self.options, tokens, window)

    @cached_property
    def _model(self) -> Any:
        from transformers import AutoModel

        # Token states are pooled here; the pooler of a BERT, which many encoders were saved without, is not read.
        return self.checkpoint.load_weights(AutoModel, self.options, lacking=("pooler.",))

    def _embed(self, texts: Sequence[str]) -> Vectors:
        pieces = self._pieces(texts)
        self._tokens.update((text, sum(map(len, part))) for text, part in zip(texts, pieces, strict=True))
        flat = [piece for part in pieces for piece in part]
        rows = np.zeros((len(flat), int(self.checkpoint.config.get_text_config().hidden_size)), dtype=np.float32)
        most = fitting_tokens(self.options.batch_tokens, self._device)
        for batch in plan_batches([len(piece) for piece in flat], most):
            self._fill(rows, flat, batch)
        owner = np.repeat(np.arange(len(texts)), [len(part) for part in pieces])
        totals = np.zeros((len(texts), rows.shape[1]), dtype=np.float32)
        np.add.at(totals, owner, rows * np.array([len(piece) for piece in flat], dtype=np.float32)[:, None])
        return unit(totals)

    def _fill(self, rows: Vectors, pieces: Sequence[Sequence[int]], batch: list[int]) -> None:
        vectors = try_forward(lambda: self._forward([pieces[index] for index in batch]))
        if vectors is not None:
            rows[batch] = np.asarray(vectors, dtype=np.float32)
        elif len(batch) > 1:
            self._fill(rows, pieces, batch[: len(batch) // 2])
            self._fill(rows, pieces, batch[len(batch) // 2 :])
        else:
            raise ModelError(
                f"{self.checkpoint.address}: out of memory on a text of {len(pieces[batch[0]])} tokens",
                hint="--device cpu, or a smaller --window, for shorter pieces",
            )

    def share(self, layers: int) -> None:
        """Let encoders that differ in so many upper layers, or fewer, have what the lower ones make of a text."""
        self._shared = max(self._shared, layers)
        self._lower = {}

    def lower_states(self, pieces: Sequence[Sequence[int]]) -> list[Any]:
        """What the shared lower layers make of each piece; of a few pieces it is kept for the next encoder."""
        from prbench.models.local import packing

        wanted = [tuple(piece) for piece in pieces]
        kept = self._lower
        found = {piece: kept[piece] for piece in wanted if piece in kept}
        if new := [piece for piece in dict.fromkeys(wanted) if piece not in found]:
            blocks = self._model.encoder.layer
            lower = blocks[: len(blocks) - len(self.shared_blocks)]
            states = packing.embedded(self._model, new, self._device)
            found.update(zip(new, self.through(states, lower), strict=True))
        few = self._shared and len(found) <= _FEW
        self._lower = {piece: states.clone() for piece, states in found.items()} if few else {}
        return [found[piece] for piece in wanted]

    def through(self, states: Sequence[Any], blocks: Iterable[Any]) -> list[Any]:
        """Send the states of pieces through some blocks of this encoder, or blocks like them."""
        from prbench.models.local import packing

        return packing.through(states, blocks, packed=packing.is_packed(self._model))

    @property
    def _device(self) -> Any:
        return input_device(self._model)

    def _states(self, pieces: Sequence[Sequence[int]]) -> list[Any]:
        """The last states of each piece."""
        from prbench.models.local import packing

        if self._shared or packing.is_packed(self._model):
            return self.through(self.lower_states(pieces), self.shared_blocks)
        ids, mask, _ = pad([Encoding(piece) for piece in pieces], 0, self._device)  # type: ignore[arg-type]
        states = self._model(input_ids=ids, attention_mask=mask).last_hidden_state
        return [one[: len(piece)] for one, piece in zip(states, pieces, strict=True)]

    @property
    def shared_blocks(self) -> list[Any]:
        """The blocks above what is shared."""
        blocks = list(self._model.encoder.layer)
        return blocks[max(len(blocks) - self._shared, 0) :]

    def _forward(self, pieces: Sequence[Sequence[int]]) -> Any:
        import torch

        pooled = [one[0] if self.pooling == "cls" else one.float().mean(0) for one in self._states(pieces)]
        return unit(torch.stack(pooled).float().cpu().numpy())

    def _pieces(self, texts: Sequence[str]) -> list[list[list[int]]]:
        """Token ids of each text with the model's special tokens, in as many equal pieces as it takes."""
        fields = self.checkpoint.tokenizer(list(texts), add_special_tokens=False, truncation=False, verbose=False)
        before, after = self._special
        room = None if self.window is None else max(self.window - len(before) - len(after), 1)
        return [[[*before, *part, *after] for part in _equal_parts(ids, room)] for ids in fields["input_ids"]]

    @cached_property
    def _special(self) -> tuple[list[int], list[int]]:
        """The tokens that the model's tokenizer puts before and after a text."""
        tokenizer = self.checkpoint.tokenizer
        whole, bare = (tokenizer("a", add_special_tokens=added)["input_ids"] for added in (True, False))
        start = next(i for i in range(len(whole)) if whole[i : i + len(bare)] == bare)
        return whole[:start], whole[start + len(bare) :]


class SimilarityRater:
    """Rates an answer by its nearness to question, posts and plan: it reads the user, and reasons about nothing."""

    def __init__(self, encoder: SentenceEncoder) -> None:
        self.encoder = encoder

    @cached_property
    def card(self) -> ModelCard:
        """Description of the model that answers."""
        checkpoint = self.encoder.checkpoint
        return ModelCard(
            address=checkpoint.address,
            revision=checkpoint.revision,
            reads=frozenset({Channel.POSTS, Channel.PLAN}),
            parameters={
                "score": "cos(answer, question) + cos(answer, mean post) + cos(answer, mean expectation)",
                "pooling": self.encoder.pooling,
                "piece": self.encoder.window,
                "dtype": self.encoder.options.dtype,
            },
            reusable=bool(checkpoint.revision),
        )

    def prepare(self) -> None:
        """Load the weights of the encoder."""
        self.encoder.prepare()

    def parameter_count(self) -> int:
        """Parameters of the encoder, from its config alone."""
        from transformers import AutoModel

        return self.encoder.checkpoint.parameter_count(AutoModel)

    def fresh_texts(self, prompts: Iterable[Prompt]) -> set[str]:
        """The texts that these prompts make it compute, each once."""
        return {message.content for prompt in prompts for message in prompt.messages}

    def foreseen_seconds(self, tokens: int, length: int) -> float:
        """Return the seconds that embedding texts of so many tokens would take here; each text is read on its own."""
        return self.encoder.foreseen_seconds(tokens, length)

    def render(self, view: AnswerView) -> Prompt:
        """Each text as a turn of its own: the model sees them one by one."""
        posts = [Message("post", post.text) for post in view.posts]
        plan = [Message("expectation", line) for line in view.plan]
        return Prompt((Message("question", view.question), *posts, *plan, Message("answer", view.answer)))

    def rate(self, views: Sequence[AnswerView]) -> Iterator[tuple[int, Outcome]]:
        """Score each view; a user's posts are embedded once for all of them."""
        self.prepare()
        for start in range(0, len(views), _CHUNK):
            chunk = views[start : start + _CHUNK]
            started = time.perf_counter()
            texts = [[message.content for message in self.render(view).messages] for view in chunk]
            self.encoder.encode([text for part in texts for text in part])
            scores = [self._score(view) for view in chunk]
            share_ms = (time.perf_counter() - started) * 1000 / len(chunk)
            for place, score in enumerate(scores):
                tokens = sum(self.encoder.token_count(text) for text in texts[place])
                yield start + place, Outcome.scored(score, tokens_in=tokens, latency_ms=share_ms)

    def _score(self, view: AnswerView) -> float:
        (answer,) = self.encoder.encode([view.answer])
        groups = [[view.question], [post.text for post in view.posts], list(view.plan)]
        means = [unit(self.encoder.encode(group).mean(axis=0, keepdims=True))[0] for group in groups if group]
        return sum(float(answer @ mean) for mean in means)


def unit(rows: npt.NDArray[Any]) -> Vectors:
    """Rows scaled to length 1; a row of zeros stays."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(norms, 1e-12), dtype=np.float32)


def _equal_parts(ids: list[int], room: int | None) -> list[list[int]]:
    """Cut a list into the fewest parts that fit, whose lengths differ by one at most.

    Example:
        >>> _equal_parts([1, 2, 3, 4, 5], room=2)
        [[1, 2], [3, 4], [5]]
    """
    count = 1 if room is None else max(-(-len(ids) // room), 1)
    size, longer = divmod(len(ids), count)
    ends = [number * size + min(number, longer) for number in range(count + 1)]
    return [ids[start:end] for start, end in pairwise(ends)]


def _pooling(folder: Path, address: str) -> Pooling:
    """Return how the folder's own description makes token states one vector; the mean where it says nothing."""
    modules = _read_json(folder / "modules.json") or []
    with checked(folder / "modules.json", raises=ModelError, hint="save the encoder again"):
        kinds = [str(module.get("type", "")).rpartition(".")[2] for module in modules]
    if unknown := [kind for kind in kinds if kind not in {"Transformer", "Pooling", "Normalize"}]:
        raise ModelError(
            f"{address}: the encoder ends in a layer of kind {unknown[0]!r}, which is not computed here",
            hint="take an encoder that pools and normalises only, or bring this one as py:MODULE:ATTR",
        )
    settings = _read_json(folder / "1_Pooling" / "config.json")
    with checked(folder / "1_Pooling" / "config.json", raises=ModelError, hint="save the encoder again"):
        chosen = {key.removeprefix("pooling_mode_") for key, value in settings.items() if value is True}
    chosen -= {"include_prompt"}
    if chosen <= {"mean_tokens"}:
        return "mean"
    if chosen == {"cls_token"}:
        return "cls"
    raise ModelError(f"{address}: pools by {', '.join(sorted(chosen))}", hint="known: mean_tokens, cls_token")


def _read_json(path: Path) -> Any:
    return read_json(path, raises=ModelError, hint="save the encoder again") if path.exists() else {}
