"""Tables from the hub, through the `datasets` library, pinned to a commit.

Imported only when a hub dataset is asked for. The commit is resolved first and then loaded, so that the revision in the
record is the one that was read; where the hub cannot say, the record holds what was asked for.
"""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from prbench.data.hub_tables import WHOLE
from prbench.data.rows import Place, SourceRow
from prbench.errors import DataError, MissingExtraError

_TIMEOUT_S = 10.0


class HubTables:
    """Tables of one dataset repository.

    Args:
        suite: The name under which the user asked, for messages.
        repo: Repository id, or a local folder in the hub's layout.
        split: Load only this split; None loads all.
        revision: Branch, tag or commit; None is the newest.
    """

    def __init__(self, suite: str, repo: str, *, split: str | None = None, revision: str | None = None) -> None:
        self._suite = suite
        self._repo = repo
        self._split = split
        self._asked = revision

    @cached_property
    def revision(self) -> str:
        """The commit that is read, where the hub can be asked; else what the user asked for."""
        if Path(self._repo).is_dir():
            return self._asked or ""
        try:
            from huggingface_hub import HfApi
        except ImportError as error:
            raise MissingExtraError(self._suite, "hub") from error
        try:
            info = HfApi().dataset_info(self._repo, revision=self._asked, timeout=_TIMEOUT_S)
        except Exception:  # any failure to ask, of whatever class this version has for it, leaves the asked revision
            return self._asked or ""
        return info.sha or self._asked or ""

    def rows(self, table: str) -> Iterator[SourceRow]:
        """All rows of a config, split after split."""
        for split, dataset in self._load(table).items():
            where = " ".join(part for part in (self._repo, table, split) if part)
            for number, values in enumerate(dataset, start=1):
                yield SourceRow(values, Place(where, "row", number), split)

    def _load(self, table: str) -> dict[str, Any]:
        try:
            from datasets import load_dataset
        except ImportError as error:
            raise MissingExtraError(self._suite, "hub") from error
        revision = self.revision or None
        try:
            loaded = load_dataset(self._repo, None if table == WHOLE else table, split=self._split, revision=revision)
        except Exception as error:  # hub, network and gate failures share no base class across versions
            raise DataError(
                f"{self._suite!r} cannot be loaded from {self._repo} {table}".rstrip()
                + f": {type(error).__name__}: {error}",
                hint=f"download a copy and pass {self._suite}=DIR; gated datasets need an accepted licence and a login",
            ) from error
        return {self._split: loaded} if self._split is not None else dict(loaded)
