"""Choice of the columns of a file: by their own name, by a common other name, or by what the user says."""

from collections.abc import Iterable, Mapping

from prbench.data import Place, SourceRow
from prbench.errors import DataError, did_you_mean

JUDGMENT_FIELDS = ("user", "a", "b", "choice")
RATING_FIELDS = ("user", "item", "rating")
LOG_FIELDS = ("user", "item", "rating", "a", "b", "choice", "reason")
ITEM_FIELDS = ("id", "text", "group", "stance", "question")

_OTHER_NAMES = {
    "user": ("user_id", "userId"),
    "item": ("item_id", "itemId"),
    "rating": ("score", "stars", "value"),
    "a": ("item_a", "a_id"),
    "b": ("item_b", "b_id"),
    "choice": ("value", "preference", "label"),
    "id": ("item_id", "item"),
    "group": ("topic", "category"),
}


class Columns:
    """Finds the column of a field.

    Args:
        asked: Field → column, as the user gave it.
        fields: The fields of this file; what is asked of other fields belongs to another file.
    """

    def __init__(self, asked: Mapping[str, str], fields: Iterable[str]) -> None:
        known = {*LOG_FIELDS, *ITEM_FIELDS}
        for field in asked:
            if field not in known:
                raise DataError(f"--column maps an unknown field {field!r}", hint=did_you_mean(field, sorted(known)))
        self._asked = {field: column for field, column in asked.items() if field in set(fields)}

    def find(self, row: SourceRow, needed: Iterable[str], wanted: Iterable[str] = ()) -> dict[str, str]:
        """The columns of the fields, read off the first row; a wanted field may be absent."""
        found = {}
        for field in needed:
            column = self._column(field, row)
            if column is None:
                raise _missing(field, row.values, row.place)
            found[field] = column
        for field in wanted:
            if (column := self._column(field, row)) is not None:
                found[field] = column
        return found

    def has(self, row: SourceRow, field: str) -> bool:
        """Whether the row has a column for the field."""
        return self._column(field, row) is not None

    def _column(self, field: str, row: SourceRow) -> str | None:
        if field in self._asked:
            column = self._asked[field]
            if column not in row.values:
                raise DataError(
                    f"{row.place}: no column {column!r}, which --column maps to {field!r}",
                    hint=f"{did_you_mean(column, row.values)} (columns: {', '.join(row.values)})",
                )
            return column
        names = (field, *_OTHER_NAMES.get(field, ()))
        taken = set(self._asked.values())
        return next((name for name in names if name in row.values and name not in taken), None)


def cell(row: SourceRow, columns: Mapping[str, str], field: str) -> object:
    """A value that must be there."""
    value = row.values.get(columns[field])
    if value is None:
        raise _missing(columns[field], row.values, row.place)
    return value


def _missing(field: str, columns: Iterable[str], place: Place) -> DataError:
    columns = list(columns)
    return DataError(
        f"{place}: field {field!r} is missing",
        hint=f"{did_you_mean(field, columns)} (columns: {', '.join(columns)}); name it with --column {field}=COLUMN",
    )
