"""Learning curves over people: what a method is worth after 5, 10, 20, 40 and 70 training couples.

    make people-curve         # or: python studies/people_curve.py [--methods …] [--couples …] [--suite …]

Each point trains a method on so many couples (fewer are always among more, the same for every method) and looks at test
once. No setting is chosen: every method has its defaults at every point, `stances` the recipe of `make personal-tuned`,
over an encoder that was tuned on the same couples and no others. Validation only stops a training early, and is written
down. Models and runs are kept in the work folder, so the same command continues; a point that is there is not measured
again. What was measured is kept beside the page too (`docs/lab/people.json`), so that points of another machine stay
and their trainings need not be repeated; `--methods` and `--couples` name what is measured here, the page has all.
Hours on two cores.
"""

import argparse
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from people.page import conclusion
from people.worlds import write_whole

from prbench import evaluate
from prbench.data import load_pairs
from prbench.data.portion import Portion
from prbench.errors import DataError
from prbench.models.personal.artifact import PersonalRecord
from prbench.models.personal.stance_encoder import AXES
from prbench.results import load_run, versus
from prbench.show import interval, percent, points
from prbench.show.charts.lines import ChartLine, LinePoint, line_bounds, line_chart, line_sheet
from prbench.stats import Estimate
from prbench.train import TrainConfig, train

ROOT = Path(__file__).resolve().parents[1]
METHODS = ("user-bt", "vpl", "pal", "lore", "gpo", "cross", "stances", "contrast")
COUPLES = (5, 10, 20, 40, 70)
FORESEEN = 200
"""Couples for which the curves are drawn on."""
REFERENCE = {"answer_window": 2, "learning_rate": 0.005, "weight_decay": 0.05, "epochs": 14, "also": "generic"}
"""The recipe of `stances` in `make personal-tuned`."""


class Plan(NamedTuple):
    """What is trained, on whom."""

    suite: str = "mirror"
    methods: tuple[str, ...] = METHODS
    couples: tuple[int, ...] = COUPLES
    encoder: str = "embed:minilm"
    seed: int = 0
    changes: Mapping[str, Mapping[str, Any]] = {}
    """Options of a method (or of `encoder`) in place of its defaults, for a rehearsal."""


class Point(NamedTuple):
    """One method after so many couples."""

    method: str
    couples: int
    pairs: int
    """It was trained on."""
    validation: float
    test: Estimate
    run: Path | None = None
    """Run on test; None where it lies on another machine."""


class Change(NamedTuple):
    """What more couples add to fewer, paired on the test pairs."""

    first: int
    last: int
    points: Estimate


class Kept(NamedTuple):
    """What was measured, here or elsewhere."""

    points: dict[tuple[str, int], Point]
    changes: dict[str, Change]
    """From the fewest couples to the most, by method."""


def main() -> None:
    """Read the options, make the study, write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", default="mirror")
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS, metavar="METHOD")
    parser.add_argument("--couples", nargs="+", type=int, default=COUPLES, metavar="N")
    parser.add_argument("--encoder", default="embed:minilm")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=Path, default=ROOT / "runs" / "people-curve")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "lab" / "people.md")
    given = parser.parse_args()
    plan = Plan(given.suite, tuple(given.methods), tuple(sorted(set(given.couples))), given.encoder, given.seed)
    file = given.page.with_suffix(".json")
    kept = read_kept(file, plan)
    for point in study(plan, given.work, known=kept.points):
        kept.points[point.method, point.couples] = point
        write_kept(file, plan, kept)
    kept.changes.update(changes(kept.points))
    write_kept(file, plan, kept)
    print(write_page(given.page, plan, kept))


def read_kept(file: Path, plan: Plan) -> Kept:
    """Points that were measured before; those of another suite, seed or encoder are refused."""
    if not file.is_file():
        return Kept({}, {})
    found = json.loads(file.read_text(encoding="utf-8"))
    known = found["fingerprint"], found["seed"], found["encoder"]
    if known != (load_pairs(plan.suite).record.fingerprint, plan.seed, plan.encoder):
        raise DataError(f"{str(file)!r} is of another suite or seed or encoder", hint="give this study its own --page")
    points = [Point(**{**one, "test": Estimate(**one["test"])}) for one in found["points"]]
    changes = {
        method: Change(change["first"], change["last"], Estimate(**change["points"]))
        for method, change in found["changes"].items()
    }
    return Kept({(point.method, point.couples): point for point in points}, changes)


def write_kept(file: Path, plan: Plan, kept: Kept) -> None:
    """Keep all points; where their runs lie is this machine's own."""
    points = [point._asdict() | {"test": point.test.to_json()} for _, point in sorted(kept.points.items())]
    content = {
        "fingerprint": load_pairs(plan.suite).record.fingerprint,
        "seed": plan.seed,
        "encoder": plan.encoder,
        "points": [{key: value for key, value in point.items() if key != "run"} for point in points],
        "changes": {
            method: change._asdict() | {"points": change.points.to_json()}
            for method, change in sorted(kept.changes.items())
        },
    }
    write_whole(file, json.dumps(content, indent=1) + "\n")


