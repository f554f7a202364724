"""Fetch what the browser tests need and pip cannot bring: Chromium by the system's package manager, axe-core by npm.

Run by `make test-browser`. Says loudly, and goes on without, only where the system has no package manager; a package
manager that fails is an error. With `--try`, as `make test` runs it, only Chromium is tried for, and only if nobody has
to be asked for a password. Nothing is committed: axe-core is unpacked into the virtual environment.
"""

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
AXE_VERSION = "4.14.0"
AXE_SHA512 = "9WTZxEjsZ7b13TH8JPmbV2z8CHbl80/2hm3XPEG4JgNdQLK81IBRXmSxHfMAOkSqQeRxT/0dwNDz2GOm3zzpcQ=="
AXE = Path(sys.prefix) / "axe-core" / AXE_VERSION / "axe.min.js"
MANAGERS = {
    "apt-get": (["update"], ["install", "-y", "--no-install-recommends"]),
    "dnf": (["install", "-y"],),
    "apk": (["add"],),
}


def main(trying: bool) -> None:
    """Bring both, or say what is missing."""
    if not any(map(shutil.which, CHROMIUM)) and not os.environ.get("CHROMIUM"):
        _install("chromium", "fonts-liberation", trying=trying)
    if trying or AXE.is_file():
        return
    if not shutil.which("npm"):
        _install("npm")
    if shutil.which("npm"):
        _fetch_axe()


def _install(*packages: str, trying: bool = False) -> None:
    manager = next(filter(shutil.which, MANAGERS), None)
    if manager is None:
        _say(f"{packages[0]} is missing and there is no package manager: NOT TESTED without it")
        return
    sudo = [] if os.geteuid() == 0 else ["sudo", "-n"] if trying else ["sudo"]
    *before, install = MANAGERS[manager]
    try:
        for arguments in (*before, [*install, *(packages if manager == "apt-get" else packages[:1])]):
            print("+", manager, *arguments, flush=True)
            subprocess.run([*sudo, manager, *arguments], check=True, stdout=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError):
        if not trying:
            raise
        _say(f"{packages[0]} could not be installed: NOT TESTED without it; `make test-browser` tries in earnest")


def _say(line: str) -> None:
    bar = "!" * 100
    print(f"{bar}\n{line}\n{bar}")


def _fetch_axe() -> None:
    """Fetch the package as npm is configured to, check it, keep the one file."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", f"axe-core@{AXE_VERSION}", "--pack-destination", folder, "--silent"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        (package,) = Path(folder).glob("*.tgz")
        found = base64.b64encode(hashlib.sha512(package.read_bytes()).digest()).decode()
        if found != AXE_SHA512:
            sys.exit(f"axe-core {AXE_VERSION} is not what it was: sha512 {found}")
        with tarfile.open(package) as archive:
            text = archive.extractfile("package/axe.min.js")
            AXE.parent.mkdir(parents=True, exist_ok=True)
            AXE.write_bytes(text.read() if text else b"")
    print(f"axe-core {AXE_VERSION} is in {AXE}")


if __name__ == "__main__":
    main(trying="--try" in sys.argv[1:])
