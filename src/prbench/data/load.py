"""Loading of the suite that a user names: a registered name, a local copy of one, a file, or a folder of files.

A name is tried before a path (write `./prb` for a file called `prb`). Everything is read and checked before anything is
returned; the first mistake ends the reading with file, line and field.
"""

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from prbench._version import __version__
from prbench.columns import ModelColumns
from prbench.data.compact import read_compact
from prbench.data.hub_tables import FileTable, FolderTables, TableFile, Tables, guess_split, list_splits
from prbench.data.layout import RowReader
from prbench.data.lend import lend_posts
from prbench.data.registry import HubSuite, Kind, embedded, installed, installed_path, published, suites
from prbench.data.rows import RowBatch, SourceRow, batches, read_batches, read_rows, stem_of
from prbench.data.structure import Mirrors, check_structure
from prbench.data.suite import Suite, pair_columns
from prbench.errors import DataError, did_you_mean
from prbench.files import MAX_LINE_BYTES, exists
from prbench.types import Pair, Question


class _Source(NamedTuple):
    """A resolved source: how its rows are read, and what its record will say."""

    name: str
    source: str
    kind: Kind | None
    rows: Callable[[Counter[str]], Iterator[SourceRow]]
    revision: Callable[[], str] = str
    columns: Callable[[], Iterator[RowBatch]] | None = None
    """The same rows by column, where they can be read so."""

    def batches(self, left_out: Counter[str]) -> Iterator[RowBatch]:
        """All rows by column."""
        return batches(self.rows(left_out)) if self.columns is None else self.columns()


