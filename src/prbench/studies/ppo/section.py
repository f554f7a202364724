"""A PPO study as a section of the report page: what came out, and how each training went."""

from collections.abc import Callable, Sequence
from pathlib import Path

from markupsafe import Markup

from prbench.errors import StudyError
from prbench.files import exists, read_model
from prbench.show import Table
from prbench.show.charts import figure, html_table, small_multiples
from prbench.show.charts.lines import ChartLine, LinePoint, line_chart
from prbench.show.page import Section
from prbench.studies.ppo.checkpoint import HISTORY, TrainingStep, read_history
from prbench.studies.ppo.conclusion import TRAININGS
from prbench.studies.ppo.outcome import PPOStudy
from prbench.studies.ppo.policy_tables import ordered, ppo_tables
from prbench.studies.study import FILE

Curve = tuple[str, Callable[[TrainingStep], float | None], int]

_SMOOTHED = 5
"""Steps that a drawn reward is the mean of: one step has few answers."""
_CURVES: tuple[Curve, ...] = (
    ("reward", lambda step: step.reward, 3),
    ("KL to the base model", lambda step: step.kl, 1),
    ("entropy", lambda step: step.entropy, 2),
    ("tokens of an answer", lambda step: step.length, 0),
)


def ppo_section(folder: Path, *, number: int = 0) -> Section:
    """Section of a page that draws one study.

    Args:
        folder: A finished study.
        number: Tells several studies on a page apart.
    """
    if not exists(folder / FILE, raises=StudyError):
        raise StudyError(f"{str(folder)!r} has no {FILE}", hint="judge its trainings first: --judge")
    found = read_model(folder / FILE, PPOStudy, raises=StudyError, hint="judge its trainings anew: --judge")
    table = ppo_tables(found)[0]
    body = html_table(table) + Markup("").join(_curves(folder, found, curve) for curve in _CURVES)
    taught = (
        f"For each of {people} people {found.policy} was trained with each reward model on half of their questions, "
        "then answered the other half"
        if (people := found.details.settings.people)
        else f"{found.policy} was trained with each reward model on the same questions, then answered questions of "
        "users it had never met"
    )
    lead = (
        f"{taught}; what the answers are worth was judged under each user's own rubric. A reward that rises while the "
        "true score does not is a reward that was gamed."
    )
    return Section(f"ppo{number or ''}", f"PPO on {found.suite}", lead, body, "PPO")


def _curves(folder: Path, found: PPOStudy, curve: Curve) -> Markup:
    """One quantity over the steps, a chart for each reward model and a line for each seed."""
    name, value, digits = curve
    drawings, rows = [], []
    for model in ordered(found):
        histories = {
            seed: read_history(folder / TRAININGS / told.folder / HISTORY)
            for seed, told in found.models[model].details.seeds.items()
        }
        lines = [ChartLine(f"seed {seed}", _points(history, value)) for seed, history in histories.items()]
        drawings.append(line_chart(model, lines, across="step", what=_title(name), digits=digits))
        for line in lines:
            if line.points:
                ends = (f"{point.value:.{digits}f}" for point in (line.points[0], line.points[-1]))
                rows.append([model, line.label, *ends])
    caption = f"{_title(name)} while training; each point is the mean of up to {_SMOOTHED} steps."
    columns = ["reward model", "training", "first", "last"]
    return figure(small_multiples(drawings), Table(_title(name), columns, rows, first_numeric=2), caption)


def _points(history: Sequence[TrainingStep], value: Callable[[TrainingStep], float | None]) -> list[LinePoint]:
    """The mean of the last few steps, at every step that has one."""
    points = []
    for end in range(1, len(history) + 1):
        known = [found for step in history[max(0, end - _SMOOTHED) : end] if (found := value(step)) is not None]
        if known:
            points.append(LinePoint(history[end - 1].step, sum(known) / len(known)))
    return points


def _title(name: str) -> str:
    return name[:1].upper() + name[1:]
