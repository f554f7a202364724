"""`hf:ORG/NAME`, `hf:ORG/NAME@REVISION`, `hf:DIR`, `hf:BASE+ADAPTER`: a reward model.

Posts, plan and question stand in one user turn, the answer in the assistant's turn. A score is what the model gives for
that conversation alone, in any batch. A checkpoint without a trained head is refused, and so is one that scores the
steps of an answer. Other families than sequence classifiers are opened by `#read=WAY`.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

from prbench.errors import AddressError, ModelError, did_you_mean
from prbench.models.effort import Effort
from prbench.models.head import read_head
from prbench.models.local.adapter import open_with_adapter
from prbench.models.local.batching import Item, Scored, fitting_tokens, pad, score_all
from prbench.models.local.checkpoint import Checkpoint
from prbench.models.local.encoding import Encoding, PromptEncoder
from prbench.models.local.families import WAYS, OwnCodeRater, PairClassifier, refuse_process_rewards
from prbench.models.local.flops import causal_keys
from prbench.models.local.hidden import HiddenStates
from prbench.models.local.language_model import LanguageModel
from prbench.models.local.lm import PreferenceLetters, YesNoRater
from prbench.models.local.placement import input_device
from prbench.models.local.prefix import LogitRequest, PrefixScorer
from prbench.models.local.rater import PrefixRater
from prbench.models.protocols import ModelCard
from prbench.models.registry import ModelOptions
from prbench.types import Prompt


def load(
    rest: str, options: ModelOptions
) -> "SequenceClassifier | OwnCodeRater | PairClassifier | PreferenceLetters | YesNoRater":
    """Open the model behind `hf:REST`; reads config and tokenizer, not yet the weights.

    Example:
        >>> load("./no/such/folder", ModelOptions())
        Traceback (most recent call last):
        prbench.errors.ModelError: hf:./no/such/folder: there is no folder './no/such/folder'
        ...
    """
    name, fields = _split(rest)
    way, label = fields.get("read"), fields.get("label")
    checkpoint = _open(name, options)
    refuse_process_rewards(checkpoint)
    if way == "letters":
        return PreferenceLetters(LanguageModel(checkpoint, options))
    if way == "yes-no":
        return YesNoRater(LanguageModel(checkpoint, options), fragment="read=yes-no")
    if way == "pair":
        return PairClassifier(checkpoint, options)
    if checkpoint.code is not None:
        return OwnCodeRater(checkpoint, options, way=way, label=label)
    if way in ("get_score", "score"):
        raise ModelError(
            f"hf:{rest}: #read={way} is for checkpoints with code of their own, and this one has none that is needed",
            hint="leave it out: the score is read from the classifier's logits",
        )
    return SequenceClassifier(checkpoint, label, options)


def load_encoder(rest: str, options: ModelOptions) -> HiddenStates:
    """Open the model behind `hf:REST` as a frozen encoder; a label in the address is ignored."""
    name, _ = _split(rest)
    return HiddenStates(_open(name, options), options)


def _open(name: str, options: ModelOptions) -> Checkpoint:
    return open_with_adapter(name, f"hf:{name}", partial(Checkpoint.open, trust=options.trust_remote_code))


def live(model: Any, tokenizer: Any, options: ModelOptions) -> "SequenceClassifier":
    """A classifier that is in memory already, for example in training; its scores are never reused."""
    rater = SequenceClassifier(Checkpoint("live", "<live>", None, model.config, tokenizer), None, options)
    rater._model = model
    return rater


class SequenceClassifier(PrefixRater):
    """A reward model with a classification head."""

    def __init__(
        self, checkpoint: Checkpoint, label: str | None, options: ModelOptions, *, shared: bool = True
    ) -> None:
        super().__init__(options, checkpoint.positions, shared=shared)
        self._checkpoint = checkpoint
        self._label = label
        self._head = read_head(checkpoint.config, label, checkpoint.address)
        self._encoder = PromptEncoder(checkpoint.tokenizer, checkpoint.address)

    @cached_property
    def card(self) -> ModelCard:
        """Description of the model, with everything that could change a score."""
        return ModelCard(
            address=self._checkpoint.address + (f"#label={self._label}" if self._label else ""),
            revision=self._checkpoint.revision,
            reads=self._template.reads,
            units="log-odds",
            parameters={
                "template": self._template.digest,
                "chat_template": self._encoder.chat_template_digest,
                "format": self._encoder.format,
                "head": self._head.describe(),
                **self._precision,
                "window": self.window,
            },
            reusable=bool(self._checkpoint.revision),
        )

    def _notes(self) -> Iterator[str]:
        if self._label is None and self._head.against is not None:
            yield f"of two labels the score is {self._head.describe()}; #label=L takes another"
        yield from super()._notes()

    def prepare(self) -> None:
        """Load the weights and refuse a checkpoint whose head was never trained."""
        _ = self._model

    def parameter_count(self) -> int:
        """Parameters of the model, from its config alone."""
        from transformers import AutoModelForSequenceClassification

        return self._checkpoint.parameter_count(AutoModelForSequenceClassification)

    @property
    def computes_once(self) -> Literal["prefixes", "nothing"]:
        """Part that several prompts share and that is computed once; encoders see both ways and share nothing."""
        return "nothing" if self._encoder.format == "pair" or not self._shared else "prefixes"

    def foreseen_seconds(self, tokens: int, length: int) -> float:
        """Return the seconds that so many tokens of prompts of this length would take here."""
        from transformers import AutoModelForSequenceClassification

        return self._checkpoint.foreseen_seconds(AutoModelForSequenceClassification, self._options, tokens, length)

    @cached_property
    def _model(self) -> Any:
        from transformers import AutoModelForSequenceClassification

        return self._checkpoint.load_weights(AutoModelForSequenceClassification, self._options)

    def written_out(self, prompt: Prompt) -> str:
        """The prompt as one text, with the special tokens of the chat template."""
        return self._encoder.written_out(prompt)

    def _encoders(self) -> Sequence[PromptEncoder]:
        return (self._encoder,)

    def _encode(self, prompt: Prompt) -> Item:
        return (self._encoder.encode(prompt),)

    @cached_property
    def _scorers(self) -> tuple[PrefixScorer, ...]:
        return (PrefixScorer(self._model, batch_tokens=self._options.batch_tokens, shared=self._shared),)

    def _requests(self, item: Item) -> tuple[LogitRequest, ...]:
        (encoding,) = item
        columns = [self._head.label] if self._head.against is None else [self._head.label, self._head.against]
        pad_id = _declared_pad(self._model.config.get_text_config())
        return (LogitRequest(encoding.ids, [_pooled(encoding.ids, pad_id)] * len(columns), columns),)

    def _score(self, values: tuple[tuple[float, ...], ...]) -> float:
        ((score, *against),) = values
        return score - sum(against)

    def _score_items(self, items: list[Item]) -> Iterator[Scored]:
        (scorer,) = self._scorers
        if self._shared and scorer.note is None:
            yield from super()._score_items(items)
            return
        lengths = [len(encoding.ids) for (encoding,) in items]
        most = fitting_tokens(self._options.batch_tokens, input_device(self._model))
        for scored in score_all(items, self._forward, most):
            self._plain_effort += self._effort_of(lengths[scored.position], scored)
            yield scored

    def _effort_of(self, tokens: int, scored: Scored) -> Effort:
        """Return the effort of a prompt run in full; decoders have a head `score`, all others see both ways."""
        if scored.score is None:
            return Effort(tokens, seconds=scored.latency_ms / 1000)
        keys = causal_keys(0, tokens) if hasattr(self._model, "score") else tokens**2
        arithmetic = self._scorers[0].arithmetic
        flops = 0 if arithmetic is None else arithmetic.flops(tokens, keys, rows=1)
        return Effort(tokens, tokens, flops, scored.latency_ms / 1000)

    def _forward(self, batch: list[Item]) -> list[float]:
        encodings = [encoding for (encoding,) in batch]
        config = self._model.config.get_text_config()
        if (declared := _declared_pad(config)) is not None:
            return self._scores(encodings, declared)
        # Decoders find the last token by comparing ids with the pad id. A model that declares none is read at its very
        # last token, so the pad must be an id that no conversation here contains; EOS, the usual choice, often is one.
        config.pad_token_id = _absent_id(encodings, config.vocab_size)
        if config.pad_token_id is None and len(batch) > 1:
            return [score for item in batch for score in self._forward([item])]
        try:
            return self._scores(encodings, config.pad_token_id or 0)
        finally:
            config.pad_token_id = None

    def _scores(self, encodings: Sequence[Encoding], pad_id: int) -> list[float]:
        ids, mask, types = pad(encodings, pad_id, input_device(self._model))
        extra = {} if types is None else {"token_type_ids": types}
        return self._head.scores(self._model(input_ids=ids, attention_mask=mask, **extra).logits)


def _split(rest: str) -> tuple[str, dict[str, str]]:
    name, mark, fragment = rest.rpartition("#")
    if not mark or Path(rest).expanduser().is_dir():
        return rest, {}
    fields = dict(part.partition("=")[::2] for part in fragment.split(","))
    for key, value in fields.items():
        if key not in ("label", "read") or not value:
            raise AddressError(
                f"hf:{rest}: cannot read {'#' + fragment!r}", hint="write #label=3, #label=NAME or #read=WAY"
            )
    if (way := fields.get("read")) is not None and way not in WAYS:
        raise AddressError(f"hf:{rest}: unknown way of reading {way!r}", hint=did_you_mean(way, WAYS))
    if "label" in fields and fields.get("read", "logits") != "logits":
        raise AddressError(f"hf:{rest}: a label is a column of logits", hint="leave one of the two out")
    return name, fields


def _declared_pad(config: Any) -> int | None:
    pad_id = getattr(config, "pad_token_id", None)
    return pad_id if pad_id is not None and 0 <= pad_id < config.vocab_size else None


def _pooled(ids: Sequence[int], pad_id: int | None) -> int:
    """The token that the model itself would read: the last one, or the last that is not its declared pad.

    Example:
        >>> _pooled([7, 8, 2], pad_id=2), _pooled([7, 8, 2], pad_id=None)
        (1, 2)
    """
    return next((place for place in reversed(range(len(ids))) if ids[place] != pad_id), 0)


def _absent_id(encodings: Sequence[Encoding], vocabulary: int) -> int | None:
    """The smallest token id that occurs in none of the encodings; None where all of them occur.

    Example:
        >>> from array import array
        >>> _absent_id([Encoding(array("i", [0, 3])), Encoding(array("i", [1]))], vocabulary=4)
        2
    """
    present = set().union(*(encoding.ids for encoding in encodings))
    return next((candidate for candidate in range(vocabulary) if candidate not in present), None)
