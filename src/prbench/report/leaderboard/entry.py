"""One run on a leaderboard: who answered, what kind of model it is, and how to make the run again."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from prbench.errors import ConfigError
from prbench.files import check_model, read_toml, slug
from prbench.models import BASELINES
from prbench.report.command import reproduction
from prbench.report.finished import Finished
from prbench.results import Result, RunFolder
from prbench.types import Frozen
from prbench.web import is_loopback

Kind = Literal["rater", "comparer", "baseline", "personal"]
Weights = Literal["open", "closed", "not known"]
NAMES = "models.toml"

_OPEN = frozenset({"hf", "lm", "embed", "dpo", "personal"})


class Named(Frozen):
    """Facts that `models.toml` may give of a model, by its address: what an address cannot tell."""

    name: str | None = None
    weights: Weights | None = None


class BoardEntry(NamedTuple):
    """A verified run as the site shows it."""

    run: Finished
    slug: str
    """Name of its folder in the site."""
    name: str
    kind: Kind
    weights: Weights
    command: str
    digest: str
    """Digest of everything that can change an answer."""

    @property
    def result(self) -> Result:
        """Result of the run."""
        return self.run.result


def read_names(folder: Path) -> dict[str, Named]:
    """Read `models.toml` of a results folder, where there is one."""
    path = folder / NAMES
    if not path.exists():
        return {}
    hint = 'a table for each address: ["hf:org/rm"], then name = "…", weights = "open", "closed" or "not known"'
    return {
        address: check_model(about, Named, f"{path}, table {address!r}", raises=ConfigError, hint=hint)
        for address, about in read_toml(path, raises=ConfigError, hint=hint).items()
    }


def make_entry(run: Finished, names: Mapping[str, Named]) -> BoardEntry:
    """Return the board's entry of a run."""
    address = run.loaded.facts.card.address
    known = names.get(address, Named())
    digest = str(RunFolder(run.loaded.path).read_config().get("digest", ""))
    return BoardEntry(
        run=run,
        slug=f"{slug(address, mark='-')[:60] or 'run'}-{digest[:8]}",
        digest=digest,
        name=known.name or address,
        kind=_kind(run),
        weights=known.weights or weights_of(address),
        command=reproduction(run.loaded.config),
    )


def weights_of(address: str) -> Weights:
    """Whether a model can be had, as far as its address tells.

    Example:
        >>> weights_of("hf:org/rm"), weights_of("chat:m@https://host/v1"), weights_of("chat:m@http://localhost:8000/v1")
        ('open', 'closed', 'not known')
    """
    scheme = address.partition(":")[0]
    if scheme in _OPEN or address in BASELINES:
        return "open"
    if scheme in ("chat", "http") and not is_loopback(urlsplit(f"//{address.partition('://')[2]}").hostname or ""):
        return "closed"
    return "not known"


def _kind(run: Finished) -> Kind:
    address = run.loaded.facts.card.address
    if address in BASELINES:
        return "baseline"
    if address.startswith("personal:"):
        return "personal"
    return "rater" if set(run.records.column("order")) <= {"rated"} else "comparer"
