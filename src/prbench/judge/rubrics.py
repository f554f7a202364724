"""What a user wants, as axes and poles: read from the tags of mirrored pairs."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from prbench.errors import DataError
from prbench.types import Pair


class Want(NamedTuple):
    """The pole of one axis that a user wants."""

    axis: str
    pole: str


def wants(tags: Mapping[str, str]) -> tuple[Want, ...]:
    """The axes and poles in a pair's tags, in their order.

    Example:
        >>> wants({"axis": "spend+pace", "pole": "time+slow"})
        (Want(axis='spend', pole='time'), Want(axis='pace', pole='slow'))
        >>> wants({})
        ()
    """
    axes, poles = (tags.get(name, "").split("+") for name in ("axis", "pole"))
    if len(axes) != len(poles):
        raise DataError(
            f"tag axis {tags.get('axis')!r} names {len(axes)} axes, pole {tags.get('pole')!r} names {len(poles)} poles",
            hint="give one pole for each axis, joined by +",
        )
    return tuple(Want(axis, pole) for axis, pole in zip(axes, poles, strict=True) if axis)


def rubric_tags(pairs: Sequence[Pair]) -> dict[str, dict[str, str]]:
    """For each pair, by id, tags that name *all* axes of its user's rubric for its question.

    A pair's own tags name what decides between its two answers; an answer that somebody else wrote is held against
    the whole rubric, so the axes of all pairs of the same user and question are joined.

    Example:
        >>> answers = {"user": "ann", "question": "Tea?", "chosen": "Green.", "rejected": "Black."}
        >>> one = Pair(id="1", tags={"axis": "spend", "pole": "time"}, **answers)
        >>> two = Pair(id="2", tags={"axis": "pace", "pole": "slow"}, **answers)
        >>> rubric_tags([one, two])["2"]
        {'axis': 'spend+pace', 'pole': 'time+slow'}
    """
    whole: dict[tuple[str, str], dict[str, str]] = {}
    for pair in pairs:
        found = whole.setdefault((pair.user, pair.question), {})
        for axis, pole in wants(pair.tags):
            if found.setdefault(axis, pole) != pole:
                raise DataError(f"pair {pair.id!r}: user {pair.user!r} wants both poles of axis {axis!r}")
    joined = {place: _joined(found) for place, found in whole.items()}
    return {pair.id: {**pair.tags, **joined[pair.user, pair.question]} for pair in pairs}


def _joined(found: Mapping[str, str]) -> dict[str, str]:
    return {"axis": "+".join(found), "pole": "+".join(found.values())} if found else {}