def changes(points: Mapping[tuple[str, int], Point]) -> dict[str, Change]:
    """What the most couples add to the fewest, of the methods whose runs are both here."""
    found = {}
    for method in dict.fromkeys(method for method, _ in points):
        ordered = [point for (name, _), point in sorted(points.items()) if name == method]
        start, end = ordered[0], ordered[-1]
        if start.run is not None and end.run is not None and start.run != end.run:
            more = versus(load_run(end.run), load_run(start.run), "profile").comparison.difference
            found[method] = Change(start.couples, end.couples, more)
    return found


def study(
    plan: Plan,
    work: Path,
    tell: Callable[[str], None] = print,
    known: Mapping[tuple[str, int], Point] = MappingProxyType({}),
) -> Iterator[Point]:
    """All points, the small ones of every method first; those known from elsewhere are taken as they are."""
    for couples in plan.couples:
        for method in plan.methods:
            there = (work / f"{method}-{couples}" / "personal.json").is_file()
            found = known.get((method, couples)) if not there else None
            point = found or _point(plan, work, method, couples)
            tell(f"{method}, {couples} couples: validation {100 * point.validation:.1f}, test {interval(point.test)}")
            yield point


def _point(plan: Plan, work: Path, method: str, couples: int) -> Point:
    model = work / f"{method}-{couples}"
    if not (model / "personal.json").is_file():
        _train(plan, work, method, couples, model)
    record = PersonalRecord.model_validate_json((model / "personal.json").read_text(encoding="utf-8"))
    trained = record.training
    if (trained.fingerprint, trained.seed) != (load_pairs(plan.suite).record.fingerprint, plan.seed):
        raise DataError(f"{str(model)!r} was trained on another suite or seed", hint="give this study its own --work")
    run = work / f"{method}-{couples}-test"
    contexts = ["none", "profile"]
    result = evaluate(f"personal:{model}", plan.suite, split="test", contexts=contexts, seed=plan.seed, out=run)
    validation = float(trained.validation["accuracy"])
    return Point(method, couples, trained.pairs, validation, result.contexts["profile"].accuracy, run)


def _train(plan: Plan, work: Path, method: str, couples: int, out: Path) -> None:
    basic = {"encoder": plan.encoder, "seed": plan.seed, **plan.changes.get(method, {})}
    place: dict[str, Any] = {"suite": plan.suite, "portion": Portion(people=couples)}
    if method == "cross":
        from prbench.train.cross import CrossConfig, train_cross

        basic["base"] = basic.pop("encoder")
        train_cross(CrossConfig(**basic), out, **place)
    elif method == "contrast":
        from prbench.train.contrast import ContrastConfig, train_contrast

        train_contrast(ContrastConfig(**basic), out, **place)
    elif method == "stances":
        tuned = _tuned(plan, work, couples)
        axes = len(json.loads((tuned / AXES).read_text(encoding="utf-8")))
        over = {"encoder": f"embed:{tuned}#stances+vectors", "settings": {"axes": axes}}
        train(TrainConfig(method=method, **{**REFERENCE, **basic, **over}), out, **place)
    else:
        train(TrainConfig(method=method, **basic), out, **place)


def _tuned(plan: Plan, work: Path, couples: int) -> Path:
    """An encoder tuned on these couples; a tuning that is finished or was interrupted is taken up."""
    from prbench.train.encoder import EncoderConfig
    from prbench.train.tune import tune

    out = work / f"encoder-{couples}"
    options = {"base": plan.encoder, "seed": plan.seed, **plan.changes.get("encoder", {})}
    tune(EncoderConfig(**options), out, suite=plan.suite, portion=Portion(people=couples))
    return out


