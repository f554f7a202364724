"""`make demo`: the main job on the embedded suite, with a real language model, in minutes on two cores.

Reads like a recipe. First a small rater without weights (`echo.py`) and the reference model that ships with the package
on the whole test split; then SmolLM2, fetched from the package index, on a sample of it. All are shown no profile, the
user's own, another user's, the opposite user's and the true rubric. Every number is recomputed from the records, and
all three models end in one page. A second call finds everything done.
"""

import os
import subprocess
import sys
import webbrowser
from pathlib import Path

ROOT = Path(__file__).parent.parent
CONTEXTS = "none,profile,other,opposite,oracle"
RUNS = ("runs/demo", "runs/demo-reference", "runs/demo-lm")
PAGE = ROOT / "runs" / "demo-report.html"
SAMPLE = "16"
"""Pairs for the language model: whole couples, all categories; about 40,000 tokens to compute."""


def prbench(*arguments: str) -> None:
    """Run a command as a user would type it."""
    print(f"\n$ .venv/bin/prbench {' '.join(arguments)}\n", flush=True)
    subprocess.run([sys.executable, "-m", "prbench", *arguments], cwd=ROOT, check=True)


def demo() -> None:
    """Evaluate three models, verify their numbers, and put them on one page."""
    prbench("run", "--model", "py:examples.echo:score", "--context", CONTEXTS, "--by", "family", "-o", "runs/demo")
    prbench("models", "pull", "minilm")
    prbench(
        "run", "--model", "personal:reference", "--context", CONTEXTS, "--by", "unseen", "-o", "runs/demo-reference"
    )
    prbench("models", "pull", "smollm2")
    prbench(
        "run", "--model", "lm:smollm2#pmi", "--limit", SAMPLE, "--context", "none,profile,other", "-o", "runs/demo-lm"
    )
    for folder in RUNS:
        prbench("verify", folder)
    prbench("report", *RUNS, "-o", str(PAGE))
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or sys.platform in ("darwin", "win32"):
        webbrowser.open(PAGE.resolve().as_uri())
    print(f"\nThe three models side by side, and every pair to open: {PAGE}")


if __name__ == "__main__":
    try:
        demo()
    except KeyboardInterrupt:
        sys.exit("\nstopped; `make demo` goes on from here")
    except subprocess.CalledProcessError as error:  # its own message stands above
        sys.exit(error.returncode)
