"""Code that a checkpoint brings along: found before anything is loaded, run only on request, at one revision.

A checkpoint needs code of its own where its config names a class that transformers does not have. Without
`--trust-remote-code` such a checkpoint is refused. With it, the code is named on standard error, pinned (a hub
repository to its commit, a folder to a hash over its `.py` files) and written into the model's card, and so into every
call's key. Code in a repository other than the checkpoint's own is never run.
"""

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from prbench.errors import ModelError
from prbench.files import checksum

OPTION = "--trust-remote-code"
_named: set[tuple[str, str]] = set()


@dataclass(frozen=True)
class OwnCode:
    """Code that computes a checkpoint."""

    repository: str
    """A hub name or a folder."""
    revision: str
    """The hub commit, or a hash over the folder's `.py` files."""
    classes: Mapping[str, str]
    """Name `module.Class` of the class that stands in for each Auto class."""

    @cached_property
    def commit(self) -> str | None:
        """The commit to load everything at; None for a folder."""
        return None if Path(self.repository).is_dir() else self.revision

    @property
    def allowed(self) -> dict[str, Any]:
        """Return the arguments that let transformers run this code and no other."""
        return {"trust_remote_code": True, "code_revision": self.commit}

    @property
    def record(self) -> dict[str, Any]:
        """Return what the model's card says of the code."""
        return {"repository": self.repository, "revision": self.revision, "classes": dict(self.classes)}

    def check_unchanged(self, address: str) -> None:
        """Refuse code that was edited since it was named."""
        if self.commit is None and hash_code(Path(self.repository)) != self.revision:
            raise ModelError(
                f"{address}: the code in {self.repository!r} was changed after it was opened", hint="run it again"
            )


def find_code(source: str, revision: str | None, address: str, *, trust: bool) -> OwnCode | None:
    """The code that a checkpoint cannot do without; None where transformers has all it needs."""
    from transformers import PretrainedConfig
    from transformers.models.auto.tokenization_auto import get_tokenizer_config

    config, _ = PretrainedConfig.get_config_dict(source, revision=revision)
    words = get_tokenizer_config(source, revision=revision)
    classes = {**_auto_map(words), **_auto_map(config)}
    if not classes or not (_is_missing(config) or _is_missing_tokenizer(words)):
        return None
    folder = Path(source)
    commit = hash_code(folder) if folder.is_dir() else str(config.get("_commit_hash") or revision or "")
    code = OwnCode(source, commit, classes)
    if not trust:
        raise ModelError(
            f"{address}: the checkpoint is computed by code of its own ({_listed(classes)} in {source} at revision "
            f"{commit[:12]}), which is not run unasked",
            hint=f"read that code; {OPTION} runs it, at exactly this revision",
        )
    _refuse_other_repositories(code, address)
    if (source, commit) not in _named:
        _named.add((source, commit))
        print(f"note: {address} runs code of {source} at {commit[:12]}: {_listed(classes)}", file=sys.stderr)
    return code


def hash_code(folder: Path) -> str:
    """A hash over the names and contents of a folder's `.py` files.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as name:
        ...     _ = Path(name, "model.py").write_text("x = 1")
        ...     before = hash_code(Path(name))
        ...     _ = Path(name, "model.py").write_text("x = 2")
        ...     before == hash_code(Path(name))
        False
    """
    total = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        total.update(f"{file.relative_to(folder)}\0{checksum(file, raises=ModelError)}\n".encode())
    return total.hexdigest()


def _auto_map(config: Mapping[str, Any]) -> dict[str, str]:
    found = config.get("auto_map") or {}
    if isinstance(found, list | tuple):  # the tokenizer's own, slow and fast
        found = {"AutoTokenizer": found}
    listed = {
        name: next((each for each in value if each), "") if isinstance(value, list | tuple) else str(value)
        for name, value in found.items()
    }
    return {name: value for name, value in listed.items() if value}


def _is_missing(config: Mapping[str, Any]) -> bool:
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    kinds = config.get("architectures") or []
    return config.get("model_type") not in CONFIG_MAPPING or not all(hasattr(transformers, kind) for kind in kinds)


def _is_missing_tokenizer(words: Mapping[str, Any]) -> bool:
    import transformers

    return bool(_auto_map(words)) and not hasattr(transformers, str(words.get("tokenizer_class", "")))


def _refuse_other_repositories(code: OwnCode, address: str) -> None:
    for reference in code.classes.values():
        repository, mark, _ = reference.rpartition("--")
        if mark and repository != code.repository:
            raise ModelError(
                f"{address}: its config asks for code of another repository, {repository}, which is not run",
                hint="download both, put the code's files beside the weights, shorten auto_map to MODULE.CLASS "
                "and name that folder",
            )


def _listed(classes: Mapping[str, str]) -> str:
    return ", ".join(dict.fromkeys(reference.rpartition("--")[2] for reference in classes.values()))
