"""The study of docs/lab/downstream.md: does the score on `mirror` predict best-of-N and PPO, better than rivals do?

    make downstream           # or: python studies/downstream.py [best-of-n] [benchmarks] [ppo] [correlate]

Every step is a `prbench` command, printed before it runs; each continues where it stopped, so the same command does the
rest. The models are those of `make personal` and `make personal-tuned`. Hours on two cores; `OMP_NUM_THREADS=1` and two
of the steps side by side use them best.
"""

import argparse
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path

from steps import ROOT, prbench, slug

RECIPE = ROOT / "studies" / "downstream.toml"
BEST_OF_N, PPO, WORK = Path("runs/best-of-n"), Path("runs/ppo"), Path("runs/downstream")
RIVAL = WORK / "rival.jsonl"
PAGE = ROOT / "docs" / "lab" / "downstream-tables.md"
JUDGE, SECOND_JUDGE = "stances:tfidf#passages", "stances:tfidf"
SLOW = "lm:"
SLOW_PAIRS = 240
"""Pairs on which a slow rater that reads posts is asked."""

TRAINED = {
    "personal:reference": 2,
    "personal:runs/personal/bt-generic": 1,
    "personal:runs/personal/user-bt": 1,
    "personal:runs/personal/lore-tuned": 1,
    "shorter": 2,
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


def best_of_n() -> None:
    """Best of 16 under the judge fixed beforehand; then best of 4, and a second judge, over the same candidates."""
    for folder, words in {
        "best-of-4": ["--k", 4],
        "second-judge": ["--judge", SECOND_JUDGE],
        "best-of-16": [],
    }.items():
        prbench(
            "study",
            "best-of-n",
            "--from",
            RECIPE.relative_to(ROOT),
            "-o",
            BEST_OF_N,
            *words,
            keep=WORK / f"{folder}.md",
        )
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
    return WORK / suite / slug(address)


def ppo() -> None:
    """Train a policy with each, one or two seeds; then judge."""
    command = ["study", "ppo", "--policy", "lm:smollm2", "--judge", JUDGE, "-o", PPO]
    for address, seeds in TRAINED.items():
        for seed in range(seeds):
            prbench(*command, "--train-only", "--reward", address, "--seed", seed)
    prbench(*command, keep=WORK / "ppo.md")


def correlate() -> None:
    """The endpoint, then what is only described; all tables into one page."""
    fast = [folder_of("mirror", address) for address in ranked() if not address.startswith(SLOW)]
    everything = [WORK / "mirror"]
    compare("primary", everything, WORK / "best-of-16")
    compare("all-pairs", fast, WORK / "best-of-16", "--describe")
    compare("second-judge", everything, WORK / "second-judge", "--describe")
    compare("best-of-4", everything, WORK / "best-of-4", "--describe")
    compare("ppo-correlation", everything, PPO, "--describe")
    parts = {
        "The endpoint": "primary",
        "Without the two slow raters, on all pairs": "all-pairs",
        "With the second judge": "second-judge",
        "Best of 4": "best-of-4",
        "PPO": "ppo-correlation",
        "Best of 16, reward model by reward model": "best-of-16",
        "PPO, reward model by reward model": "ppo",
    }
    texts = [f"## {title}\n{(ROOT / WORK / f'{name}.md').read_text('utf-8').strip()}" for title, name in parts.items()]
    PAGE.write_text("\n\n".join(["# Tables of [the downstream study](downstream.md)", *texts]) + "\n", "utf-8")


def compare(name: str, benchmark: Iterable[Path], downstream: Path, *words: str) -> None:
    """One correlation, against both rivals."""
    rivals = [WORK / "generic", WORK / "rival"]
    told = ["--benchmark", *benchmark, "--downstream", downstream, "--baseline", *rivals, "--baseline-context", "none"]
    prbench("study", "correlate", *told, *words, "-o", WORK / f"{name}.json", keep=WORK / f"{name}.md")


STEPS: dict[str, Callable[[], None]] = {
    "best-of-n": best_of_n,
    "benchmarks": benchmarks,
    "ppo": ppo,
    "correlate": correlate,
}


if __name__ == "__main__":
    main()
