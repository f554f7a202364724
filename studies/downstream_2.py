"""The study of docs/lab/downstream-2.md: does the score predict best-of-N and PPO, with a ladder that spreads?

    make downstream-2         # or: python studies/downstream_2.py [STEP…] [--plan FILE] [--work DIR] [--policy ADDRESS]

Steps: ladder, candidates, scores, grades, benchmarks, ppo, correlate, page. Each is made of `prbench` commands that are
printed and continue where they stopped, so the same command does the rest. Nothing is graded before the step `grades`.
`--policy lm:FILE.gguf` makes the same study with another policy, in a folder of its own below the work folder.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from downstream_page import write_pages
from ladder import limit_of, make_ladder
from steps import ROOT, prbench, slug

SETS = ("styles", "poles")
"""Candidates under varied styles, and under explicit poles."""
SLOW = "lm:"
RIVALS = ("generic", "rival", "best-of-four", "on-policy")


class Place(NamedTuple):
    """One study: its plan, its folder, its policy."""

    plan: dict[str, Any]
    work: Path
    policy: str

    @property
    def folder(self) -> Path:
        """Of everything that depends on the policy."""
        return self.work / slug(Path(self.policy).name if "/" in self.policy else self.policy)

    @property
    def models(self) -> list[dict[str, str]]:
        """The chosen ladder, and the models that are not shown the user."""
        chosen = tomllib.loads((ROOT / self.work / "models.toml").read_text("utf-8"))["models"]
        blind = [{"context": "none", **one} for one in self.plan.get("blind", ())]
        return [*chosen, *blind]

    @property
    def has_slow(self) -> bool:
        """Whether a model is asked on a sample alone."""
        return any(one["address"].startswith(SLOW) for one in self.models)


def main() -> None:
    """Go through the steps named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"{', '.join(STEPS)}; default: all, in this order")
    parser.add_argument("--plan", type=Path, default=ROOT / "studies" / "downstream-2.toml")
    parser.add_argument("--work", type=Path, default=Path("runs/downstream-2"))
    parser.add_argument("--policy", default="")
    given = parser.parse_args()
    if unknown := [name for name in given.steps if name not in STEPS]:
        parser.error(f"no step {unknown[0]!r}; there are {', '.join(STEPS)}")
    plan = tomllib.loads(given.plan.read_text("utf-8"))
    place = Place(plan, given.work, given.policy or plan["study"]["policy"])
    for name in given.steps or STEPS:
        STEPS[name](place)


def ladder(place: Place) -> None:
    """Train the reward models and choose among them by validation."""
    (ROOT / place.work).mkdir(parents=True, exist_ok=True)
    make_ladder(place.plan, place.work)


def study_file(place: Place, kind: str, *, slow: bool) -> Path:
    """The settings of one best-of-N study, written for `--from`: with poles or without, with slow models or without."""
    own = {**place.plan["study"], "policy": place.policy}
    poles = own.pop("poles")
    models = [one for one in place.models if slow or not one["address"].startswith(SLOW)]
    if slow:
        own["limit"] = place.plan["slow_pairs"]
    tables = {name: own.pop(name) for name in list(own) if isinstance(own[name], dict)}
    lines = [f"{name} = {_value(value)}" for name, value in own.items()]
    for name, values in tables.items():
        lines += ["", f"[{name}]", *(f"{key} = {_value(value)}" for key, value in values.items())]
    for axis, told in poles.items() if kind == "poles" else ():
        lines += ["", f"[poles.{axis}]", *(f"{pole} = {_value(text)}" for pole, text in told.items())]
    for model in models:
        lines += ["", "[[models]]", *(f"{key} = {_value(value)}" for key, value in model.items())]
    file = place.folder / f"{kind}{'-slow' if slow else ''}.toml"
    (ROOT / file).parent.mkdir(parents=True, exist_ok=True)
    (ROOT / file).write_text("\n".join(lines) + "\n", "utf-8")
    return file


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(value)


def best_of_n(place: Place, kind: str, *words: object, slow: bool = False, keep: str = "") -> None:
    """One best-of-N command; the study it ends in is copied to where `correlate` finds it."""
    command = ["study", "best-of-n", "--from", study_file(place, kind, slow=slow), "-o", place.folder / kind]
    prbench(*command, *words, keep=place.folder / f"{keep}.md" if keep else None)
    if keep:
        (ROOT / place.folder / keep).mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / place.folder / kind / "study.json", ROOT / place.folder / keep)


def candidates(place: Place) -> None:
    """Both sets of answers."""
    for kind in SETS:
        best_of_n(place, kind, "--until", "candidates")


def scores(place: Place) -> None:
    """What every reward model makes of every answer; nothing is graded."""
    for kind in SETS:
        best_of_n(place, kind, "--until", "scores")
    if place.has_slow:
        best_of_n(place, "styles", "--until", "scores", slow=True)


def grades(place: Place) -> None:
    """The endpoint, then the other truths: the pole set under the judge and under its instructions; best of 4."""
    best_of_n(place, "styles", keep="best-of-16")
    best_of_n(place, "styles", "--k", 4, keep="best-of-4")
    if place.has_slow:
        best_of_n(place, "styles", slow=True, keep="with-slow-models")
    best_of_n(place, "poles", keep="poles-judged")
    best_of_n(place, "poles", "--truth", "instructed", keep="poles-instructed")
    best_of_n(place, "styles", keep="best-of-16")  # what a reader finds in the folder is the endpoint


