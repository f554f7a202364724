"""`stances:tfidf`, `stances:lm:PATH`, each with `#passages`: a stance probe as judge of the embedded suite.

An answer's grade on an axis of the user's rubric is twice the probability that it takes the pole the user wants. The
probe is trained here, on the training answers alone or on them and the stance passages that ship with the package. An
axis without training answers, and an answer that the probe was trained on, are refused: invalid, never a number.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from prbench.config import ModelOptions, digest
from prbench.data import Suite
from prbench.data.portion import RESERVED, reserved_pairs, reserved_passages
from prbench.errors import AddressError, ConfigError
from prbench.graders.protocol import HIGHEST, Grade, Grading
from prbench.graders.stance_probe import Features, StanceExample, StanceProbe, answer_examples, passage_examples
from prbench.models import ModelCard, load_encoder
from prbench.models.ngrams import NGrams
from prbench.models.personal.features import FeatureStore, encoder_revision
from prbench.types import Pair, read_stances

PASSAGES = "#passages"
_CHUNK = 256


class StanceJudge:
    """Grades by the stances that answers take.

    Args:
        address: As the user wrote it.
        examples: What the probe is trained on.
        features: How the probe reads a text.
        training: Suite and split that the examples are of, as far as known, and the share of it where it is reserved.
    """

    def __init__(
        self, address: str, examples: Sequence[StanceExample], features: Features, training: Mapping[str, Any]
    ) -> None:
        self._address = address
        self._training = training
        self._examples = examples
        self._learnt = {example.text for example in examples}
        self.probe = StanceProbe(examples, features)

    @classmethod
    def load(cls, rest: str, options: ModelOptions, training: Sequence[Pair], reserve: float = 0.0) -> "StanceJudge":
        """Train the probe behind `stances:REST`, on all of the material or on the share that models have left to it."""
        address = f"stances:{rest}"
        encoder, with_passages = rest.removesuffix(PASSAGES), rest.endswith(PASSAGES)
        if encoder != "tfidf" and ":" not in encoder:
            raise AddressError(
                f"{address!r} names no encoder", hint="stances:tfidf, or stances:ENCODER such as stances:lm:FILE.gguf"
            )
        examples = answer_examples(reserved_pairs(training, reserve) if reserve else training)
        if not examples:
            raise ConfigError(
                f"judge {address!r} has no labelled answers to be trained on",
                hint="it judges suites whose training pairs have the tags `axis` and `pole`, as `mirror` has",
            )
        if with_passages:
            from prbench.data import load_passages

            passages = reserved_passages(load_passages(), reserve) if reserve else load_passages()
            examples += passage_examples(passages, {example.axis for example in examples})
        source = _source(training) | ({"reserve": reserve, "reserved": RESERVED} if reserve else {})
        return cls(address, examples, _features(encoder, options, examples), source)

    @cached_property
    def card(self) -> ModelCard:
        """Description of the judge, with everything the probe was trained on."""
        features = self.probe.features
        return ModelCard(
            address=self._address,
            parameters={
                "encoder": features.name,
                "encoder_revision": features.revision,
                "training": {**self._training, "digest": digest(list(map(list, self._examples)))[:16]},
                "examples": len(self._examples),
                "axes": sorted(self.probe.axes),
            },
        )

    def refuses(self, grading: Grading) -> str | None:
        """An axis that it was not trained on, an answer that it was trained on, a rubric without axes, no answer."""
        wanted = read_stances(grading.tags)
        if not wanted:
            return "the rubric names no axis: a stance probe cannot grade it"
        for axis, pole in wanted.items():
            if pole not in self.probe.axes.get(axis, ()):
                return f"no training answers at pole {pole!r} of axis {axis!r}"
        if grading.answer in self._learnt:
            return "the probe was trained on this answer"
        return None if grading.answer.strip() else "the answer is empty"

    def forecast(self, gradings: Sequence[Grading]) -> int:
        """About how many tokens the encoder reads; each distinct answer once."""
        return sum(self.probe.features.size(text) for text in {grading.answer for grading in gradings})

    def grade(self, gradings: Sequence[Grading]) -> Iterator[tuple[int, Grade]]:
        """Grade each, one number for each axis."""
        for start in range(0, len(gradings), _CHUNK):
            places = range(start, min(start + _CHUNK, len(gradings)))
            began = time.perf_counter()
            grades = self._grade({place: gradings[place] for place in places})
            share_ms = (time.perf_counter() - began) * 1000 / len(places)
            for place in places:
                yield place, grades[place].model_copy(update={"latency_ms": share_ms})

    def _grade(self, gradings: dict[int, Grading]) -> dict[int, Grade]:
        refused = {place: self.refuses(grading) for place, grading in gradings.items()}
        grades = {place: Grade.invalid(reason) for place, reason in refused.items() if reason is not None}
        for place, grading in gradings.items():
            if place not in grades:
                shares = [
                    float(self.probe.shares(axis, pole, [grading.answer])[0])
                    for axis, pole in read_stances(grading.tags).items()
                ]
                grades[place] = Grade.given(
                    [HIGHEST * share for share in shares], tokens_in=self.probe.features.size(grading.answer)
                )
        return grades


def _source(training: Sequence[Pair]) -> dict[str, Any]:
    """Return suite and split, in the words of a trained reward model's card; a plain list has no suite."""
    suite = training.record.name if isinstance(training, Suite) else ""
    return {"suite": suite, "split": "+".join(sorted({pair.tags.get("split", "") for pair in training}))}


def _features(encoder: str, options: ModelOptions, examples: Sequence[StanceExample]) -> Features:
    texts = [example.text for example in examples]
    if encoder == "tfidf":
        return NGrams(texts)

    return Hidden(encoder, options, texts)


_TOKENS_PER_WORD = 1.4


class Hidden:
    """Vectors of an encoder, each dimension with the mean 0 and the spread 1 over the texts of the training.

    Args:
        address: Of the encoder: `lm:…`, `hf:…`, `embed:…`.
        options: Device and precision.
        texts: What centre and spread are taken from.
    """

    def __init__(self, address: str, options: ModelOptions, texts: Iterable[str]) -> None:
        self._encoder = FeatureStore(load_encoder(address, options))
        vectors = np.asarray(self._encoder.encode(list(dict.fromkeys(texts))), dtype=np.float64)
        self._centre = vectors.mean(axis=0)
        self._spread = np.maximum(vectors.std(axis=0), 1e-9) * np.sqrt(vectors.shape[1])
        self.name = address

    @property
    def revision(self) -> str:
        """Revision of the encoder's weights."""
        return encoder_revision(self._encoder.encoder)

    def rows(self, texts: Sequence[str]) -> Any:
        """One row per text, of a length near 1."""
        vectors = np.asarray(self._encoder.encode(list(texts)), dtype=np.float64)
        return (vectors - self._centre) / self._spread

    def size(self, text: str) -> int:
        """About how many tokens of a text the encoder reads."""
        return round(_TOKENS_PER_WORD * len(text.split()))
