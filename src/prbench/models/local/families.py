"""Reward models that are no plain sequence classifiers, each asked as its authors ask it.

With code of their own (`--trust-remote-code`): a method `get_score(tokenizer, conversation)`; an output with a field
`score`, to which several objectives and a gate come; else `logits`. With both answers in one input: an encoder whose
one logit is its preference for the first. Process reward models score steps, not answers, and are refused.

Such code does not promise that padding changes nothing, so this is tried on two probes: where it holds, conversations
are run in batches, else one by one. Prefixes are not shared.
"""

import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, Literal, get_args

from prbench.config import ModelOptions
from prbench.errors import ModelError
from prbench.models.effort import Effort
from prbench.models.head import Head, read_head
from prbench.models.lists import pair_prompts, rank_by_comparisons, render_pairs
from prbench.models.local.batching import Item, Scored, longest, pad, score_all
from prbench.models.local.checkpoint import Checkpoint, translated
from prbench.models.local.encoding import Encoding, PromptEncoder
from prbench.models.local.placement import input_device, spread_note
from prbench.models.local.rater import LocalRater, chunks
from prbench.models.protocols import ModelCard
from prbench.prompts import Template, conversation
from prbench.types import AnswerView, ListView, Message, Outcome, PairView, Prompt, written_out

Way = Literal["get_score", "score", "logits", "pair", "letters", "yes-no"]
WAYS: tuple[str, ...] = get_args(Way)
"""Ways of reading a checkpoint's score: `#read=WAY`."""
_MARKERS = ("<|source|>", "<|candidate1|>", "<|candidate2|>")
"""The tokens that open question and answers in the input of a pair ranker (PairRM)."""
_PROBES = (
    AnswerView("What can I drink in the evening?", "Chamomile or warm milk: both are gentle and free of caffeine."),
    AnswerView("What can I drink in the evening?", "No."),
)
"""Conversations of different length, on which the way of running a model is tried."""
_PROCESS = re.compile(r"ProcessReward|TokenClassification|PRM")
_TOLERANCE = 1e-3
"""Largest distance of a score in a batch from the one alone, as a share of the largest."""


def refuse_process_rewards(checkpoint: Checkpoint) -> None:
    """Refuse a checkpoint that was saved as a scorer of steps."""
    kinds = getattr(checkpoint.config, "architectures", None) or []
    if found := [kind for kind in kinds if _PROCESS.search(kind)]:
        raise _process_model(checkpoint.address, f"was saved as {found[0]}")


def _process_model(address: str, why: str) -> ModelError:
    return ModelError(
        f"{address}: the checkpoint {why}: a process reward model scores the steps of a solution, and there is no one "
        f"score of an answer that its authors meant",
        hint="bring it as py:MODULE:ATTR with a rule of your own for joining steps",
    )