def benchmarks(place: Place) -> None:
    """Every reward model on the benchmark, the on-policy arm and the rivals."""
    made = {name: place.work / f"{name}.jsonl" for name in ("rival", "best-of-four")}
    made["on-policy"] = place.folder / "on-policy.jsonl"
    suite = ["--suite", place.plan["study"]["suite"]]
    script("rival.py", *suite, "-o", made["rival"])
    script("best_of_four.py", "-o", made["best-of-four"])
    margin = ["--margin", place.plan["margin"]]
    script("on_policy.py", place.folder / "poles", *suite, *margin, "-o", made["on-policy"])
    contexts: dict[str, list[str]] = {}
    for model in place.models:
        contexts.setdefault(model["address"], []).append(model["context"])
    for address, shown in contexts.items():
        run, limit = ["run", "--model", address], limit_of(place.plan, address)
        few = ["--limit", place.plan["pairs"]] if "pairs" in place.plan else []
        own, none = ["--context", ",".join(dict.fromkeys(shown))], ["--context", "none"]
        prbench(*run, *suite, "--split", "test", *own, *limit, "-o", place.work / "mirror" / slug(address))
        prbench(*run, "--suite", "generic", *none, *few, "-o", place.work / "generic" / slug(address))
        for name in ("rival", "best-of-four"):
            words = ["--suite", made[name], "--split", "all", *none, *few]
            prbench(*run, *words, "-o", place.work / name / slug(address))
        words = ["--suite", made["on-policy"], "--split", "all", *own, *limit]
        prbench(*run, *words, "-o", place.folder / "on-policy" / slug(address))


def script(name: str, *words: object) -> None:
    """One of the scripts beside this one."""
    print("$ python studies/" + name, *words, flush=True)
    subprocess.run([sys.executable, ROOT / "studies" / name, *map(str, words)], cwd=ROOT, check=True)  # noqa: S603


def ppo(place: Place) -> None:
    """The true score as a reward first; if policies gain by it, chance and the best by validation, and GRPO once."""
    plan, own = place.plan, place.plan["study"]
    best = place.models[len(place.models) - len(plan.get("blind", ())) - 1]
    rungs = [f"none={plan['blind'][0]['address']}", f"{best['context']}={best['address']}"]
    command = ["study", "ppo", "--policy", place.policy, "--suite", own["suite"], "--steps", plan["ppo_steps"]]
    command += plan.get("ppo_words", [])
    command += ["--judge", own["judge"], "--reserve", plan["reserve"], "-o", place.folder / "ppo"]
    prbench(*command, "--reward", "noised-oracle:0", keep=place.folder / "ppo.md")
    if not gains(ROOT / place.folder / "ppo" / "study.json", "noised-oracle:0"):
        print(
            "the true score itself, as a reward, raises nothing: PPO cannot show anything here, so no rung is trained"
        )
        return
    for seed in range(plan["ppo_seeds"]):
        for rung in rungs:
            prbench(*command, "--train-only", "--reward", rung, "--seed", seed)
    prbench(*command, keep=place.folder / "ppo.md")
    grpo = [*command[:-1], place.folder / "grpo", "--algorithm", "grpo"]
    prbench(*grpo, "--reward", *rungs, keep=place.folder / "grpo.md")


def gains(file: Path, model: str) -> bool:
    """Whether a policy of a finished PPO study lies above the untrained one, with an interval clear of 0."""
    return bool(json.loads(file.read_text("utf-8"))["models"][model]["details"]["gain"]["low"] > 0)


def correlate(place: Place) -> None:
    """The endpoint with its rivals, then what is only described."""
    fast = [place.work / "mirror" / slug(one["address"]) for one in place.models if not one["address"].startswith(SLOW)]
    compare(place, "endpoint", list(dict.fromkeys(fast)), "best-of-16")
    for name in ("best-of-4", "poles-judged", "poles-instructed"):
        compare(place, name, list(dict.fromkeys(fast)), name, "--describe")
    if place.has_slow:
        compare(place, "with-slow-models", [place.work / "mirror"], "with-slow-models", "--describe")


def compare(place: Place, name: str, benchmark: list[Path], study: str, *words: str) -> None:
    """One correlation, against all rivals."""
    rivals = [place.folder / one if one == "on-policy" else place.work / one for one in RIVALS]
    told = ["--benchmark", *benchmark, "--downstream", place.folder / study, "--baseline", *rivals]
    out = place.folder / f"correlate-{name}"
    prbench("study", "correlate", *told, *words, "-o", out.with_suffix(".json"), keep=out.with_suffix(".md"))


def page(place: Place) -> None:
    """The tables and the drawing, in docs/lab for the plan's own policy, else beside what was found."""
    own = place.policy == place.plan["study"]["policy"]
    folder = ROOT / "docs" / "lab" if own else ROOT / place.folder
    print(*write_pages(ROOT / place.folder, folder / "downstream-2-tables.md"), sep="\n")


STEPS: dict[str, Callable[[Place], None]] = {
    "ladder": ladder,
    "candidates": candidates,
    "scores": scores,
    "grades": grades,
    "benchmarks": benchmarks,
    "ppo": ppo,
    "correlate": correlate,
    "page": page,
}


if __name__ == "__main__":
    main()
