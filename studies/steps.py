"""What the downstream studies have in common: every step is a `prbench` command, printed, and its tables are kept."""

import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def prbench(*words: object, keep: Path | None = None) -> None:
    """One command, as a user would type it; what it prints is kept in a file where one is named."""
    command = ["prbench", *map(str, words), *(["--format", "md"] if keep else [])]
    print("$", shlex.join(command), flush=True)
    told = subprocess.run(  # noqa: S603
        [sys.executable, "-m", *command], cwd=ROOT, check=True, stdout=subprocess.PIPE if keep else None, text=True
    )
    if keep:
        (ROOT / keep).parent.mkdir(parents=True, exist_ok=True)
        kept = "\n".join(line for line in told.stdout.splitlines() if not line.startswith("written: "))
        (ROOT / keep).write_text(f"`{shlex.join(command)}`\n\n{kept}", "utf-8")


def slug(address: str) -> str:
    """The name of a folder for a model's runs."""
    return address.replace("/", "_").replace(":", "_").replace("#", "_")
