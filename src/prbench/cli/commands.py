"""Bodies of the commands: read options, call the rooms below, print."""

import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import typer

from prbench import report, show
from prbench.calls import Workers
from prbench.config import RunConfig
from prbench.errors import ConfigError, did_you_mean
from prbench.results import Loaded, Moment, RunFolder, definitions, load_run, standings, verdict, versus
from prbench.results import history as run_history
from prbench.results import verify as run_verify
from prbench.run import Evaluation, Running, Session, evaluate_session, fetch_matcher, forecast_session
from prbench.show import Format, Table

EXIT_BELOW = 1
EXIT_INTERRUPTED = 130


def run(
    settings: dict[str, Any],
    *,
    out: Path | None,
    dry_run: bool,
    fail_under: float | None,
    max_cost: float | None,
    use_cache: bool,
    fresh: bool,
    workers: str | None,
    engine: str,
    quiet: bool,
    format: str,
    full: bool = False,
    page: bool = False,
    track: str | None = None,
) -> None:
    """Evaluate, print the verdict and what it rests on, and say where the run is."""
    if track is not None:
        report.check_tracker(track)
    running = Running(Workers.of(engine, workers), use_cache, fresh, max_cost, quiet)
    session = Session(RunConfig.of(**settings))
    if not quiet:
        for line in (*session.everything.record.notes, *session.notes):
            _say(f"note: {line}")
    folder = RunFolder(out or session.default_folder())
    if dry_run:
        estimate = forecast_session(session, folder, running)
        _print([report.forecast_table(estimate)], format, estimate.model_dump(mode="json"))
        return
    found = _evaluate(session, folder, running)
    _show(found, format, full)
    if not session.model.card.reusable and not fresh and found.timing and found.timing.calls_asked == 0:
        _say("note: all records were there already; this model's code cannot be pinned, --fresh asks it anew")
    if not quiet:
        more = "" if full else "; --full prints all tables"
        _say(f"\nrun: {found.folder}    (the same command continues it{more})")
    if page and found.folder is not None:
        _write_page(found.folder)
    if track is not None and found.folder is not None:
        _say(f"{track}: {report.track(found.folder, track)}")
    _refuse_nothing(found)
    _gate(found, fail_under)


def _evaluate(session: Session, folder: RunFolder, running: Running) -> Evaluation:
    if session.planner is not None and (reason := fetch_matcher()):
        _say(f"note: how good the plans are is not measured: {reason}")
    try:
        return evaluate_session(session, folder, running)
    except KeyboardInterrupt:
        _say(f"\nstopped; the same command continues {folder.path}")
        raise typer.Exit(EXIT_INTERRUPTED) from None


def _show(found: Evaluation, format: str, full: bool) -> None:
    """Print the verdict and the tables."""
    brief = format in ("table", "md") and not full
    if format in ("table", "md"):
        typer.echo(_folded(verdict(found).sentence) + "\n")
    _print(report.brief_tables(found) if brief else report.run_tables(found), format, found.to_json())
    if found.timing and found.timing.note:
        _say(f"note: {found.timing.note}")


def _write_page(folder: Path) -> None:
    from prbench.files import write_whole
    from prbench.report.page import report_page

    target = folder / "report.html"
    write_whole(target, report_page([folder]))
    typer.echo(f"report: {target}")


def compare(runs: Sequence[Path], context: str | None, flips: int, format: str) -> None:
    """Two runs against each other, or several in order."""
    if len(runs) < 2:
        raise ConfigError("compare needs at least two runs", hint="prbench compare RUN_A RUN_B")
    loaded = [load_run(path) for path in runs]
    if format in ("table", "md"):
        for run in loaded:
            typer.echo(_folded(verdict(run.result).sentence) + "\n")
    if len(loaded) > 2:
        first = versus(loaded[0], loaded[1], context)
        places = standings(loaded, first.context)
        data: Any = [{**_fields(place), "letters": "".join(place.letters)} for place in places]
        _print([report.standings_table(places, first.context)], format, data)
        return
    found = versus(loaded[0], loaded[1], context)
    tables = [report.versus_table(found)]
    if flips and (found.won or found.lost):
        tables.append(report.flips_table(found, flips))
    comparison = {**_fields(found.comparison), "difference": found.comparison.difference.to_json()}
    _print(tables, format, {**found._asdict(), "comparison": comparison})


def verify(path: Path, format: str = "table") -> None:
    """Recompute a run's aggregates; exit 1 if one differs."""
    found = run_verify(path)
    data = {"values": found.numbers, "mismatches": [item._asdict() for item in found.mismatches]}
    if found.mismatches or format == "json":
        _print([report.verification_table(found)], format, data)
    if found.mismatches:
        _say(f"\n{len(found.mismatches):,} of {found.numbers:,} values differ from what the records give")
        raise typer.Exit(EXIT_BELOW)
    if format != "json":
        typer.echo(f"verified: all {found.numbers:,} values of {path} follow from its records")


