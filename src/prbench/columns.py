"""Many models of one kind, kept by field: a million of them are a dozen lists and arrays, and no object each.

An object is made only where one is asked for, and is not kept. What works on all of them works on columns.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import compress, islice, repeat
from json.encoder import encode_basestring as _quoted
from operator import add
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, get_args, get_origin, overload

from pydantic import BaseModel
from pydantic_core import to_json

if TYPE_CHECKING:
    from numpy.typing import NDArray

M = TypeVar("M", bound=BaseModel)
Column: TypeAlias = "list[Any] | array[Any]"

_FEW = 4096
"""Distinct values up to which a column keeps one copy of each."""
_BLOCK = 8192
"""Rows that are written at once."""
_NAN = float("nan")


class ModelColumns(Sequence[M], Generic[M]):
    """Models of one kind, by field.

    Numbers are arrays, in which NaN stands for None; equal values of which there are few are one object; mappings and
    nested models are kept as tuples of their values.

    Args:
        model: What a row is. Its numbers are finite.
        whole: Fields whose values are kept as they are, since rows share them.

    Example:
        >>> class Cup(BaseModel):
        ...     tea: str
        ...     sugar: float | None = None
        >>> cups = ModelColumns(Cup)
        >>> cups.extend([Cup(tea="green"), Cup(tea="black", sugar=1.5)])
        >>> len(cups), cups[1], cups.column("tea")
        (2, Cup(tea='black', sugar=1.5), ['green', 'black'])
    """

    def __init__(self, model: type[M], whole: Iterable[str] = ()) -> None:
        self.model = model
        self._whole = frozenset(whole)
        fields = {name: field.annotation for name, field in model.model_fields.items()}
        self._fields = {name: _Field(None if name in self._whole else kind) for name, kind in fields.items()}
        self._packs = [(name, field.column.append, field.pack) for name, field in self._fields.items()]
        self._unpacks = [(name, field.column, field.unpack) for name, field in self._fields.items()]
        self._defaults = [field.get_default() for field in model.model_fields.values()]
        self._entries: dict[tuple[str, str], list[str | None]] = {}

    def append(self, item: M) -> None:
        """Keep one more; the object itself is not kept."""
        self.add(item.__dict__)

    def add(self, values: Mapping[str, Any]) -> None:
        """Keep one more, given by all its fields."""
        for name, keep, pack in self._packs:
            keep(pack(values[name]))

    def add_rows(self, rows: Iterable[Sequence[Any]]) -> None:
        """Keep many more, each given by the values of all its fields in their order; models come as they are kept."""
        for field, values in zip(self._fields.values(), zip(*rows, strict=True), strict=False):
            field.extend(values, packed=bool(field.names))

    def extend(self, items: Iterable[M]) -> None:
        """Append more rows to the columns; the objects themselves are not kept."""
        rest = iter(items)
        while batch := [item.__dict__ for item in islice(rest, _BLOCK)]:
            self.add_columns({name: [values[name] for values in batch] for name in self._fields})

    def add_columns(self, values: Mapping[str, Iterable[Any]], packed: Iterable[str] = ()) -> None:
        """Keep many more, given by all values of each field.

        Args:
            values: Values of every field.
            packed: Fields whose values come as other columns of the same kind keep them.
        """
        for name, field in self._fields.items():
            field.extend(values[name], packed=name in packed)

    def replace(self, place: int, values: Iterable[Any]) -> None:
        """Put another row in the place of one, given as in `add_rows`."""
        for field, value in zip(self._fields.values(), values, strict=True):
            field.column[place] = value if field.names else field.pack(value)

    def column(self, name: str) -> Column:
        """All values of a field as they are kept: of a mapping its keys and its values, of models tuples of values."""
        return self._fields[name].column

    def numbers(self, name: str) -> "NDArray[Any]":
        """All values of a field of numbers, as they are now; NaN stands for None."""
        import numpy as np

        return np.array(self._fields[name].column)

    def entries(self, name: str, key: str) -> list[str | None]:
        """Return the value of every row under a key of a mapping, None where it has not the key.

        Example:
            >>> class Page(BaseModel):
            ...     tags: dict[str, str]
            >>> pages = ModelColumns(Page)
            >>> pages.extend([Page(tags={"lang": "en"}), Page(tags={})])
            >>> pages.entries("tags", "lang")
            ['en', None]
        """
        column, known = self._fields[name].column, self._entries.get((name, key))
        if known is None or len(known) < len(column):
            known = self._entries[name, key] = _entries(column, key)
        return known

    def jsonl(self) -> Iterator[bytes]:
        r"""Blocks of lines of JSON, one line for each row, without the fields that have their default.

        Example:
            >>> class Cup(BaseModel):
            ...     tea: str
            ...     sugar: float | None = None
            >>> cups = ModelColumns(Cup)
            >>> cups.extend([Cup(tea="green"), Cup(tea="black", sugar=1.5)])
            >>> list(cups.jsonl())
            [b'{"tea":"green"}\n{"tea":"black","sugar":1.5}\n']
        """
        columns = [field.column for field in self._fields.values()]
        for start in range(0, len(self), _BLOCK):
            yield self._text(column[start : start + _BLOCK] for column in columns).encode()

    def written(self, rows: Iterable[Sequence[Any]]) -> str:
        """Rows that are given as in `add_rows`, as lines of JSON."""
        return self._text(zip(*rows, strict=True))

    def _text(self, columns: Iterable[Sequence[Any]]) -> str:
        named = zip(self._fields.items(), columns, self._defaults, strict=True)
        parts = [(len(values), field.written(name, values, default)) for (name, field), values, default in named]
        filled = [repeat(part, rows) if isinstance(part, str) else part for rows, part in parts if part]
        return "".join(["{" + "".join(row)[:-1] + "}\n" for row in zip(*filled, strict=True)])

    def where(self, mask: Iterable[bool]) -> "ModelColumns[M]":
        """The rows for which the mask holds."""
        chosen = list(mask)
        return self._part(lambda column: compress(column, chosen))

    def _part(self, choose: Callable[[Column], Iterable[Any]]) -> "ModelColumns[M]":
        part = ModelColumns(self.model, self._whole)
        for name, field in self._fields.items():
            part._fields[name].column.extend(choose(field.column))
        return part

    def __len__(self) -> int:
        return len(next(iter(self._fields.values())).column)

    @overload
    def __getitem__(self, place: int) -> M: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[M, ...]: ...
    def __getitem__(self, place: int | slice) -> M | tuple[M, ...]:
        if isinstance(place, slice):
            return tuple(self[i] for i in range(*place.indices(len(self))))
        return _made(self.model, {name: unpack(column[place]) for name, column, unpack in self._unpacks})

    def __iter__(self) -> Iterator[M]:
        return (self[place] for place in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # as a list


class _Field:
    """One column, and how a value becomes what is kept there."""

    def __init__(self, kind: Any) -> None:
        kinds = [part for part in get_args(kind) if part is not type(None)] or [kind]
        self.column: Column = []
        self.pack: Callable[[Any], Any] = self._share
        self.unpack: Callable[[Any], Any] = _same
        self._known: dict[Any, Any] = {}
        self._many = False
        """Whether nearly all values are distinct, so that looking for equal ones is of no use."""
        self.names: list[str] = []
        """Fields of nested models."""
        self._texts: dict[Any, str] = {}
        """All but the first of them, as JSON."""
        self._rest: tuple[Any, ...] | None = None
        self._rest_text = ""
        """The last of these, which are often the same one after the other."""
        self._begins: dict[tuple[str, ...], list[str]] = {}
        """Keys of mappings, as JSON."""
        if kinds == [float]:
            self.column, self.pack, self.unpack = array("d"), _or_nan, _or_none
        elif kinds == [int]:
            self.column, self.pack = array("q"), _same
        elif kind is None:
            self.pack = _same
        elif get_origin(kind) in (Mapping, dict):
            self.pack, self.unpack = self._pack_mapping, _unpack_mapping
        elif get_origin(kind) is tuple and _is_model(kinds[0]):
            self._model: type[BaseModel] = kinds[0]
            self.names = list(self._model.model_fields)
            self._defaults = [field.get_default() for field in self._model.model_fields.values()]
            self.pack, self.unpack = self._pack_models, self._unpack_models

    def extend(self, values: Iterable[Any], *, packed: bool) -> None:
        """Keep many more values; those that are packed come as they are kept."""
        if packed or self.pack is _same:
            self.column.extend(values)
        elif isinstance(self.column, array):
            self.column.fromlist([_NAN if value is None else value for value in values])
        elif self.pack == self._share:
            self.column.extend(self._share_all(list(values)))
        else:
            self.column.extend(map(self.pack, values))

    def _share_all(self, values: list[Any]) -> list[Any]:
        """One object for equal values, as long as there are few of them."""
        known = self._known
        if self._many:
            return values
        if len(known) >= _FEW:
            return [known.get(value, value) for value in values]
        shared = list(map(known.setdefault, values, values))
        self._many = len(known) >= _FEW and 2 * len(known) > len(self.column) + len(values)
        if self._many:
            known.clear()
        return shared

    def written(self, name: str, values: Sequence[Any], default: Any) -> list[str] | str:
        """Each value as a part of a line of JSON, a comma behind it; empty where it is the default.

        One text stands for all where they are equal.
        """
        if len(values) > 1 and values.count(values[0]) == len(values):
            return self._written(name, values[:1], default)[0]
        return self._written(name, values, default)

    def _written(self, name: str, values: Sequence[Any], default: Any) -> list[str]:
        begin = f"{_quoted(name)}:"
        if isinstance(self.column, array):
            numbers = to_json(list(values)).decode()[1:-1].split(",")
            both = zip(numbers, values, strict=True)
            return ["" if value == default or value != value else f"{begin}{number}," for number, value in both]
        if self.names:
            return [f"{begin}[{','.join(map(self._model_text, value))}]," if value else "" for value in values]
        if self.unpack is _unpack_mapping:
            return [f"{begin}{{{self._mapping_text(*value)}}}," if value[0] else "" for value in values]
        return ["" if value == default else f"{begin}{json_text(value)}," for value in values]

    def _mapping_text(self, keys: tuple[str, ...], values: tuple[str, ...]) -> str:
        if (begins := self._begins.get(keys)) is None:
            begins = self._begins[keys] = [f"{_quoted(key)}:" for key in keys]
        return ",".join(map(add, begins, map(_quoted, values)))

    def _model_text(self, packed: tuple[Any, Any]) -> str:
        """A model as it is kept, written without the fields that have their default."""
        first, rest = packed
        if rest is not self._rest:
            self._rest, self._rest_text = rest, self._rest_of(rest)
        return f"{{{_quoted(self.names[0])}:{_quoted(first)}{self._rest_text}}}"

    def _rest_of(self, rest: tuple[Any, ...]) -> str:
        if (text := self._texts.get(rest)) is None:
            named = zip(self.names[1:], rest, self._defaults[1:], strict=True)
            text = "".join(
                [f",{_quoted(name)}:{json_text(value)}" for name, value, default in named if value != default]
            )
            if len(self._texts) < _FEW:
                self._texts[rest] = text
        return text

    def _share(self, value: Any) -> Any:
        if len(self._known) < _FEW:
            return self._known.setdefault(value, value)
        return self._known.get(value, value)

    def _pack_mapping(self, value: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        keys = tuple(value)
        return self._known.setdefault(keys, keys), tuple(value.values())

    def _pack_models(self, models: Sequence[BaseModel]) -> tuple[Any, ...]:
        """The first field, which names a model, and all others together, which many models share."""
        packed = []
        for model in models:
            first, *rest = (model.__dict__[name] for name in self.names)
            packed.append((first, self._share(tuple(rest))))
        shared: tuple[Any, ...] = self._share(tuple(packed))
        return shared

    def _unpack_models(self, packed: Sequence[Any]) -> tuple[BaseModel, ...]:
        if not packed:
            return ()
        model, names = self._model, self.names
        return tuple([_made(model, dict(zip(names, (first, *rest), strict=True))) for first, rest in packed])


def _entries(column: Iterable[tuple[tuple[str, ...], tuple[str, ...]]], key: str) -> list[str | None]:
    """The value under a key of each mapping as it is kept."""
    keys = {id(names): names for names, _ in column}
    places = {number: names.index(key) if key in names else -1 for number, names in keys.items()}
    if len(set(places.values())) == 1:  # all have it in the same place
        place = next(iter(places.values()))
        return [values[place] for _, values in column] if place >= 0 else [None for _ in column]
    found = ((values, places[id(names)]) for names, values in column)
    return [values[place] if place >= 0 else None for values, place in found]


def json_text(value: Any) -> str:
    """A value as JSON, as a model writes it.

    Example:
        >>> json_text("tea"), json_text(1.0)
        ('"tea"', '1.0')
    """
    if type(value) is str:  # most are
        return _quoted(value)
    return to_json(value).decode()


def _made(model: type[M], values: dict[str, Any]) -> M:
    """A model of values that were checked before, made as pickle makes one again; `model_construct` takes longer."""
    one = model.__new__(model)
    one.__setstate__(
        {
            "__dict__": values,
            "__pydantic_fields_set__": set(values),
            "__pydantic_extra__": None,
            "__pydantic_private__": None,
        }
    )
    return one


def _same(value: Any) -> Any:
    return value


def _or_nan(value: float | None) -> float:
    return _NAN if value is None else value


def _or_none(value: float) -> float | None:
    return None if value != value else value


def _unpack_mapping(packed: tuple[tuple[str, ...], tuple[str, ...]]) -> dict[str, str]:
    return dict(zip(*packed, strict=True))


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
