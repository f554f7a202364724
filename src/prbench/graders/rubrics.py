"""What a user wants, as axes and poles: read from the tags of mirrored pairs."""

from collections.abc import Mapping, Sequence

from prbench.errors import DataError
from prbench.types import Pair


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
        for axis, pole in pair.stances.items():
            if found.setdefault(axis, pole) != pole:
                raise DataError(f"pair {pair.id!r}: user {pair.user!r} wants both poles of axis {axis!r}")
    joined = {place: _joined(found) for place, found in whole.items()}
    return {pair.id: {**pair.tags, **joined[pair.user, pair.question]} for pair in pairs}


def _joined(found: Mapping[str, str]) -> dict[str, str]:
    return {"axis": "+".join(found), "pole": "+".join(found.values())} if found else {}