def history(runs: Sequence[Path], context: str | None, as_given: bool, format: str) -> None:
    """Runs in time, regressions flagged."""
    finished = [path for path in runs if (path / "result.json").is_file()]
    for path in runs:
        if path not in finished:
            _say(f"note: {path} is not a finished run and is left out")
    if not finished:
        raise ConfigError("none of the folders holds a finished run", hint="prbench run … makes one")
    series = _series([load_run(path) for path in finished], as_given)
    histories = [run_history(loaded, context) for loaded in series]
    tables = [report.history_table(moments, _context_of(moments, context)) for moments in histories]
    _print(tables, format, [[_moment(moment) for moment in moments] for moments in histories])
    if any(moments[-1].regressed for moments in histories):
        raise typer.Exit(EXIT_BELOW)


def _series(runs: Sequence[Loaded], as_given: bool) -> list[list[Loaded]]:
    """Return one series of all runs as given; else one for each model and suite, in the order of finishing."""
    if as_given:
        return [list(runs)]
    series: dict[tuple[str, str, str], list[Loaded]] = {}
    for run in sorted(runs, key=lambda run: run.result.finished):
        dataset = run.facts.dataset
        series.setdefault((run.facts.card.address, dataset.full_name, str(run.config.split)), []).append(run)
    return list(series.values())


def _context_of(moments: Sequence[Moment], context: str | None) -> str:
    changed = next((moment.change for moment in moments if moment.change), None)
    credits = moments[0].run.credits
    return changed.context if changed else (context or ("profile" if "profile" in credits else next(iter(credits))))


def _moment(moment: Moment) -> dict[str, Any]:
    return {
        "run": str(moment.run.path),
        "model": moment.run.facts.card.address,
        "finished": moment.made,
        "accuracy": moment.accuracy.to_json(),
        "change": moment.change.comparison.difference.to_json() if moment.change else None,
        "p": moment.p,
        "regressed": moment.regressed,
    }


def suites(format: str) -> None:
    """The suites that can be named."""
    from prbench.data import suites as known

    rows = [[info.name, info.kind, info.where, info.summary] for info in known()]
    rows.append(["FILE", "pairs", "path", "any JSONL, JSON, CSV, TSV or Parquet file of pairs"])
    _list("Suites", ["name", "kind", "where", "what"], rows, format)


def models(format: str) -> None:
    """The kinds of model address."""
    from prbench.models import schemes

    rows = [[scheme.pattern, scheme.summary] for scheme in schemes().values()]
    _list("Model addresses", ["address", "what"], rows, format)


def doctor(format: str) -> None:
    """Print what is installed and where things are kept."""
    from prbench.cli.doctor import examine

    _list("prbench doctor", ["what", "state", "way out"], examine(), format)


def _folded(text: str) -> str:
    """A sentence in lines that fit the terminal."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 120
    indent = text[: len(text) - len(text.lstrip())] + ("  " if text.lstrip().startswith("- ") else "")
    return textwrap.fill(
        text,
        max(40, min(width, 120)),
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def explain(name: str | None) -> None:
    """Print what a column, metric, effect or grade means."""
    found = definitions()
    if name is None:
        typer.echo("prbench explain NAME; NAME is one of:\n" + _folded(", ".join(sorted(found))))
        return
    key = " ".join(name.lower().replace("_", " ").replace("-", " ").split())
    matches = {title: text for title, text in found.items() if key in (part.strip() for part in title.split(","))}
    if not matches:
        names = [part.strip() for title in found for part in title.split(",")]
        raise ConfigError(f"there is no {name!r} to explain", hint=did_you_mean(key, names))
    for title, text in matches.items():
        typer.echo("\n".join(_folded(line) for line in f"{title}: {text}".splitlines()))


def _refuse_nothing(found: Evaluation) -> None:
    """Exit with 1 where not a single record has a verdict, with the reason that most of them give."""
    if any(context.accuracy.n for context in found.contexts.values()):
        return
    reasons = Counter(record.reason for record in found.records if record.reason)
    (reason, count), *_ = reasons.most_common(1) or [("there are no records", 0)]
    _say(f"error: no verdict in {len(found.records):,} records; {count:,} times: {reason}")
    raise typer.Exit(EXIT_BELOW)


def _gate(found: Evaluation, fail_under: float | None) -> None:
    if fail_under is None:
        return
    name = found.headline
    context = found.contexts[name] if name is not None else None
    if context is None or context.bounds is None:
        _say("fail-under: there is no accuracy to judge")
        raise typer.Exit(EXIT_BELOW)
    surely = context.bounds.low
    if surely < fail_under:
        missing = context.pairs - context.accuracy.n
        counted = f" with {missing:,} missing verdicts counted as wrong" if missing else ""
        _say(f"fail-under: accuracy {surely:.4f} in context {name!r}{counted} is below {fail_under}")
        raise typer.Exit(EXIT_BELOW)


def _fields(thing: Any) -> dict[str, Any]:
    return {name: getattr(thing, name) for name in thing.__slots__}


def _list(title: str, columns: list[str], rows: list[list[str]], format: str) -> None:
    table = Table(title, columns, rows, first_numeric=len(columns))
    typer.echo(show.render([table], cast(Format, format)))


def _print(tables: Sequence[Table], format: str, data: Any) -> None:
    if format == "json":
        import json

        typer.echo(json.dumps(data, ensure_ascii=False, indent=2, default=str, allow_nan=False))
    else:
        typer.echo(show.render(tables, cast(Format, format)))


def _say(line: str) -> None:
    folds = sys.stderr.isatty()
    print("\n".join(_folded(part) for part in line.split("\n")) if folds else line, file=sys.stderr)
