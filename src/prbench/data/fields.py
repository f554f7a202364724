"""Values of a row turned into the fields of a pair, strictly.

A value of the wrong type is an error with file, line and field. Lists and objects may come as JSON text (CSV has
nothing else), lists of objects also as an object of lists (as some Parquet writers store them). Posts and profiles
are interned: a suite of 10,000 pairs over 50 users holds 50 profiles.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from operator import itemgetter
from typing import Any

from prbench.data.rows import Place, SourceRow, missing_field, parse_json, wrong_type
from prbench.errors import DataError
from prbench.types import Aspect, Post

_TEXT = {str}
_MOST_KNOWN = 100_000
"""Distinct profiles, and rubrics, that are remembered as they stood in their rows."""


def read_text(value: Any, field: str, place: Place) -> str:
    """Optional text; null is empty."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise wrong_type(value, field, "text", place)
    return value


def read_identifier(value: Any, field: str, place: Place) -> str:
    """An id as text; whole numbers are common as ids and kept as their digits; blank is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    text = read_text(value, field, place)
    return text if text.strip() else ""


def read_structure(value: Any, field: str, place: Place) -> Any:
    """A list or an object, given as such or as JSON text; None where there is nothing."""
    if isinstance(value, str):
        return parse_json(value, f"{place}: field {field!r}") if value.strip() else None
    return value


def read_aspects(value: Any, place: Place) -> tuple[Aspect, ...]:
    """Rubric aspects: objects with aspect, evidence and reason, or plain titles."""
    return tuple(_read_aspect(item, place) for item in _read_items(value, "rubric_aspects", place))


class Rubrics:
    """Reads rubric aspects; equal ones that stand in many rows are read once."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[Aspect, ...]] = {}

    def read(self, value: Any, place: Place) -> tuple[Aspect, ...]:
        """The aspects of a cell."""
        said = _said(value, _ASPECT)
        if said is not None and said in self._known:
            return self._known[said]
        aspects = read_aspects(value, place)
        if said is not None and len(self._known) < _MOST_KNOWN and _is_plain(said):
            self._known[said] = aspects
        return aspects


_POST = itemgetter("id", "text", "category")
_ASPECT = itemgetter(*Aspect.model_fields)