class OwnCodeRater(LocalRater):
    """A reward model that is computed by code of its own.

    Args:
        checkpoint: Checkpoint whose code may run.
        options: Device, precision, budget, template.
        way: How the score is read; None takes the first that the model has of `get_score`, `score`, `logits`.
        label: Which column of `logits` is the score, where there are several.
    """

    def __init__(
        self, checkpoint: Checkpoint, options: ModelOptions, *, way: str | None = None, label: str | None = None
    ) -> None:
        super().__init__(options, checkpoint.positions)
        self._checkpoint = checkpoint
        self._asked_way = way
        self._label = label
        self._encoder = PromptEncoder(checkpoint.tokenizer, checkpoint.address)

    @cached_property
    def card(self) -> ModelCard:
        """Description of the model, with everything that could change a score, the code included."""
        asked = [f"{key}={value}" for key, value in (("read", self._asked_way), ("label", self._label)) if value]
        return ModelCard(
            address=self._checkpoint.address + (f"#{','.join(asked)}" if asked else ""),
            revision=self._checkpoint.revision,
            reads=self._template.reads,
            parameters={
                "template": self._template.digest,
                "chat_template": self._encoder.chat_template_digest,
                "format": self._encoder.format,
                "read": self._asked_way or "own",
                "code": self._checkpoint.code.record if self._checkpoint.code else None,
                **self._precision,
                "window": self.window,
            },
            reusable=bool(self._checkpoint.revision),
        )

    def prepare(self) -> None:
        """Load the weights and find out how the score is read."""
        _ = self._in_batches

    def parameter_count(self) -> int:
        """Parameters of the model, from its config alone."""
        return self._checkpoint.parameter_count(load_as(self._checkpoint))

    def _encoders(self) -> Sequence[PromptEncoder]:
        return (self._encoder,)

    def _encode(self, prompt: Prompt) -> Item:
        return (self._encoder.encode(prompt)._replace(prompt=prompt),)

    def _networks(self) -> Sequence[Any]:
        return (self._model,)

    def _notes(self) -> Iterator[str]:
        yield f"the score is {self._described}; {how_run(self._in_batches)}"
        yield from super()._notes()

    @cached_property
    def _model(self) -> Any:
        return self._checkpoint.load_weights(load_as(self._checkpoint), self._options)

    @cached_property
    def _way(self) -> str:
        if self._asked_way is not None:
            return self._asked_way
        if hasattr(self._model, "get_score"):
            return "get_score"
        return "logits" if _field(self._output([self._probes[0]]), "score") is None else "score"

    @property
    def _described(self) -> str:
        return {"get_score": "the model's own get_score", "score": "the field score of its output"}.get(
            self._way, "read from its logits"
        )

    @cached_property
    def _probes(self) -> list[Item]:
        return [self._encode(self.render(view)) for view in _PROBES]

    @cached_property
    def _in_batches(self) -> bool:
        forward = self._many_own if self._way == "get_score" else self._forward
        if self._way == "get_score" and not hasattr(self._model, "get_scores"):
            return False
        return same_in_batches(self._probes, self._alone, forward)

    def _score_items(self, items: list[Item]) -> Iterator[Scored]:
        forward = self._many_own if self._way == "get_score" else self._forward
        for scored in score_all(items, forward if self._in_batches else self._each, self._options.batch_tokens):
            tokens = longest(items[scored.position])
            self._plain_effort += Effort(tokens, tokens, seconds=scored.latency_ms / 1000)
            yield scored

    def _each(self, batch: list[Item]) -> list[float]:
        return [self._alone(item) for item in batch]

    def _alone(self, item: Item) -> float:
        if self._way != "get_score":
            return self._forward([item])[0]
        with translated(self._checkpoint.address):
            found = self._model.get_score(self._checkpoint.tokenizer, _messages(item))
        return self._checked([found] if not _is_tensor(found) else found.flatten().tolist(), 1)[0]

    def _many_own(self, batch: list[Item]) -> list[float]:
        found = self._model.get_scores(self._checkpoint.tokenizer, [_messages(item) for item in batch])
        return self._checked(found.flatten().tolist() if _is_tensor(found) else list(found), len(batch))

    def _forward(self, batch: list[Item]) -> list[float]:
        output = self._output(batch)
        if self._way == "score":
            found = _field(output, "score")
            if found is None:
                raise self._no_field("score", output)
            return self._checked(found.float().flatten().tolist(), len(batch))
        logits = _field(output, "logits")
        if logits is None:
            raise self._no_field("logits", output)
        return self._column(logits, len(batch))

    def _column(self, logits: Any, rows: int) -> list[float]:
        if logits.dim() > 2:
            raise _process_model(self._checkpoint.address, f"gives logits of shape {tuple(logits.shape)}")
        logits = logits.reshape(rows, -1)
        if logits.shape[1] == 1 and self._label is None:
            return Head(0).scores(logits)
        if logits.shape[1] != self._checkpoint.config.num_labels:
            self._checkpoint.config.num_labels = int(logits.shape[1])
        return read_head(self._checkpoint.config, self._label, self._checkpoint.address).scores(logits)

    def _output(self, batch: list[Item]) -> Any:
        encodings = [encoding for (encoding,) in batch]
        return run_padded(self._model, encodings, self._checkpoint)

    def _checked(self, scores: Sequence[Any], count: int) -> list[float]:
        if len(scores) != count:
            raise _process_model(self._checkpoint.address, f"gives {len(scores)} scores for {count} conversations")
        return [float(score) for score in scores]

    def _no_field(self, name: str, output: Any) -> ModelError:
        fields = ", ".join(getattr(output, "keys", lambda: ["none that can be listed"])())
        return ModelError(
            f"{self._checkpoint.address}: the model's output has no {name!r} (it has: {fields})",
            hint=f"known ways: {', '.join(f'#read={way}' for way in WAYS)}; another can be brought as py:MODULE:ATTR",
        )


