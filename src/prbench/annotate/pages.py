"""The pages: rendered here, escaped always. A page gets what it shows and nothing else, so no label can slip in."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from prbench.annotate import own_posts
from prbench.annotate.answer import DIMENSIONS, MAX_REASON, PLACES, SCALE, AnnotatorAnswer
from prbench.annotate.study import Mode
from prbench.annotate.tasks import AnnotatorProgress, TaskPage
from prbench.show.page import asset, fill

Marks = Mapping[str, str]
"""Field → value, as a form holds them."""
_ROOM = "prbench.annotate"
DIMENSION_TEXTS = {
    "factuality": "is what it says true, as far as you can tell?",
    "relevance": "does it answer this question?",
    "helpfulness": "would it help a person who asks this?",
}


@cache
def assets() -> Mapping[str, tuple[str, str]]:
    """Return what pages load beside themselves: name → media type and text."""
    return {
        "annotate.css": ("text/css", asset("page/style.css") + asset("page/annotate.css", _ROOM)),
        "annotate.js": ("text/javascript", asset("page/annotate.js", _ROOM)),
        "theme.js": ("text/javascript", asset("page/theme.js")),
    }


def render(name: str, **values: Any) -> str:
    """Fill a template of this room."""
    return fill(f"{name}.html.jinja", _ROOM, **{"progress": None, "form_token": None, **values})


def pair_page(
    shown: TaskPage,
    progress: AnnotatorProgress,
    mode: Mode,
    form_token: str,
    marks: Marks,
    *,
    missing: Sequence[str] = (),
) -> str:
    """The page on which a pair is judged.

    Args:
        shown: The pair.
        progress: How far the annotator has come.
        mode: Whether a person judges for the asker or for themselves.
        form_token: Token of the session.
        marks: What is marked in the form.
        missing: Fields that were left open.
    """
    return render(
        "pair",
        shown=shown,
        progress=progress,
        mode=mode,
        form_token=form_token,
        marks=marks,
        missing=missing,
        dimensions=DIMENSION_TEXTS,
        scale=SCALE,
        max_reason=MAX_REASON,
    )


def marks_of(answer: AnnotatorAnswer | None) -> Marks:
    """An answer as the fields of its form.

    Example:
        >>> marks_of(AnnotatorAnswer(preference="first"))
        {'preference': 'first', 'reason': ''}
    """
    if answer is None:
        return {}
    scores = [(place, getattr(answer, place)) for place in PLACES]
    fields = {f"{place}_{name}": str(getattr(held, name)) for place, held in scores if held for name in DIMENSIONS}
    return {"preference": answer.preference, "reason": answer.reason, **fields}


def posts_page(posts: own_posts.OwnPosts, texts: Sequence[str], form_token: str, problem: str = "") -> str:
    """The page on which people write posts of their own; there is always an empty field."""
    empty = max(own_posts.LEAST - len(texts), 1)
    fields = [*texts, *[""] * empty]
    return render(
        "posts",
        fields=fields,
        written=len(posts.texts),
        mark=posts.mark,
        least=own_posts.LEAST,
        longest=own_posts.LONGEST,
        problem=problem,
        form_token=form_token,
    )
