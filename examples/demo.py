"""`make demo`: the main job on the embedded suite, in seconds, with nothing to download.

Reads like a recipe: evaluate a small personal reward model (`echo.py`) with no profile, the user's own, another
user's, the opposite user's and the true rubric; print the table; recompute every number from the records.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def prbench(*arguments: str) -> None:
    """Run a command as a user would type it."""
    print(f"\n$ .venv/bin/prbench {' '.join(arguments)}\n", flush=True)
    subprocess.run([sys.executable, "-m", "prbench", *arguments], cwd=ROOT, check=True)


if __name__ == "__main__":
    run = Path("runs") / "demo"
    contexts = "none,profile,other,opposite,oracle"
    prbench("run", "--model", "py:examples.echo:score", "--context", contexts, "--by", "family", "-o", str(run))
    prbench("verify", str(run))
