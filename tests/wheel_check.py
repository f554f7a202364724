"""`make wheel-check`: what a newcomer gets from the wheel alone, in a clean environment outside the repository.

Builds the wheel, installs it without extras, runs the README's commands that need neither network nor weights, and
checks that whatever needs an extra says so in the same words, without a traceback.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_MB = 480
"""What docs/install.md says of the size of a bare install, of which pip and setuptools are 24."""
WORKS = (
    "--version",
    "doctor",
    "suites",
    "models",
    "explain verdict",
    "explain accuracy",
    "prompt 1 --model py:examples.echo:score",
    "run --model longer --context none --limit 200 -o runs/longer",
    "run --model py:examples.echo:score --limit 200 --report -o runs/echo",
    "run --config runs/echo/config.toml -o runs/echo",
    "compare runs/longer runs/echo --context none",
    "verify runs/echo",
    "report runs/echo -o report.html",
    "export runs/echo --to csv -o echo.csv",
)
NEEDS = {
    "run --model hf:my-org/my-reward-model": "hf",
    "run --model lm:smollm2": "lm",
    "run --model personal:reference": "hf",
    "run --model chat:judge@http://127.0.0.1:9/v1": "api",
    "run --model longer --suite prb": "hub",
    "train bt -o model": "train",
    "serve --model longer": "serve",
    "annotate pairs.jsonl": "annotate",
}


def main() -> None:
    """Build, install, try."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        python = install(place)
        (place / "examples").mkdir()
        (place / "examples" / "echo.py").write_text((ROOT / "examples" / "echo.py").read_text())
        (place / "pairs.jsonl").write_text('{"question": "Tea?", "chosen": "Green.", "rejected": "Black."}\n')
        for line in WORKS:
            tried = prbench(python, place, line)
            if tried.returncode:
                sys.exit(f"prbench {line} exits with {tried.returncode}:\n{tried.stdout}{tried.stderr}")
        for line, extra in NEEDS.items():
            tried = prbench(python, place, line)
            if tried.returncode != 2 or "Traceback" in tried.stderr or f"[{extra}]'" not in tried.stderr:
                sys.exit(f"prbench {line} should name the extra {extra!r}:\n{tried.stdout}{tried.stderr}")
        run_readme(python, place)
        size = sum(file.stat().st_size for file in (place / "venv").rglob("*") if file.is_file()) / 1e6
        if size > MOST_MB:
            sys.exit(f"a bare install takes {size:.0f} MB, more than {MOST_MB}")
        tries = len(WORKS) + len(NEEDS)
        print(f"wheel-check: {tries} commands, {size:.0f} MB, {time.monotonic() - started:.0f} s")


def install(place: Path) -> Path:
    """Build the wheel and install it, without extras, in an environment of its own."""
    subprocess.run([sys.executable, "-m", "venv", place / "venv"], check=True)
    python = place / "venv" / "bin" / "python"
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", place / "dist", ROOT], check=True)
    (wheel,) = (place / "dist").glob("*.whl")
    subprocess.run([*pip, "install", "--constraint", ROOT / "constraints.txt", wheel], check=True)
    return python


def prbench(python: Path, place: Path, line: str) -> "subprocess.CompletedProcess[str]":
    """Run one command in the folder, with a cache of its own."""
    return run(python, place, "-m", "prbench", *line.split())


def run_readme(python: Path, place: Path) -> None:
    """Run the README's Python, from a bare install."""
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    tried = run(python, place, "-c", block)
    if tried.returncode:
        sys.exit(f"the README's Python fails:\n{tried.stderr}")


def run(python: Path, place: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run Python in the folder, with nothing of the repository on its path."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"PRBENCH_CACHE": str(place / "cache")}
    return subprocess.run(
        [python, *arguments], cwd=place, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


if __name__ == "__main__":
    main()
