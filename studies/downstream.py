"""The study of docs/studies/downstream.md: does the score on `mirror` predict best-of-N and PPO, better than rivals do?

    make downstream           # or: python studies/downstream.py [best-of-n] [benchmarks] [ppo] [correlate]

Every step is a `prbench` command, printed before it runs; each continues where it stopped, so the same command does the
rest. The models are those of `make personal`. Hours on two cores; `OMP_NUM_THREADS=1` and two of the steps side by side
use them best.
"""

import argparse
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECIPE = ROOT / "studies" / "downstream.toml"
BEST_OF_N, PPO, WORK = Path("runs/best-of-n"), Path("runs/ppo"), Path("runs/downstream")
RIVAL = WORK / "rival.jsonl"
JUDGE, SECOND_JUDGE = "stances:tfidf#passages", "stances:tfidf"
SLOW = "lm:"
SLOW_PAIRS = 600
"""Pairs on which a slow rater that reads posts is asked."""

TRAINED = {
    "personal:reference": 2,
    "personal:runs/personal/bt-generic": 2,
    "personal:runs/personal/user-bt": 1,
    "personal:runs/personal/lore-tuned": 1,
    "embed:minilm": 1,
    "longer": 1,
}
"""Reward models that a policy is trained with, and with how many seeds."""


def main() -> None:
    """Go through the steps named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"{', '.join(STEPS)}; default: all, in this order")
    steps = parser.parse_args().steps or list(STEPS)
    if unknown := [name for name in steps if name not in STEPS]:
        parser.error(f"no step {unknown[0]!r}; there are {', '.join(STEPS)}")
    for name in steps:
        STEPS[name]()


def prbench(*words: object) -> None:
    """One command, as a user would type it."""
    command = ["prbench", *map(str, words)]
    print("$", shlex.join(command), flush=True)
    subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=True)  # noqa: S603


def best_of_n() -> None:
    """Best of 16 under the judge fixed beforehand; then best of 4, and a second judge, over the same candidates."""
    for folder, words in {
        "best-of-4": ["--k", 4],
        "second-judge": ["--judge", SECOND_JUDGE],
        "best-of-16": [],
    }.items():
        prbench("study", "best-of-n", "--from", RECIPE, "-o", BEST_OF_N, *words)
        (ROOT / WORK / folder).mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / BEST_OF_N / "study.json", ROOT / WORK / folder)


def benchmarks() -> None:
    """Every reward model on `mirror`, and on the two rivals."""
    subprocess.run([sys.executable, ROOT / "studies" / "rival.py", "-o", ROOT / RIVAL], check=True)  # noqa: S603
    for address, contexts in ranked().items():
        limit = ["--limit", SLOW_PAIRS] if address.startswith(SLOW) else []
        run = ["run", "--model", address]
        prbench(*run, "--context", ",".join(sorted(contexts)), *limit, "-o", folder_of("mirror", address))
        prbench(*run, "--suite", "generic", "--context", "none", "-o", folder_of("generic", address))
        prbench(*run, "--suite", RIVAL, "--split", "all", "--context", "none", "-o", folder_of("rival", address))


def ranked() -> dict[str, set[str]]:
    """The ranked reward models by address, and the contexts in which each is used."""
    found: dict[str, set[str]] = {}
    for model in tomllib.loads(RECIPE.read_text("utf-8"))["models"]:
        if not model["address"].startswith("noised-oracle:"):
            found.setdefault(model["address"], {"none"}).add(model.get("context", "profile"))
    return found


def folder_of(suite: str, address: str) -> Path:
    """Where a run is kept."""
    return WORK / suite / address.replace("/", "_").replace(":", "_").replace("#", "_")


def ppo() -> None:
    """Train a policy with each, one or two seeds; then judge."""
    command = ["study", "ppo", "--policy", "lm:smollm2", "--judge", JUDGE, "-o", PPO]
    for address, seeds in TRAINED.items():
        for seed in range(seeds):
            prbench(*command, "--train-only", "--reward", address, "--seed", seed)
    prbench(*command)


def correlate() -> None:
    """The endpoint, then what is only described."""
    fast = [folder_of("mirror", address) for address in ranked() if not address.startswith(SLOW)]
    everything = [WORK / "mirror"]
    compare("primary", everything, WORK / "best-of-16")
    compare("all-pairs", fast, WORK / "best-of-16", "--describe")
    compare("second-judge", everything, WORK / "second-judge", "--describe")
    compare("best-of-4", everything, WORK / "best-of-4", "--describe")
    compare("ppo", everything, PPO, "--describe")


def compare(name: str, benchmark: Iterable[Path], downstream: Path, *words: str) -> None:
    """One correlation, against both rivals."""
    rivals = [WORK / "generic", WORK / "rival"]
    told = ["--benchmark", *benchmark, "--downstream", downstream, "--baseline", *rivals, "--baseline-context", "none"]
    prbench("study", "correlate", *told, *words, "-o", WORK / f"{name}.json")


STEPS: dict[str, Callable[[], None]] = {
    "best-of-n": best_of_n,
    "benchmarks": benchmarks,
    "ppo": ppo,
    "correlate": correlate,
}


if __name__ == "__main__":
    main()