class PairClassifier:
    """A pair ranker: reads question and both answers in one input and gives one logit, above 0 for the first.

    Question and answers are tokenised apart, each opened by its own marker token, and joined, as PairRM reads them.
    """

    def __init__(self, checkpoint: Checkpoint, options: ModelOptions) -> None:
        self._checkpoint = checkpoint
        self._options = options
        self._template = Template.load(options.template, "turn", "turn.jinja")
        self._window = options.window or checkpoint.positions
        self._effort = Effort()
        words = checkpoint.tokenizer
        if lacking := [marker for marker in _MARKERS if len(words(marker, add_special_tokens=False)["input_ids"]) != 1]:
            raise ModelError(
                f"{checkpoint.address}: the tokenizer has no token {lacking[0]}, which opens a part of a pair",
                hint="#read=pair is for rankers in PairRM's layout; a language model that replies with a letter is "
                "#read=letters",
            )

    @cached_property
    def card(self) -> ModelCard:
        """Description of the model, with everything that could change a verdict."""
        code = self._checkpoint.code
        return ModelCard(
            address=f"{self._checkpoint.address}#read=pair",
            revision=self._checkpoint.revision,
            reads=self._template.reads,
            parameters={
                "template": self._template.digest,
                "read": "pair",
                "markers": list(_MARKERS),
                "dtype": self._options.dtype,
                "window": self._window,
                **({} if code is None else {"code": code.record}),
            },
            reusable=bool(self._checkpoint.revision),
        )

    @property
    def window(self) -> int | None:
        """The most tokens that question and both answers may have together."""
        return self._window

    @property
    def note(self) -> str | None:
        """Note that a user should know about how this model is run; loads the weights."""
        return "; ".join(filter(None, (how_run(self._in_batches), spread_note(self._model))))

    @property
    def effort(self) -> Effort:
        """Effort of comparing so far."""
        return self._effort

    @property
    def peak_flops(self) -> None:
        """Peak speed, not known: operations are not counted here."""
        return

    def render(self, view: PairView | ListView) -> Prompt:
        """Earlier turns, posts, plan and question as one text, and each answer as another; a list pair by pair."""
        if isinstance(view, ListView):
            return render_pairs(self, view)
        turn = written_out(conversation(self._template, view))
        return Prompt((Message("user", turn), Message("first", view.first), Message("second", view.second)))

    def length(self, prompt: Prompt) -> int:
        """Tokens that this prompt takes, special tokens included."""
        return max(len(self._encode(pair)[0].ids) for pair in pair_prompts(prompt))

    def prepare(self) -> None:
        """Load the weights and find out whether they can be run in batches."""
        _ = self._in_batches

    def parameter_count(self) -> int:
        """Parameters of the model, from its config alone."""
        return self._checkpoint.parameter_count(load_as(self._checkpoint))

    def compare(self, views: Sequence[PairView]) -> Iterator[tuple[int, Outcome]]:
        """Judge each view; the margin is the model's logit."""
        self.prepare()
        prompts = [self.render(view) for view in views]
        for chunk in chunks(prompts):
            yield from self._compare_chunk({index: self._encode(prompts[index]) for index in chunk})

    def rank(self, views: Sequence[ListView]) -> Iterator[tuple[int, Outcome]]:
        """Score the answers of each list by their mean margin over all others, both ways round."""
        return rank_by_comparisons(self, views)

    def _compare_chunk(self, items: dict[int, Item]) -> Iterator[tuple[int, Outcome]]:
        sizes = {index: longest(item) for index, item in items.items()}
        fitting = [index for index, size in sizes.items() if self._window is None or size <= self._window]
        for index in items.keys() - set(fitting):
            reason = f"prompt of {sizes[index]} tokens exceeds the window of {self._window}"
            yield index, Outcome.invalid(reason, tokens_in=sizes[index])
        forward = self._forward if self._in_batches else lambda batch: [self._forward([item])[0] for item in batch]
        for scored in score_all([items[index] for index in fitting], forward, self._options.batch_tokens):
            index = fitting[scored.position]
            self._effort += Effort(sizes[index], sizes[index], seconds=scored.latency_ms / 1000)
            yield index, _verdict(scored, sizes[index])

    def _encode(self, prompt: Prompt) -> Item:
        words = partial(self._checkpoint.tokenizer, truncation=False, verbose=False)
        texts = [marker + message.content for marker, message in zip(_MARKERS, prompt.messages, strict=True)]
        return (Encoding(array("i", [token for text in texts for token in words(text)["input_ids"]])),)

    @cached_property
    def _model(self) -> Any:
        return self._checkpoint.load_weights(load_as(self._checkpoint), self._options)

    @cached_property
    def _in_batches(self) -> bool:
        first, second = _PROBES
        texts = [(first.answer, second.answer), (second.answer, second.answer)]
        probes = [self._encode(self.render(PairView(first.question, *pair))) for pair in texts]
        return same_in_batches(probes, lambda item: self._forward([item])[0], self._forward)

    def _forward(self, batch: list[Item]) -> list[float]:
        logits = _field(run_padded(self._model, [encoding for (encoding,) in batch], self._checkpoint), "logits")
        if logits is None or logits.numel() != len(batch):
            shape = None if logits is None else tuple(logits.shape)
            raise ModelError(
                f"{self._checkpoint.address}: a pair ranker gives one logit for a pair, and this one gives {shape}",
                hint="leave #read=pair out where answers are scored one by one",
            )
        return [float(value) for value in logits.float().flatten().tolist()]


