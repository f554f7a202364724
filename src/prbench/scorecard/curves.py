"""Growth of accuracy with what is known of a user: judged pairs, posts, both; and its start, with nothing.

Every point is a run of its own on the same evaluation pairs, so that each can be continued, opened and verified, and
points can be compared pair by pair.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from prbench.config import digest
from prbench.data import DatasetRecord, Suite
from prbench.errors import ConfigError
from prbench.files import write_whole
from prbench.models import Model, Replay, is_adaptive, load_model
from prbench.results import load_run, versus
from prbench.run import Evaluation
from prbench.scorecard.adapted import Point, adapted
from prbench.scorecard.bench import Bench, folder_name, open_bench
from prbench.scorecard.card import failure
from prbench.scorecard.config import ScorecardConfig, ScorecardModelConfig
from prbench.scorecard.protocol import POSTS, SHOTS, ShotDivision, divide
from prbench.stats import Estimate
from prbench.types import Channel, Frozen

FILE = "curves.json"


class CurvePoint(Frozen):
    """Accuracy with so much known of each user."""

    shots: int
    given: float
    """Judged pairs that there were, on average over evaluated pairs: fewer than asked for where users have fewer."""
    posts: int | None
    """Number of posts, None for all."""
    accuracy: Estimate
    change: Estimate | None = None
    """Difference from the first point of the curve, pair by pair."""
    without_verdict: float | None
    run: str


class Curves(Frozen):
    """One model's curves; one that it cannot have is empty."""

    name: str
    address: str
    failed: str = ""
    trace: str = ""
    cold_start: CurvePoint | None = None
    """Point with no posts and no judged pairs."""
    shots_with_posts: tuple[CurvePoint, ...] = ()
    shots_without_posts: tuple[CurvePoint, ...] = ()
    posts: tuple[CurvePoint, ...] = ()


class CurveSheet(Frozen):
    """The curves of all models, and what they were measured on."""

    split: str
    seed: int
    evaluated: DatasetRecord
    curves: tuple[Curves, ...]


def make_curves(
    settings: ScorecardConfig, out: Path, *, quiet: bool = True, tell: Callable[[str], None] = lambda line: None
) -> CurveSheet:
    """Measure the curves of every model that reads the user, and write `curves.json`.

    Args:
        settings: Which models, on what; baselines, rows that leak and entries with `curves = false` have none.
        out: Folder of the runs; what is there already is continued.
        quiet: Whether to show no progress on standard error.
        tell: Hears which model is under way.
    """
    bench = open_bench(settings.model_copy(update={"generic": "none"}), out, quiet=quiet)
    division, evaluated = _divided(bench)
    found = []
    for entry in settings.models:
        if entry.curves and not entry.leaks:
            tell(f"{entry.label}: curves")
            found.append(_curves_or_failure(entry, bench, division, evaluated))
    kept = tuple(curves for curves in found if curves is not None)
    sheet = CurveSheet(split=settings.split, seed=settings.seed, evaluated=evaluated.record, curves=kept)
    write_whole(out / FILE, sheet.model_dump_json(indent=2) + "\n")
    return sheet


def points_of(model: Model) -> dict[str, tuple[Point, ...]]:
    """The points of each curve that this model can have.

    Example:
        >>> points_of(load_model("longer"))
        {}
    """
    found: dict[str, tuple[Point, ...]] = {}
    if isinstance(model, Replay):  # scores made elsewhere say nothing of other numbers of posts
        return found
    reads_posts = Channel.POSTS in model.card.reads
    if is_adaptive(model):
        if reads_posts:
            found["shots_with_posts"] = tuple(Point(shots, None) for shots in SHOTS)
        found["shots_without_posts"] = tuple(Point(shots, 0) for shots in SHOTS)
    if reads_posts:
        found["posts"] = tuple(Point(0, posts) for posts in POSTS)
    return found


class _Stage(NamedTuple):
    """One model on the evaluation pairs."""

    bench: Bench
    entry: ScorecardModelConfig
    model: Model
    division: ShotDivision
    evaluated: Suite

    def run(self, point: Point) -> Evaluation:
        """The run of one point."""
        seed = self.bench.settings.seed
        with adapted(self.model, self.division.judgments(point.shots), point, seed) as model:
            session = self.bench.session(
                self.entry, model, self.evaluated, split=None, contexts=["profile"], limited=False, hides=True
            )
            folder = f"{point.label}-{digest(session.identity)[:8]}"
            return self.bench.run(session, self.bench.out / "curves" / folder_name(self.entry.address) / folder)


def _divided(bench: Bench) -> tuple[ShotDivision, Suite]:
    settings, suite = bench.settings, bench.suite
    part = settings.part
    if part is not None and suite.record.splits:
        suite = suite.filter(lambda pair: pair.tags.get("split") == part, note=f"split {part}")
    suite = suite if settings.limit is None else suite.limit(settings.limit, settings.seed)
    division = divide(suite, settings.seed)
    if not division.evaluated:
        raise ConfigError(f"suite {suite.record.name!r} leaves no pairs to evaluate", hint="a larger --limit helps")
    kept = {pair.id for pair in division.evaluated}
    note = f"the half of each user's questions that no judged pair is drawn from, seed {settings.seed}"
    return division, suite.filter(lambda pair: pair.id in kept, note=note)


def _curves_or_failure(
    entry: ScorecardModelConfig, bench: Bench, division: ShotDivision, evaluated: Suite
) -> Curves | None:
    try:
        model = load_model(entry.address, entry.options)
        wanted = points_of(model)
        return _curves(_Stage(bench, entry, model, division, evaluated), wanted) if wanted else None
    except Exception as error:  # as for a row: the other models must not go down with this one
        reason, trace = failure(error)
        return Curves(name=entry.label, address=entry.address, failed=reason, trace=trace)


def _curves(stage: _Stage, wanted: dict[str, tuple[Point, ...]]) -> Curves:
    runs = {point: stage.run(point) for point in dict.fromkeys(point for points in wanted.values() for point in points)}
    found = {name: tuple(_measured(points, runs, stage.division)) for name, points in wanted.items()}
    cold = next((point for points in found.values() for point in points if (point.shots, point.posts) == (0, 0)), None)
    return Curves.model_validate(
        {
            "name": stage.entry.label,
            "address": stage.entry.address,
            "cold_start": cold and cold.model_copy(update={"change": None}),
            **found,
        }
    )


def _measured(points: tuple[Point, ...], runs: dict[Point, Evaluation], division: ShotDivision) -> Iterator[CurvePoint]:
    first = runs[points[0]]
    for point in points:
        found = runs[point].contexts["profile"]
        yield CurvePoint(
            shots=point.shots,
            given=division.given(point.shots),
            posts=point.posts,
            accuracy=found.accuracy,
            change=None if point == points[0] else _change(runs[point], first),
            without_verdict=found.without_verdict.value,
            run=str(runs[point].folder),
        )


def _change(later: Evaluation, first: Evaluation) -> Estimate | None:
    if later.folder is None or first.folder is None or not _judged_something(later, first):
        return None
    return versus(load_run(later.folder), load_run(first.folder), "profile").comparison.difference


def _judged_something(*runs: Evaluation) -> bool:
    return all(run.contexts["profile"].accuracy.n for run in runs)