def load_pairs(
    source: str | Path,
    *,
    split: str | None = None,
    columns: Mapping[str, str] | None = None,
    revision: str | None = None,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Suite:
    """Load the pairs of a suite.

    Args:
        source: A registered name (`mirror`, `mirror@1`, `prb`, `prb/Art`; see `suites()`), a local copy of one as
            `NAME=DIR` or `NAME=FILE`, a JSONL, Parquet or CSV file (JSONL and CSV may be gzipped), or a folder of such
            files, where each file's name is its split.
        split: Keep only this split; None keeps all.
        columns: Field → column, where your columns have other names: `{"question": "prompt_text"}`.
        revision: Branch, tag or commit of a hub dataset.
        max_line_bytes: Longest line that is read.

    Returns:
        The pairs, each with a tag `split`, and the record of where they came from.

    Raises:
        DataError: If anything is missing, doubled, empty or of the wrong type.

    Example:
        >>> import json, pathlib, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> file = pathlib.Path(folder.name, "tea.jsonl")
        >>> row = {"prompt": "Tea?", "chosen": "Green.", "rejected": "Black."}
        >>> _ = file.write_text(json.dumps(row))
        >>> suite = load_pairs(file)
        >>> suite[0].question, dict(suite.record.columns), dict(suite.record.splits)
        ('Tea?', {'question': 'prompt'}, {'test': 1})
        >>> folder.cleanup()
    """
    shipped = embedded().get(source) if isinstance(source, str) else None
    if shipped is not None and shipped.file.suffix == ".parquet":
        _refuse_revision(revision, str(source))
        pairs = read_compact(shipped.file)
        if shipped.posts is not None:
            pairs = pair_columns(lend_posts(pairs, read_compact(shipped.posts)))
        pairs = _select_pairs(pairs, split, str(source))
        return Suite.of(pairs, name=shipped.name, source="embedded", revision=shipped.version or __version__)
    found = _resolve(source, split, revision, max_line_bytes)
    if found.kind == "questions":
        raise DataError(
            f"{found.name!r} has questions but no answers, so there are no pairs to load",
            hint="read it with load_questions, or write the answers with `prbench build`",
        )
    reader = RowReader(columns)
    pairs = reader.read_pairs(found.batches(reader.left_out))
    _refuse_nothing(pairs, found, reader)
    Mirrors(pairs, reader.where).check_whole()
    check_structure(pairs, reader.where)
    return Suite.of(
        _select_pairs(pairs, split, found.source),
        name=found.name,
        source=found.source,
        revision=found.revision(),
        derived_users=reader.derived_users,
        columns=reader.columns,
        notes=reader.notes(),
    )


def load_questions(
    source: str | Path,
    *,
    split: str | None = None,
    columns: Mapping[str, str] | None = None,
    revision: str | None = None,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> tuple[Question, ...]:
    """Load questions with profile, narrative and rubric, without answers: what a builder starts from.

    Takes the same sources as `load_pairs`, and `lamp-qa`. Of a source of pairs the answers are ignored.

    Example:
        >>> import pathlib, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> file = pathlib.Path(folder.name, "train.jsonl")
        >>> _ = file.write_text('{"id": 7, "question": "Tea?", "profile": ["I like tea."]}')
        >>> [(question.id, question.tags["split"]) for question in load_questions(file)]
        [('7', 'train')]
        >>> folder.cleanup()
    """
    if isinstance(source, str) and source in embedded() and embedded()[source].posts is not None:
        known = Question.model_fields
        pairs = load_pairs(source, split=split, revision=revision)
        return tuple(Question.model_construct(**{name: getattr(pair, name) for name in known}) for pair in pairs)
    found = _resolve(source, split, revision, max_line_bytes)
    reader = RowReader(columns)
    questions = reader.read_questions(found.rows(reader.left_out))
    _refuse_nothing(questions, found, reader)
    return tuple(_select(questions, split, found.source))


def _select_pairs(pairs: ModelColumns[Pair], split: str | None, source: str) -> ModelColumns[Pair]:
    """The pairs of a split."""
    if split is None:
        return pairs
    splits = pairs.entries("tags", "split")
    if split not in splits:
        raise _no_split(split, splits, source)
    return pairs.where([found == split for found in splits])


def _no_split(split: str, present: Iterable[str | None], source: str) -> DataError:
    names = ", ".join(sorted({name or "" for name in present}))
    return DataError(f"{source} has no split {split!r}", hint=f"splits present: {names}")


def _resolve(source: str | Path, split: str | None, revision: str | None, max_line_bytes: int) -> _Source:
    text = str(source)
    name, equals, folder = text.partition("=")
    if isinstance(source, str):
        if source in published():
            return _from_hub(published()[source], split, revision)
        if equals and name in published():
            return _from_copy(published()[name], Path(folder).expanduser(), revision, max_line_bytes)
        if source in embedded():
            _refuse_revision(revision, source)
            shipped = embedded()[source]
            file = TableFile(shipped.file, "test")
            revision = shipped.version or __version__
            return _from_files(shipped.name, "embedded", [file], max_line_bytes)._replace(revision=lambda: revision)
    offered = isinstance(source, str) and source in installed()
    path = installed_path(text) if offered else Path(source).expanduser()
    _refuse_revision(revision, text)
    if exists(path, raises=DataError) and path.is_dir():
        return _from_files(path.resolve().name, text, list_splits(path), max_line_bytes)
    if path.exists():
        return _from_files(stem_of(path), text, [TableFile(path, guess_split(path))], max_line_bytes)
    raise _not_found(source, path)


def _from_hub(suite: HubSuite, split: str | None, revision: str | None) -> _Source:
    if not suite.on_hub:
        raise DataError(
            f"{suite.name!r} is read from a local copy", hint=f"get it from {suite.repo} and pass {suite.name}=DIR"
        )
    from prbench.data.hub import HubTables

    tables = HubTables(suite.name, suite.repo, split=None if suite.own_splits else split, revision=revision)
    return _Source(
        suite.name,
        f"hub:{suite.repo}",
        suite.kind,
        lambda left_out: suite.recipe(tables, suite.tables, left_out),
        lambda: tables.revision,
    )


def _from_copy(suite: HubSuite, folder: Path, revision: str | None, max_line_bytes: int) -> _Source:
    _refuse_revision(revision, f"{suite.name}={folder}")
    tables: Tables
    if folder.is_file() and len(suite.tables) == 1:
        tables = FileTable(folder, split=suite.split, max_line_bytes=max_line_bytes)
    elif folder.is_dir():
        tables = FolderTables(folder, split=suite.split, max_line_bytes=max_line_bytes)
    else:
        raise DataError(
            f"{str(folder)!r} is no folder, so it holds no copy of {suite.name!r}",
            hint=f"download {suite.repo} from the hub into a folder and pass {suite.name}=DIR",
        )
    return _Source(
        suite.name,
        f"{suite.name}={folder}",
        suite.kind,
        lambda left_out: suite.recipe(tables, suite.tables, left_out),
    )


def _from_files(name: str, source: str, files: list[TableFile], max_line_bytes: int) -> _Source:
    def read(left_out: Counter[str]) -> Iterator[SourceRow]:
        for file in files:
            yield from read_rows(file.path, split=file.split, max_line_bytes=max_line_bytes)

    def columns() -> Iterator[RowBatch]:
        for file in files:
            yield from read_batches(file.path, split=file.split, max_line_bytes=max_line_bytes)

    return _Source(name, source, None, read, columns=columns)


def _select(items: list[Question], split: str | None, source: str) -> list[Question]:
    if split is None:
        return items
    kept = [item for item in items if item.tags.get("split") == split]
    if not kept:
        raise _no_split(split, (item.tags.get("split") for item in items), source)
    return kept


def _refuse_nothing(items: Sequence[Question], found: _Source, reader: RowReader) -> None:
    if not len(items):
        raise DataError(f"{found.source} gives nothing to load", hint="; ".join(reader.notes()))


def _refuse_revision(revision: str | None, source: str) -> None:
    if revision is not None:
        raise DataError(
            f"revision {revision!r} means nothing for {source!r}, which is not on the hub",
            hint="leave it out: local data is pinned by its fingerprint",
        )


def _not_found(source: str | Path, path: Path) -> DataError:
    text, names = str(source), [suite.name for suite in suites()]
    if isinstance(source, str):
        name, equals, _ = text.partition("=")
        if equals:
            return DataError(f"{text!r} is no file, and {name!r} no suite", hint=did_you_mean(name, names))
        if "." not in text and ("/" not in text or text.partition("/")[0] in names):
            return DataError(f"{text!r} is neither a suite nor a file", hint=did_you_mean(text, names))
    if not path.parent.is_dir():
        return DataError(f"{text!r} does not exist, nor does its folder", hint=f"looked in {path.parent.absolute()}")
    near = difflib.get_close_matches(path.name, [item.name for item in path.parent.iterdir()], n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "`prbench suites` lists the suites with a name"
    return DataError(f"{text!r} does not exist", hint=hint)