def write_page(path: Path, plan: Plan, kept: Kept) -> Path:
    """The page with all points that are known, and the drawing beside it; a conclusion written by hand is kept."""
    couples = sorted({couples for _, couples in kept.points})
    known = [name for name in METHODS if any(method == name for method, _ in kept.points)]
    plan = plan._replace(methods=tuple(known), couples=tuple(couples))
    found = list(kept.points.values())
    drawing = path.with_suffix(".svg")
    write_whole(drawing, draw(plan, found))
    record = load_pairs(plan.suite).record
    methods = " ".join(plan.methods)
    parts = [
        "# Learning curves over people",
        "",
        conclusion(path),
        "",
        f"![Accuracy on test against training couples, by method]({drawing.name})",
        "",
        "Accuracy on `test` with the user's own posts, in percent with 95 % interval, by training couples:",
        "",
        *_table(plan, found, lambda point: interval(point.test)),
        "",
        "On `validation`, by which trainings are stopped early and nothing else is decided:",
        "",
        *_table(plan, found, lambda point: percent(point.validation)),
        "",
        *_slopes(plan, kept),
        "",
        "## How it was made",
        "",
        f"`python studies/people_curve.py --suite {plan.suite} --methods {methods} --couples "
        f"{' '.join(map(str, plan.couples))} --seed {plan.seed}` (`make people-curve`): suite `{record.name}`, "
        f"fingerprint `{record.fingerprint[:12]}`, encoder `{plan.encoder}`. Fewer couples are always among more, the "
        "same for every method. Every method has its defaults at every point and `stances` the recipe of "
        "`make personal-tuned`, over an encoder tuned on the same couples. A command looks at test once per point.",
    ]
    write_whole(path, "\n".join(parts) + "\n")
    return path


def _table(plan: Plan, found: Sequence[Point], show: Callable[[Point], str]) -> Iterator[str]:
    cells = {(point.method, point.couples): show(point) for point in found}
    yield "| method | " + " | ".join(map(str, plan.couples)) + " |"
    yield "|---|" + "--:|" * len(plan.couples)
    for method in plan.methods:
        yield f"| {method} | " + " | ".join(cells.get((method, couples), "–") for couples in plan.couples) + " |"


def _slopes(plan: Plan, kept: Kept) -> Iterator[str]:
    """What the last point adds to the first, by doubling, and drawn on."""
    first, last = plan.couples[0], plan.couples[-1]
    if first == last:
        return
    doublings = math.log2(last / first)
    yield f"From {first} to {last} couples, paired on the test pairs, and what the same slope would give at {FORESEEN}:"
    yield ""
    yield f"| method | change, points [95 %] | points per doubling [95 %] | at {FORESEEN} couples, if it held [95 %] |"
    yield "|---|--:|--:|--:|"
    for method in plan.methods:
        if method not in kept.changes or kept.changes[method][:2] != (first, last):
            continue
        change, end = kept.changes[method].points, kept.points[method, last]
        slope = _scaled(change, 1 / doublings)
        reached = _scaled(change, math.log2(FORESEEN / last) / doublings, end.test.value or 0.0)
        yield f"| {method} | {points(change)} | {points(slope)} | {interval(reached)} |"
    yield ""
    yield (
        "The last column draws a line over the logarithm of the couples; its interval is that of the slope alone, so "
        "it says too little of what is unknown."
    )


def _scaled(change: Estimate, factor: float, start: float = 0.0) -> Estimate:
    value, low, high = (
        None if end is None else start + factor * end for end in (change.value, change.low, change.high)
    )
    return Estimate(value, low, high, change.n)


def draw(plan: Plan, found: Sequence[Point]) -> str:
    """One panel for each method, with the other methods in grey behind it."""
    curves = {
        method: [
            LinePoint(point.couples, 100 * point.test.value, _percent(point.test.low), _percent(point.test.high))
            for point in sorted(found, key=lambda point: point.couples)
            if point.method == method and point.test.value is not None
        ]
        for method in plan.methods
    }
    chance = ChartLine(
        "chance", [LinePoint(couples, 50.0) for couples in (plan.couples[0], plan.couples[-1])], "dashed"
    )
    bounds = line_bounds([chance, *(ChartLine(method, line) for method, line in curves.items())])
    panels = []
    for method in plan.methods:
        behind = [ChartLine(other, line, "quiet") for other, line in curves.items() if other != method]
        panel = line_chart(
            method,
            [chance, *behind, ChartLine(method, curves[method])],
            across="training couples",
            what="Accuracy on test in percent",
            logarithmic=True,
            digits=0,
            bounds=bounds,
        )
        panels.append(panel)
    return line_sheet(panels)


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


if __name__ == "__main__":
    main()
