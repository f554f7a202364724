"""The scorecard: every model on the same pairs, one row each; a model that breaks is a row that says so.

Runs lie in folders of their own below one folder and are continued, so a scorecard that was finished asks no model
anything. Latency is measured once for each model and kept beside the runs.
"""

import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from prbench._version import __version__
from prbench.config import digest
from prbench.contexts import ContextBuilder
from prbench.data import DatasetRecord, Suite
from prbench.errors import FileError, PrbenchError
from prbench.files import read_model, write_whole
from prbench.models import Replay, load_model
from prbench.run import Session
from prbench.scorecard.bench import Bench, folder_name, open_bench
from prbench.scorecard.config import ScorecardConfig, ScorecardModelConfig
from prbench.scorecard.latency import WARM_UP, Latency, measure_latency
from prbench.scorecard.machine import Machine
from prbench.scorecard.row import ScorecardRow, judged, make_row
from prbench.types import POSTS_OF, Context, Frozen

FILE = "scorecard.json"


class Scorecard(Frozen):
    """All rows, and how they came about."""

    prbench: str
    made: str
    """Time when the scorecard was made (UTC)."""
    machine: Machine
    settings: ScorecardConfig
    suite: DatasetRecord
    generic: DatasetRecord | None
    rule: tuple[str, ...]
    rows: tuple[ScorecardRow, ...]

    @property
    def failed(self) -> tuple[ScorecardRow, ...]:
        """Rows that have no figures."""
        return tuple(row for row in self.rows if row.failed)


def make_scorecard(
    settings: ScorecardConfig,
    out: Path,
    *,
    quiet: bool = True,
    retime: bool = False,
    tell: Callable[[str], None] = lambda line: None,
) -> Scorecard:
    """Evaluate every model, judge it by the rule, and write `scorecard.json`.

    Args:
        settings: Which models, on what.
        out: Folder of the runs; what is there already is continued.
        quiet: Whether to show no progress on standard error.
        retime: Whether to measure latency anew.
        tell: Hears which model is under way.
    """
    bench = open_bench(settings, out, quiet=quiet)
    rows = []
    for entry in settings.entries:
        tell(entry.label)
        rows.append(_row_or_failure(entry, bench, retime))
    card = Scorecard(
        prbench=__version__,
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=Machine.here(),
        settings=settings,
        suite=bench.suite.record,
        generic=None if bench.generic is None else bench.generic.record,
        rule=settings.rule.sentences(),
        rows=judged(rows, settings.rule),
    )
    write_whole(out / FILE, card.model_dump_json(indent=2) + "\n")
    return card


def failure(error: Exception) -> tuple[str, str]:
    """Return what went wrong in one line, and the trace, if it was not a mistake that the user can mend."""
    if isinstance(error, PrbenchError):
        return error.message.splitlines()[0], ""
    words = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {words}", traceback.format_exc()


def _row_or_failure(entry: ScorecardModelConfig, bench: Bench, retime: bool) -> ScorecardRow:
    try:
        return _row(entry, bench, retime)
    except Exception as error:  # whatever a model's code may raise: the other rows must not go down with it
        reason, trace = failure(error)
        return ScorecardRow(name=entry.label, address=entry.address, leaks=entry.leaks, failed=reason, trace=trace)


def _row(entry: ScorecardModelConfig, bench: Bench, retime: bool) -> ScorecardRow:
    settings, model = bench.settings, load_model(entry.address, entry.options)
    by = ["unseen"] if any("unseen" in pair.tags for pair in bench.suite) else []
    session = bench.session(entry, model, bench.suite, split=settings.part, contexts=_contexts(entry, bench), by=by)
    personal = bench.run(session, bench.out / session.default_folder().name)
    generic = None
    if bench.generic is not None:
        contexts = _generic_contexts(entry, bench.generic)
        other = bench.session(entry, model, bench.generic, split=settings.generic_part, contexts=contexts)
        generic = bench.run(other, bench.out / other.default_folder().name)
    return make_row(entry, personal, generic, _latency(entry, session, bench, retime))


def _contexts(entry: ScorecardModelConfig, bench: Bench) -> list[str]:
    """The user shown, hidden, and exchanged; whose posts to exchange only where posts are shown."""
    if Context.parse(entry.context).name in ("plan", "oracle"):
        return ["none", entry.context]
    return ["none", entry.context, "other", *(["opposite"] if bench.suite.is_mirrored else [])]


def _generic_contexts(entry: ScorecardModelConfig, generic: Suite) -> list[str]:
    """Return the generic suite's contexts: without posts and, if some are lent, as the row shows them, or with all."""
    context = Context.parse(entry.context)
    if context.leaks or not all(POSTS_OF in pair.tags for pair in generic):
        return ["none"]
    return ["none", "profile" if context.name in ("diluted", "pairs") else entry.context]


def _latency(entry: ScorecardModelConfig, session: Session, bench: Bench, retime: bool) -> Latency | None:
    """Return the latency as it was measured on this machine before, or measure it now."""
    wanted = bench.settings.latency_pairs
    own = next((context for context in session.contexts if str(context) == entry.context), Context("none"))
    # Scores made elsewhere take no time, and beside a plan, who wrote it would have to be timed as well.
    if not wanted or isinstance(session.model, Replay) or own.name in ("plan", "profile+plan"):
        return None
    who = [session.identity["card"], str(own), session.suite.record.fingerprint]
    key = digest([who, Machine.here().model_dump(mode="json"), wanted])[:8]
    path = bench.out / "latency" / f"{folder_name(entry.address)}-{key}.json"
    if not retime and (known := _kept(path)) is not None:
        return known
    pairs = session.suite.limit(wanted + WARM_UP, session.config.seed)
    builder = ContextBuilder(session.everything, session.model, ranker=session.ranker, seed=session.config.seed)
    measured = measure_latency(session.model, pairs, builder, own)
    write_whole(path, measured.model_dump_json(indent=2) + "\n")
    return measured


def _kept(path: Path) -> Latency | None:
    """An earlier measurement; one that cannot be read is made again."""
    try:
        return read_model(path, Latency)
    except FileError:
        return None
