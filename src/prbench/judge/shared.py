"""What a judge has in common with a reward model that it is to rank: it must be nothing."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from prbench.models import ModelCard

_WEIGHTS = ("revision", "encoder_revision", "base_revision")


def shares(judge: ModelCard, model: ModelCard) -> str | None:
    """Name what judge and ranked model share (an address, an encoder, weights), or None.

    Modes, heads and revisions in an address do not make it another model: `lm:a#rate` shares with `stances:lm:a`.

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


def _names(card: ModelCard) -> Iterator[str]:
    """Names of all models behind a card, without scheme, mode and head; paths made absolute."""
    for address in (card.address, card.parameters.get("encoder"), card.parameters.get("base")):
        if isinstance(address, str) and ":" in address:
            scheme, _, rest = address.partition(":")
            if scheme == "stances":
                scheme, _, rest = rest.partition(":")
            parts = rest.split(",") if scheme == "dpo" else [rest]
            yield from (_bare(part) for part in parts if part)


def _bare(name: str) -> str:
    name = name.partition("#")[0]
    path = Path(name).expanduser()
    return str(path.resolve()) if path.exists() else name


def _own_encoder(card: ModelCard) -> bool:
    """Whether a model carries an encoder that was tuned for it."""
    return str(card.parameters.get("encoder", "")).partition("#")[0] == "encoder"


def _revisions(card: ModelCard) -> Iterator[str]:
    found: Mapping[str, object] = {"revision": card.revision, **card.parameters}
    for name in _WEIGHTS:
        value = found.get(name)
        if isinstance(value, str) and value:
            yield value
