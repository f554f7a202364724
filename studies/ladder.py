"""The ladder of docs/lab/downstream-2.md: real reward models from chance to the best, chosen by validation alone.

    python studies/ladder.py --plan studies/downstream-2.toml --work runs/downstream-2

Trains what the plan names under [[encoders]] and [[trained]] (each a `prbench train` command; what is there is not
made again), measures every model in every context on the split validation, and chooses: all rungs, but of those within
2 points of chance at most a quarter of the whole, the nearest to chance left out first and no lineage left out whole.
Test is not looked at. Writes `ladder.json`, and `models.toml` with the [[models]] of a best-of-N study.
"""

import argparse
import json
import statistics
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from steps import ROOT, prbench, slug

from prbench.results import load_run
from prbench.stats.correlation import Design, simulated_power

CHANCE, NEAR, MOST_NEAR = 50.0, 2.0, 0.25
WANTED = {"models": 24, "lineages": 6, "deviation": 7.0}
ERRORS = {"couple": 6.9, "item": 0.62, "gains": 0.048}
"""Of the first study: of a couple's accuracy in points, of an item's gain, and the spread of true gains."""


class Rung(NamedTuple):
    """A reward model in a context, and what it is worth on validation in percent."""

    address: str
    context: str
    lineage: str
    accuracy: float

    @property
    def near(self) -> bool:
        """Whether it cannot be told from chance to speak of."""
        return abs(self.accuracy - CHANCE) <= NEAR


def main() -> None:
    """Train, measure, choose, tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plan", type=Path, default=ROOT / "studies" / "downstream-2.toml")
    parser.add_argument("--work", type=Path, default=Path("runs/downstream-2"))
    given = parser.parse_args()
    plan = tomllib.loads(given.plan.read_text("utf-8"))
    make_ladder(plan, given.work)


def make_ladder(plan: Mapping[str, Any], work: Path) -> list[Rung]:
    """The whole of it; the same call continues."""
    train_all(plan, work)
    rungs = measure(plan, work)
    chosen = choose(rungs)
    (ROOT / work / "ladder.json").write_text(
        json.dumps({"rungs": [one._asdict() for one in rungs], "chosen": [one._asdict() for one in chosen]}, indent=1),
        "utf-8",
    )
    (ROOT / work / "models.toml").write_text(as_toml(chosen), "utf-8")
    for line in told(chosen, plan):
        print(line)
    return chosen


def train_all(plan: Mapping[str, Any], work: Path) -> None:
    """Encoders first; `{work}` in the words of a training is the work folder, so that models find their encoder."""
    common = ["--reserve", plan["reserve"], "--seed", plan.get("seed", 0), "--suite", plan.get("suite", "mirror")]
    for made in [*plan.get("encoders", ()), *plan["trained"]]:
        folder = model_folder(work, made["name"])
        done = "tuning.json" if made in plan.get("encoders", ()) else "personal.json"
        if not (ROOT / folder / done).is_file():
            words = [word.replace("{work}", str(work)) for word in made["train"]]
            prbench("train", *words, *common, "--out", folder)


def model_folder(work: Path, name: str) -> Path:
    """Where a trained model lies."""
    return work / "models" / name


def entered(plan: Mapping[str, Any], work: Path) -> list[tuple[str, str, str]]:
    """Address, context and lineage of all rungs: those trained here, then those as they are."""
    found = [
        (f"personal:{model_folder(work, made['name'])}", context, made["lineage"])
        for made in plan["trained"]
        for context in made.get("contexts", ["profile"])
    ]
    found += [(one["address"], one.get("context", "profile"), one["lineage"]) for one in plan.get("found", ())]
    return found


def measure(plan: Mapping[str, Any], work: Path) -> list[Rung]:
    """Accuracy of every rung on validation; a finished run costs nothing."""
    contexts: dict[str, list[str]] = {}
    for address, context, _ in entered(plan, work):
        contexts.setdefault(address, []).append(context)
    suite = plan.get("suite", "mirror")
    for address, shown in contexts.items():
        words = ["--suite", suite, "--split", "validation", "--context", ",".join(shown), *limit_of(plan, address)]
        prbench("run", "--model", address, *words, "-o", work / "validation" / slug(address))
    rungs = []
    for address, context, lineage in entered(plan, work):
        found = load_run(ROOT / work / "validation" / slug(address)).result.contexts[context].accuracy.value
        if found is not None:
            rungs.append(Rung(address, context, lineage, 100 * found))
    return rungs


def limit_of(plan: Mapping[str, Any], address: str) -> list[object]:
    """Language models are asked on a sample of the pairs, whole couples, the same for all; a rehearsal asks all so."""
    pairs = plan["slow_pairs"] if address.startswith("lm:") else plan.get("pairs")
    return ["--limit", pairs] if pairs else []


def choose(rungs: Sequence[Rung]) -> list[Rung]:
    """All, but at most a quarter within 2 points of chance; the order is that of the accuracy."""
    kept = sorted(rungs, key=lambda one: (one.accuracy, one.address, one.context))
    while True:
        near = [one for one in kept if one.near]
        spare = [one for one in near if sum(other.lineage == one.lineage for other in kept) > 1]
        if len(near) <= MOST_NEAR * len(kept) or not spare:
            return kept
        kept.remove(min(spare, key=lambda one: (abs(one.accuracy - CHANCE), one.address, one.context)))


def told(chosen: Sequence[Rung], plan: Mapping[str, Any]) -> list[str]:
    """What the ladder is like on validation, whether it is what was wanted, and what it could show."""
    accuracies = [one.accuracy for one in chosen]
    deviation = statistics.stdev(accuracies) if len(chosen) > 1 else 0.0
    lineages, near = len({one.lineage for one in chosen}), sum(one.near for one in chosen) / max(len(chosen), 1)
    lines = [f"{one.accuracy:5.1f} %  {one.lineage:28} {one.context:10} {one.address}" for one in chosen]
    lines.append(
        f"validation: {len(chosen)} models of {lineages} lineages, {min(accuracies):.1f} to {max(accuracies):.1f} %, "
        f"standard deviation {deviation:.1f} points, {near:.0%} within {NEAR:g} points of chance"
    )
    fits = len(chosen) >= WANTED["models"] and lineages >= WANTED["lineages"] and deviation >= WANTED["deviation"]
    lines.append("as wanted" if fits and near <= MOST_NEAR else f"not as wanted: {WANTED}, {MOST_NEAR:.0%} near chance")
    if len(chosen) >= 4 and deviation:
        couples, items = plan.get("couples", 40), plan.get("items", 2766)
        errors = ERRORS["couple"] / couples**0.5, ERRORS["item"] / items**0.5
        design = Design(len(chosen), deviation, errors[0], ERRORS["gains"], errors[1], lineages)
        power = simulated_power(design, 0.9, np.random.default_rng(0))
        lines.append(f"a true ρ of .9 would be seen with {power.power:.0%}, and printed as {power.mean:.2f} on average")
    return lines


def as_toml(chosen: Sequence[Rung]) -> str:
    """The models as a best-of-N study reads them."""
    parts = [
        f'[[models]]\naddress = "{one.address}"\ncontext = "{one.context}"\nlineage = "{one.lineage}"\n'
        for one in chosen
    ]
    return "\n".join(parts)


if __name__ == "__main__":
    main()
