"""Report of what is installed, what is missing and where things are kept; asks no network."""

import importlib.util
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from prbench._version import __version__
from prbench.config import cache_folder
from prbench.errors import EXTRAS, install_hint


def examine() -> list[list[str]]:
    """Rows of (what, state, way out)."""
    return [
        ["prbench", __version__, ""],
        ["python", platform.python_version(), ""],
        ["machine", f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}", ""],
        *(_extra(name, packages) for name, packages in EXTRAS.items()),
        _device(),
        _cache(cache_folder()),
        _key(),
    ]


def _extra(name: str, packages: tuple[str, ...]) -> list[str]:
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing:
        return [f"extra {name!r}", f"missing: {', '.join(missing)}", install_hint(name)]
    return [f"extra {name!r}", ", ".join(f"{package} {_version(package)}" for package in packages), ""]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "?"


def _device() -> list[str]:
    if importlib.util.find_spec("torch") is None:
        return ["device", "no torch", ""]
    from prbench.models.local.checkpoint import pick_device

    return ["device", pick_device("auto"), ""]


def _cache(folder: Path) -> list[str]:
    probe = folder if folder.is_dir() else next(parent for parent in folder.parents if parent.is_dir())
    if not os.access(probe, os.W_OK):
        return ["cache", f"{folder} cannot be written", "set PRBENCH_CACHE to a folder that can"]
    calls = folder / "calls.sqlite"
    size = f", {calls.stat().st_size / 1e6:.1f} MB of calls" if calls.is_file() else ", empty"
    return ["cache", f"{folder}{size}", ""]


def _key() -> list[str]:
    state = "set" if os.environ.get("OPENAI_API_KEY") else "not set"
    return ["OPENAI_API_KEY", state, "" if state == "set" else "only needed for chat: endpoints that ask for a key"]
