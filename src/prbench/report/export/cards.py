"""A section for a model card, in Markdown: the table, the command that makes it again, what it was made of."""

from pathlib import Path

from prbench.files import write_whole
from prbench.report.command import reproduction
from prbench.report.finished import Finished
from prbench.results import GAIN, SPECIFICITY, BaselineResult, ContextResult, Result
from prbench.show import Table, count, interval, percent, points, render


def write(run: Finished, out: Path) -> None:
    """Write the section of a model card."""
    write_whole(out, model_card(run))


def model_card(run: Finished) -> str:
    """The section as Markdown."""
    result, suite = run.result, run.result.suite
    lines = [
        "## Personal accuracy (prbench)",
        "",
        "How often this model prefers the answer that *this* user wants, by what of the user it is shown. In percent "
        "with a 95 % interval, clustered by user and by question; chance is 50, ties count ½.",
        "",
        render([_table(run)], "md"),
        "",
        *_effects(result),
        "```",
        reproduction(run.loaded.config),
        "```",
        "",
        f"- model: `{result.model.address}`, revision `{result.model.revision or 'not known'}`",
        f"- suite: `{suite.name}`, split `{result.split or 'all'}`, revision `{suite.revision or 'none'}`, "
        f"pairs `{suite.fingerprint}`",
        f"- records: `{run.records_fingerprint}` (prbench {result.prbench}, {result.finished})",
        *(f"- warning: {warning}" for warning in result.warnings),
    ]
    return "\n".join(lines) + "\n"


def model_name(run: Finished) -> str:
    """A model's name without the scheme of its address.

    What follows `hf:` or `chat:` and so on is how the model is known elsewhere.
    """
    address = run.loaded.facts.card.address
    return address.partition(":")[2] or address


def _table(run: Finished) -> Table:
    result = run.result
    rows = [
        [
            f"{name} (shows the standard)" if context.leaks else name,
            interval(context.accuracy),
            _covered(context),
            percent(context.without_verdict.value),
            count(context.accuracy.n),
        ]
        for name, context in result.contexts.items()
    ]
    rows += [[name, "unsupported", "", "", ""] for name in result.unsupported]
    rows += [
        [f"baseline {name}, none", interval(found.accuracy), _covered(found), "", count(found.accuracy.n)]
        for name, found in result.baselines.items()
    ]
    columns = ["context", "accuracy [95 %]", "users covered", "no verdict", "pairs"]
    return Table(f"{result.suite.name} · {result.model.address}", columns, rows)


def _covered(found: ContextResult | BaselineResult) -> str:
    return percent(found.coverage.covered.value) if found.coverage else "–"


def _effects(result: Result) -> list[str]:
    found = [
        f"{effect.title}: {points(estimate)} percentage points"
        for effect in (GAIN, SPECIFICITY)
        if (estimate := result.effects.of(effect)) is not None
    ]
    return ["; ".join(found) + ". own: the user's own profile; other: another user's.", ""] if found else []
