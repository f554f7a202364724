"""Boards made from run folders: one for each set of pairs, a section for each context, ranks as groups."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from prbench.config import digest
from prbench.data import Counts
from prbench.errors import ConfigError, PrbenchError
from prbench.files import exists
from prbench.report.finished import open_finished
from prbench.report.leaderboard.entry import BoardEntry, Named, make_entry, read_names
from prbench.results import BaselineResult, ContextResult, Effects, own_context, rank_rows, verdict
from prbench.stats import Standing
from prbench.types import CONTEXTS, Channel, Context

_ENOUGH = 0.5
"""A model without a verdict on more than this share of the pairs is listed but not ranked: what it answered is a choice
of its own."""


class BoardLine(NamedTuple):
    """One model in one context."""

    entry: BoardEntry
    measured: ContextResult
    standing: Standing | None
    """Place in the ranking; None where it is not ranked."""
    effects: Effects | None
    """Effects of showing the user, beside the context they are about; None in others."""


class BoardSection(NamedTuple):
    """All models in one context of a board, best first."""

    context: str
    leaks: bool
    lines: tuple[BoardLine, ...]
    ranked_on: int
    """The fewest pairs that two ranked models both judged."""


class Board(NamedTuple):
    """All runs on the same pairs."""

    suite: str
    split: str
    fingerprint: str
    counts: Counts
    sections: tuple[BoardSection, ...]
    baselines: Mapping[str, BaselineResult]

    @property
    def slug(self) -> str:
        """Anchor of its place on the page."""
        return f"board-{digest([self.suite, self.split, self.fingerprint])[:12]}"

    @property
    def sentence(self) -> str:
        """The verdict on the model that is best where it is shown the user, else on the first."""
        best = next(iter(self.sections[0].lines), None) if self.sections else None
        return verdict(best.entry.result).sentence if best is not None else ""

    @property
    def entries(self) -> list[BoardEntry]:
        """Return the runs of the board, each once."""
        return list({line.entry.slug: line.entry for section in self.sections for line in section.lines}.values())


class LeftOut(NamedTuple):
    """A folder that is not listed, and why."""

    path: Path
    reason: str


class BoardFolder(NamedTuple):
    """Boards of a folder of results, and what was left out."""

    boards: tuple[Board, ...]
    left_out: tuple[LeftOut, ...]


def find_runs(folder: Path) -> list[Path]:
    """All run folders in a folder, itself included; hidden folders are passed over."""
    if not exists(folder, raises=ConfigError) or not folder.is_dir():
        raise ConfigError(f"there is no folder {str(folder)!r}", hint="runs are below runs/ unless -o said otherwise")
    found = [path.parent for path in folder.rglob("config.toml") if (path.parent / "pairs.jsonl").is_file()]
    return sorted(path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts))


def read_boards(
    runs: Iterable[Path], names: Mapping[str, Named] | None = None, listener: Callable[[Path], None] | None = None
) -> BoardFolder:
    """Verify runs and sort them into boards.

    Args:
        runs: Run folders.
        names: What an address does not tell of a model.
        listener: Hears of each run before it is verified, which takes seconds.
    """
    entries: dict[str, BoardEntry] = {}
    left_out = []
    for path in runs:
        if listener is not None:
            listener(path)
        try:
            entry = make_entry(open_finished(path), names or {})
        except PrbenchError as error:
            left_out.append(LeftOut(path, error.message))
            continue
        twin = entries.get(entry.digest)
        if twin is not None:
            older, entry = sorted((twin, entry), key=lambda one: one.result.finished)
            left_out.append(LeftOut(older.run.loaded.path, f"the same run as {str(entry.run.loaded.path)!r}, older"))
        entries[entry.digest] = entry
    return BoardFolder(_boards(list(entries.values())), tuple(left_out))


def read_board_folder(folder: Path, listener: Callable[[Path], None] | None = None) -> BoardFolder:
    """All runs in a folder, with the names its `models.toml` gives them."""
    return read_boards(find_runs(folder), read_names(folder), listener)


def _boards(entries: Sequence[BoardEntry]) -> tuple[Board, ...]:
    groups: dict[tuple[str, str, str], list[BoardEntry]] = {}
    for entry in entries:
        dataset = entry.run.loaded.facts.dataset
        groups.setdefault((dataset.full_name, entry.result.split or "all", dataset.fingerprint), []).append(entry)
    boards = [_board(*key, group) for key, group in groups.items()]
    return tuple(sorted(boards, key=lambda board: (board.suite, -board.counts.pairs, board.fingerprint)))


def _board(suite: str, split: str, fingerprint: str, entries: Sequence[BoardEntry]) -> Board:
    contexts = {name for entry in entries for name in entry.result.contexts}
    sections = tuple(_section(name, entries) for name in sorted(contexts, key=_place))
    listed = {entry.run.loaded.facts.card.address for entry in entries}
    blind = {name: found for name, found in entries[0].result.baselines.items() if name not in listed}
    return Board(suite, split, fingerprint, entries[0].result.suite.counts, sections, blind)


def _section(context: str, entries: Sequence[BoardEntry]) -> BoardSection:
    present = [entry for entry in entries if context in entry.result.contexts]
    ranked = [entry for entry in present if _answers_enough(entry.result.contexts[context])]
    places = _places(ranked, context)
    lines = [
        BoardLine(
            entry,
            entry.result.contexts[context],
            places.get(entry.run.loaded.name),
            entry.result.effects if context == own_context(entry.result.contexts) else None,
        )
        for entry in present
    ]
    judged = [set(entry.run.loaded.credits[context].contents) for entry in ranked]
    common = min((len(one & two) for one, two in combinations(judged, 2)), default=sum(map(len, judged)))
    return BoardSection(context, Context.parse(context).leaks, tuple(sorted(lines, key=_order)), common)


def _answers_enough(measured: ContextResult) -> bool:
    missing = measured.without_verdict.value
    return measured.accuracy.value is not None and (missing or 0.0) <= _ENOUGH


def _places(ranked: Sequence[BoardEntry], context: str) -> dict[str, Standing]:
    places = rank_rows({entry.run.loaded.name: entry.run.loaded.credits[context] for entry in ranked})
    return {place.name: place for place in places}


def _order(line: BoardLine) -> tuple[float, float, str]:
    rank = float("inf") if line.standing is None else line.standing.best_rank
    return (rank, -(line.measured.accuracy.value or 0.0), line.entry.name)


def _place(name: str) -> tuple[bool, bool, bool, int, str]:
    """Order of boards: the user's own posts first, then other ways to show this user, then controls, then leaks."""
    context = Context.parse(name)
    kind = context.kind
    without_posts = kind.own and Channel.POSTS not in kind.needs
    return (context.leaks, not kind.own, without_posts, list(CONTEXTS).index(context.name), name)
