"""Many models of one kind, kept by field: a million of them are a dozen lists and arrays, and no object each.

An object is made only where one is asked for, and is not kept. What works on all of them works on columns.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, get_args, get_origin, overload

from pydantic import BaseModel
from pydantic_core import to_json

if TYPE_CHECKING:
    from numpy.typing import NDArray

M = TypeVar("M", bound=BaseModel)
Column: TypeAlias = "list[Any] | array[Any]"

_FEW = 4096
"""Distinct values up to which a column keeps one copy of each."""
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

    def append(self, item: M) -> None:
        """Keep one more; the object itself is not kept."""
        self.add(item.__dict__)

    def add(self, values: Mapping[str, Any]) -> None:
        """Keep one more, given by all its fields."""
        for name, keep, pack in self._packs:
            keep(pack(values[name]))

    def extend(self, items: Iterable[M]) -> None:
        """Append more rows to the columns."""
        for item in items:
            self.add(item.__dict__)

    def replace(self, place: int, item: M) -> None:
        """Put another model in the place of one."""
        for name, field in self._fields.items():
            field.column[place] = field.pack(item.__dict__[name])

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
        places: dict[tuple[str, ...], int] = {}
        found: list[str | None] = []
        for keys, values in self._fields[name].column:
            if (place := places.get(keys)) is None:
                place = places[keys] = keys.index(key) if key in keys else -1
            found.append(values[place] if place >= 0 else None)
        return found

    def lines(self) -> Iterator[bytes]:
        r"""Each row as a line of JSON without the fields that have their default, as a model writes itself.

        Example:
            >>> class Cup(BaseModel):
            ...     tea: str
            ...     sugar: float | None = None
            >>> cups = ModelColumns(Cup)
            >>> cups.extend([Cup(tea="green"), Cup(tea="black", sugar=1.5)])
            >>> list(cups.lines())
            [b'{"tea":"green"}\n', b'{"tea":"black","sugar":1.5}\n']
        """
        names = list(self._fields)
        defaults = [field.get_default() for field in self.model.model_fields.values()]
        unpacks = [field.unpack for field in self._fields.values()]
        for row in zip(*(field.column for field in self._fields.values()), strict=True):
            values = [unpack(value) for unpack, value in zip(unpacks, row, strict=True)]
            said = zip(names, values, defaults, strict=True)
            yield to_json({name: value for name, value, default in said if value != default}) + b"\n"

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
        values = {name: field.unpack(field.column[place]) for name, field in self._fields.items()}
        return self.model.model_construct(**values)

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
            self._names = list(self._model.model_fields)
            self.pack, self.unpack = self._pack_models, self._unpack_models

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
            first, *rest = (model.__dict__[name] for name in self._names)
            packed.append((first, self._share(tuple(rest))))
        return tuple(packed)

    def _unpack_models(self, packed: Sequence[Any]) -> tuple[BaseModel, ...]:
        if not packed:
            return ()
        make = self._model.model_construct
        return tuple(make(**dict(zip(self._names, (first, *rest), strict=True))) for first, rest in packed)


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