def load_as(checkpoint: Checkpoint) -> Any:
    """The Auto class that a checkpoint's own code stands in for; a sequence classifier where it says nothing."""
    import transformers

    classes = {} if checkpoint.code is None else checkpoint.code.classes
    kinds = ("AutoModelForSequenceClassification", "AutoModel", "AutoModelForCausalLM")
    return getattr(transformers, next((kind for kind in kinds if kind in classes), kinds[0]))


def run_padded(model: Any, encodings: Sequence[Encoding], checkpoint: Checkpoint) -> Any:
    """One pass over a batch, padded on the right with the model's own pad token where it has one."""
    import torch

    known = (getattr(checkpoint.config, "pad_token_id", None), checkpoint.tokenizer.pad_token_id)
    pad_id = next((value for value in known if value is not None and value >= 0), 0)
    ids, mask, _ = pad(encodings, pad_id, input_device(model))
    with torch.inference_mode(), translated(checkpoint.address):
        return model(input_ids=ids, attention_mask=mask)


def same_in_batches(
    probes: Sequence[Item], alone: Callable[[Item], float], together: Callable[[list[Item]], list[float]]
) -> bool:
    """Whether probes of different length get the same scores in one batch as alone, for all that code may raise."""
    single = [alone(item) for item in probes]
    try:
        batched = together(list(probes))
    except Exception:  # the model's own code may raise anything; alone it has just answered
        return False
    scale = max(1.0, *(abs(score) for score in single))
    return all(abs(one - other) <= _TOLERANCE * scale for one, other in zip(single, batched, strict=True))


def how_run(in_batches: bool) -> str:
    """Return why prefixes are not shared, in half a sentence."""
    way = "in plain batches" if in_batches else "one by one, because padding changes its scores"
    return f"prefixes are not shared, prompts are run in full, {way}"


def _verdict(scored: Scored, tokens: int) -> Outcome:
    if scored.score is None:
        return Outcome.failed(f"out of memory on a prompt of {tokens} tokens", tokens_in=tokens)
    verdict: Literal["first", "second", "tie"] = (
        "first" if scored.score > 0 else "second" if scored.score < 0 else "tie"
    )
    return Outcome.judged(verdict, scored.score, tokens_in=tokens, latency_ms=scored.latency_ms)


def _messages(item: Item) -> list[dict[str, str]]:
    (encoding,) = item
    return [] if encoding.prompt is None else [message._asdict() for message in encoding.prompt.messages]


def _field(output: Any, name: str) -> Any:
    found = getattr(output, name, None)
    return found if _is_tensor(found) else None


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "flatten") and hasattr(value, "tolist")
