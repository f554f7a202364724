"""Weights and training data that a judge shares with a reward model that it is to rank.

Weights must not be shared at all. The training split may be, since a stance probe and the reward models of the embedded
suite have no other one to learn from; who shares it is told with every result.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from prbench.models import ModelCard

_WEIGHTS = ("revision", "encoder_revision", "base_revision")
_ADDRESSES = ("encoder", "base", "model")
"""Parameters of a card that name another model."""


def shares(judge: ModelCard, model: ModelCard) -> str | None:
    """Name what judge and ranked model share (an address, an encoder, weights), or None.

    Modes, heads, revisions and servers in an address do not make it another model: `lm:a#rate` shares with
    `stances:lm:a`, and `chat:org/a@URL` with `hf:org/a@main`.

    Example:
        >>> judge = ModelCard(address="stances:lm:smollm2", parameters={"encoder": "lm:smollm2"})
        >>> shares(judge, ModelCard(address="lm:smollm2#compare"))
        "the model 'smollm2'"
        >>> shares(judge, ModelCard(address="longer")) is None
        True
    """
    if judge.address == model.address:
        return f"the address {judge.address!r}"
    if common := sorted(set(_names(judge)) & set(_names(model))):
        return f"the model {common[0]!r}"
    if common := sorted(set(_revisions(judge)) & set(_revisions(model))):
        return f"weights of revision {common[0][:12]!r}"
    if _own_encoder(model) and judge.address.startswith("stances:embed:"):
        return f"perhaps the encoder that {model.address!r} was tuned from"  # its card does not say which that was
    return None


def shares_training(judge: ModelCard, model: ModelCard) -> str | None:
    """Name the split that both judge and model were trained on, as far as their cards tell; or None.

    Example:
        >>> judge = ModelCard(address="stances:tfidf", parameters={"training": {"suite": "mirror", "split": "train"}})
        >>> trained = {"suite": "mirror+generic", "split": "train", "pairs": 5534}
        >>> shares_training(judge, ModelCard(address="personal:reference", parameters={"training": trained}))
        "split 'train' of 'mirror'"
        >>> reserved = {"suite": "mirror", "split": "train", "reserve": 0.25, "reserved": "situations"}
        >>> trained["portion"] = {"reserve": 0.25, "reserved": "situations"}
        >>> judge = ModelCard(address="stances:tfidf", parameters={"training": reserved})
        >>> shares_training(judge, ModelCard(address="personal:a", parameters={"training": trained})) is None
        True
    """
    ours, theirs = (card.parameters.get("training") for card in (judge, model))
    if not isinstance(ours, Mapping) or not isinstance(theirs, Mapping) or ours.get("split") != theirs.get("split"):
        return None
    if _left_alone(ours, theirs):
        return None
    common = sorted(_suites(ours) & _suites(theirs))
    return f"split {ours.get('split')!r} of {common[0]!r}" if common else None


def _left_alone(judge: Mapping[str, Any], model: Mapping[str, Any]) -> bool:
    """Whether the judge learned only from a share that the model has left to judges; a smaller one lies within."""
    own, portion = judge.get("reserve"), model.get("portion")
    if not own or not isinstance(portion, Mapping) or portion.get("reserved") != judge.get("reserved"):
        return False
    return float(portion.get("reserve", 0.0)) >= float(own)


def _suites(training: Mapping[str, Any]) -> set[str]:
    """The suites of a training, files by their name alone: a suite of a file is called so."""
    return {Path(part).name for part in str(training.get("suite", "")).split("+")} - {""}


def _names(card: ModelCard) -> Iterator[str]:
    """Names of all models behind a card, without scheme, mode, head, revision and server; paths made absolute."""
    for address in (card.address, *(card.parameters.get(name) for name in _ADDRESSES)):
        if isinstance(address, str):
            yield from _models(address)


def _models(address: str) -> Iterator[str]:
    """The names behind one address.

    Example:
        >>> [*_models("stances:lm:a#passages"), *_models("dpo:org/a@main,org/b"), *_models("http:vllm:c@http://d:1")]
        ['a', 'org/a', 'org/b', 'c']
        >>> list(_models("http:http://127.0.0.1:8000"))  # the server's card says whom it serves
        []
    """
    scheme, mark, rest = address.partition(":")
    if scheme == "stances" or address.startswith("http:vllm:"):
        yield from _models(rest if ":" in rest else "")
    elif not address.startswith("http:"):
        parts = rest.split(",") if scheme == "dpo" else [rest if mark else address]
        yield from (_bare(part) for part in parts if part)


def _bare(name: str) -> str:
    name = name.partition("#")[0]
    path = Path(name).expanduser()
    return str(path.resolve()) if path.exists() else name.partition("@")[0] or name


def _own_encoder(card: ModelCard) -> bool:
    """Whether a model carries an encoder that was tuned for it."""
    return str(card.parameters.get("encoder", "")).partition("#")[0] == "encoder"


def _revisions(card: ModelCard) -> Iterator[str]:
    found: Mapping[str, object] = {"revision": card.revision, **card.parameters}
    for name in _WEIGHTS:
        value = found.get(name)
        if isinstance(value, str) and value:
            yield value