def _said(value: Any, texts: "itemgetter[Any]") -> Any:
    """Return the texts of a cell, from a text or a list of objects, to find equal cells by; None of anything else."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return None
    try:
        said = tuple(map(texts, value))
        hash(said)
    except (KeyError, TypeError, IndexError):
        return None
    return said


def _is_plain(said: Any) -> bool:
    """Whether a cell is made of texts only, so that whatever equals it is the same cell."""
    return isinstance(said, str) or all(isinstance(part, str | None) for parts in said for part in parts)


def _read_aspect(item: Any, place: Place) -> Aspect:
    if isinstance(item, str):
        item = {"aspect": item}
    if not isinstance(item, Mapping):
        raise wrong_type(item, "rubric_aspects", "a list of objects", place)
    texts = {name: read_text(item.get(name), f"rubric_aspects.{name}", place) for name in Aspect.model_fields}
    if not texts["aspect"].strip():
        raise DataError(f"{place}: field 'rubric_aspects' has an aspect without a title")
    return Aspect(**texts)


def read_tags(value: Any, place: Place) -> dict[str, str]:
    """Tags as an object of plain values; null values are absent tags."""
    found = read_structure(value, "tags", place)
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise wrong_type(found, "tags", "an object", place)
    return {str(name): _read_tag(name, tag, place) for name, tag in found.items() if tag is not None}


def read_plain_tags(value: Any) -> dict[str, str] | None:
    """Tags that are texts already, given as an object or as JSON text; None of anything else."""
    if isinstance(value, str):
        if "\\" in value:
            return None
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if type(value) is dict and set(map(type, value.values())) == _TEXT == set(map(type, value)) else None


def _read_tag(name: str, tag: Any, place: Place) -> str:
    if isinstance(tag, bool):
        return str(tag).lower()
    if isinstance(tag, str | int | float):
        return str(tag)
    raise wrong_type(tag, f"tags.{name}", "text", place)


def _read_items(value: Any, field: str, place: Place) -> list[Any]:
    found = read_structure(value, field, place)
    if found is None:
        return []
    if isinstance(found, Mapping) and found and all(isinstance(column, list) for column in found.values()):
        if len({len(column) for column in found.values()}) > 1:
            raise DataError(f"{place}: field {field!r} has columns of unequal length")
        return [dict(zip(found, cells, strict=True)) for cells in zip(*found.values(), strict=True)]
    if not isinstance(found, list):
        raise wrong_type(found, field, "a list", place)
    return found


def content_id(prefix: str, *parts: str) -> str:
    """A stable id from content.

    Example:
        >>> content_id("pair", "Tea?", "Green.")
        'pair-6003e184fd824ced'
    """
    return f"{prefix}-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]}"


class ProfileReader:
    """Reads profiles and keeps one copy of each post and of each profile.

    Args:
        left_out: Counts what was dropped, by reason; ends in the dataset's notes.
    """

    def __init__(self, left_out: Counter[str]) -> None:
        self._left_out = left_out
        self._posts: dict[tuple[str, str, str], Post] = {}
        self._known: dict[Any, tuple[tuple[Post, ...], Counter[str]]] = {}
        # Keyed by the identity of interned posts, which live as long as this object: cheap to hash.
        self._profiles: dict[tuple[int, ...], tuple[Post, ...]] = {}

    def read(self, value: Any, place: Place) -> tuple[Post, ...]:
        """Posts as objects with id, text and category, as plain texts, or as one text."""
        said = _said(value, _POST)
        if said is not None and said in self._known:
            posts, left_out = self._known[said]
            if left_out:
                self._left_out.update(left_out)
            return posts
        posts, left_out = self._read(value, place)
        self._left_out.update(left_out)
        if said is not None and len(self._known) < _MOST_KNOWN and _is_plain(said):
            self._known[said] = (posts, left_out)
        return posts

    def _read(self, value: Any, place: Place) -> tuple[tuple[Post, ...], Counter[str]]:
        left_out: Counter[str] = Counter()
        seen: dict[str, Post] = {}
        if isinstance(value, str) and not value.lstrip().startswith(("[", "{")):
            value = [value]  # one text is one post
        for item in _read_items(value, "profile", place):
            post = self._read_post(item, place)
            if post is None:
                left_out["empty posts"] += 1
            elif post.id not in seen:
                seen[post.id] = post
            elif seen[post.id] is post:
                left_out["repeated posts"] += 1
            else:
                raise DataError(
                    f"{place}: field 'profile' has two different posts with the id {post.id!r}",
                    hint="give each post its own id, or leave ids out to have them made from the texts",
                )
        posts = tuple(seen.values())
        return self._profiles.setdefault(tuple(map(id, posts)), posts), left_out

    def _read_post(self, item: Any, place: Place) -> Post | None:
        if isinstance(item, str):
            item = {"text": item}
        if not isinstance(item, Mapping):
            raise wrong_type(item, "profile", "a list of posts", place)
        if "text" not in item:
            raise DataError(
                f"{place}: field 'profile' has a post without a text",
                hint='a post is {"id": …, "text": …, "category": …}',
            )
        text = read_text(item["text"], "profile.text", place)
        if not text.strip():
            return None
        category = read_text(item.get("category"), "profile.category", place)
        name = read_identifier(item.get("id"), "profile.id", place) or content_id("post", text)
        key = (name, text, category)
        if key not in self._posts:
            self._posts[key] = Post(id=name, text=text, category=category)
        return self._posts[key]


def derive_user(profile: tuple[Post, ...], question: str) -> str:
    """A stable user id where a source has none: one per distinct profile, or per question without a profile."""
    if profile:
        return content_id("user", *(part for post in profile for part in (post.id, post.text)))
    return content_id("user", question)


def read_cell(row: SourceRow, field: str, kind: type, wanted: str) -> Any:
    """A cell of a published table, of exactly this type; null is None."""
    if field not in row.values:
        raise missing_field(field, row.values, row.place)
    value = row.values[field]
    if value is not None and (not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)):
        raise wrong_type(value, field, wanted, row.place)
    return value
