"""Export of a study: annotations as rows, and in mode self a log that `prbench build mirror` reads.

People leave under numbers, never under names. `pairs.jsonl` of mode self is a suite of its own: each judgment with the
person's posts as profile.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from prbench.annotate.content import AnnotatorJudgment, PairTexts, StudyContent, read_content
from prbench.annotate.store import Store
from prbench.data import write_pairs
from prbench.errors import ConfigError
from prbench.files import write_whole
from prbench.types import Pair, Post

Row = Mapping[str, Any]


def export(store: Store, folder: Path) -> dict[Path, int]:
    """Write a study's annotations into a folder.

    Returns:
        The files, and how many rows each has.

    Raises:
        ConfigError: If nothing was judged yet.
    """
    found = read_content(store)
    if not found.judgments:
        raise ConfigError(f"{str(store.path)!r} holds no judgment yet", hint="export when a pair has been judged")
    tables: dict[str, list[Row]] = {"annotations.jsonl": list(_annotations(found))}
    if found.study.mode == "self":
        tables |= {
            "judgments.jsonl": list(_judgments(found)),
            "items.jsonl": list(_items(found.pairs.values())),
            "posts.jsonl": list(_posts(found)),
        }
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"--out {str(folder)!r} is a file", hint="name a folder for the export")
    folder.mkdir(parents=True, exist_ok=True)
    written = {folder / name: _write(folder / name, rows) for name, rows in tables.items()}
    if pairs := list(_own_pairs(found)):
        written[write_pairs(pairs, folder / "pairs.jsonl")] = len(pairs)
    return written


def _annotations(found: StudyContent) -> Iterator[Row]:
    for each in found.judgments:
        scores = {
            f"{side}_{name}": value
            for side in ("chosen", "rejected")
            if each.answer.first is not None
            for name, value in each.scores(side).model_dump().items()
        }
        yield {
            "annotator": _person(each.annotator),
            "pair": each.pair,
            "shown_first": "chosen" if each.chosen_first else "rejected",
            "preference": each.verdict,
            **scores,
            **({"reason": each.answer.reason} if each.answer.reason else {}),
            "versions": each.version,
            "saved_at": each.saved_at,
        }


def _judgments(found: StudyContent) -> Iterator[Row]:
    """The log: `a` is the answer that was shown first, so that reasons which speak of first and second stay true."""
    choices = {"first": "a", "second": "b", "unsure": "equal"}
    for each in found.judgments:
        first, second = _as_shown(each, found.pairs[each.pair])
        question = found.pairs[each.pair].question
        yield {
            "user": _person(each.annotator),
            "a": _item(question, first),
            "b": _item(question, second),
            "choice": choices[each.answer.preference],
            **({"reason": each.answer.reason} if each.answer.reason else {}),
        }


def _items(pairs: Iterable[PairTexts]) -> Iterator[Row]:
    seen = set()
    for pair in pairs:
        for text in (pair.chosen, pair.rejected):
            name = _item(pair.question, text)
            if name not in seen:
                seen.add(name)
                yield {"id": name, "text": text, "question": pair.question}


def _posts(found: StudyContent) -> Iterator[Row]:
    for annotator, texts in found.posts.items():
        user = _person(annotator)
        for number, text in enumerate(texts, start=1):
            yield {"user": user, "id": f"{user}-{number}", "text": text}


def _own_pairs(found: StudyContent) -> Iterator[Pair]:
    """Mode self: each judgment as a pair of the person who made it."""
    for each in found.judgments:
        if each.verdict == "unsure" or each.annotator not in found.posts:
            continue
        texts, user = found.pairs[each.pair], _person(each.annotator)
        chosen, rejected = texts.chosen, texts.rejected
        if each.verdict == "rejected":
            chosen, rejected = rejected, chosen
        own = found.posts[each.annotator]
        yield Pair(
            id=f"{user}:{each.pair}",
            user=user,
            question=texts.question,
            category=texts.category,
            profile=tuple(Post(id=f"{user}-{number}", text=text) for number, text in enumerate(own, start=1)),
            chosen=chosen,
            rejected=rejected,
        )


def _as_shown(judgment: AnnotatorJudgment, texts: PairTexts) -> tuple[str, str]:
    return (texts.chosen, texts.rejected) if judgment.chosen_first else (texts.rejected, texts.chosen)


def _item(question: str, text: str) -> str:
    """Return an id for an answer, the same for every annotator."""
    return sha256(f"{question}\0{text}".encode()).hexdigest()[:12]


def _person(annotator: int) -> str:
    return f"p{annotator}"


def _write(path: Path, rows: Iterable[Row]) -> int:
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    write_whole(path, "".join(lines))
    return len(lines)
