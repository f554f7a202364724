"""Mirrored suites made from a log of what people liked: no model can score on them without knowing the user.

For every two items that users disagree on, equally many users are taken from each side and coupled one to one: both
halves of a couple meet the same question and texts with opposite labels. Any function of question and texts is
therefore right on exactly half of the pairs, in every split.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from prbench._version import __version__
from prbench.build.arrays import Indices, stage
from prbench.build.card import MirrorCard, count_splits, describe_file, prove_exact
from prbench.build.columns import ITEM_FIELDS, Columns
from prbench.build.config import SPLITS, MirrorConfig
from prbench.build.couples import Couples, bound, match
from prbench.build.division import Log, LogDivision
from prbench.build.items import MirrorItems, read_items
from prbench.build.log import read_log
from prbench.build.preferences import Mirrorable
from prbench.build.splits import split_items, split_users
from prbench.build.wording import ask
from prbench.data import Suite, write_pairs
from prbench.errors import ConfigError, DataError
from prbench.files import replacing, replacing_folder
from prbench.types import Pair, Post

_ITEMS, _USERS, _DIVIDE, _MATCH, _BOUND, _POSTS, _LABELLED = range(7)


class MirrorBuild(NamedTuple):
    """A mirrored suite, the labelled context of its users, the texts that both speak of, and the card."""

    suite: Suite
    context: tuple[Mapping[str, Any], ...]
    items: tuple[Mapping[str, str], ...]
    card: MirrorCard


class _Drawn(NamedTuple):
    """The couples of a suite, and the context rows of each of their users."""

    couples: Couples
    context: dict[int, Indices]
    user_split: Indices


def build_mirror(
    log: str | Path, items: str | Path, out: str | Path | None = None, options: MirrorConfig | None = None
) -> MirrorBuild:
    r"""Make a mirrored suite out of ratings or judgments.

    Args:
        log: Ratings (user, item, rating) or judgments (user, a, b, choice) as CSV, JSONL or Parquet.
        items: The texts (id, text, perhaps topic and stance) as JSONL, CSV, Parquet or a JSON list.
        out: Folder for `pairs.parquet`, `context.jsonl` and `card.json`; None writes nothing.
        options: How; the defaults suit most logs.

    Raises:
        DataError: If a row cannot be read, or if there is no disagreement to use.

    Example:
        >>> import json, tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> texts = [{"id": i, "text": f"joke {i}"} for i in range(12)]
        >>> _ = (folder / "texts.json").write_text(json.dumps(texts))
        >>> rows = [f"u{u},{i},{(u % 2 * 2 - 1) * i}" for u in range(20) for i in range(12)]
        >>> _ = (folder / "log.csv").write_text("user,item,rating\n" + "\n".join(rows))
        >>> build = build_mirror(folder / "log.csv", folder / "texts.json")
        >>> build.suite.is_mirrored, build.card.exactness.exact
        (True, True)
    """
    log, items, options = Path(log), Path(items), options or MirrorConfig()
    if out is not None:
        refuse_foreign(Path(out))
    texts = read_items(items, Columns(options.columns, ITEM_FIELDS))
    read = read_log(log, texts, options.columns, options.min_gap)
    mirrorable = read.log.mirrorable()
    _refuse_agreement(log, read.log, mirrorable)
    dropped = Counter(read.log.dropped)
    drawn = _draw(read.log, options, dropped)
    _refuse_nothing_left(log, drawn.couples, mirrorable, dropped)
    suite = Suite.of(_pairs(read.log, drawn, options), name=Path(out or log).name, source=log.name)
    context = tuple(_context_rows(read.log, drawn, options))
    exactness = prove_exact(suite)
    if not exactness.exact:  # impossible by construction, and a suite that is not exact must never be written
        raise RuntimeError(f"the suite is not exact: {exactness}")
    card = MirrorCard(
        kind=read.log.kind,
        log=describe_file(log, read.rows),
        items=describe_file(items, len(texts)),
        options=options.model_copy(update={"min_gap": getattr(read.log, "min_gap", None)}),
        users=len(read.log.users),
        mirrorable=mirrorable._asdict(),
        dropped=dict(+dropped),
        splits=count_splits(suite),
        context=_count_context(drawn, options, len(context)),
        exactness=exactness,
        fingerprint=suite.record.fingerprint,
        version=__version__,
    )
    build = MirrorBuild(suite, context, tuple(_item_rows(texts, suite, context)), card)
    if out is not None:
        write_folder(Path(out), build.suite, build.context, build.items, build.card)
    return build


def _count_context(drawn: _Drawn, options: MirrorConfig, labelled: int) -> dict[str, int]:
    sizes = [len(rows) for rows in drawn.context.values()]
    posts = sum(min(size, options.max_posts) for size in sizes)
    return {"users": len(sizes), "rows": sum(sizes), "posts": posts, "labelled_pairs": labelled}


def _draw(log: Log, options: MirrorConfig, dropped: Counter[str]) -> _Drawn:
    """Splits, then contexts, then couples: each step sees only what the one before has left."""
    shares, seed = options.shares, options.seed
    item_split = split_items(log.items, log.item_weights(), log.links(), shares, stage(seed, _ITEMS))
    user_split = split_users(log.user_weights(item_split), shares, stage(seed, _USERS))
    division = log.divide(item_split, user_split, options.context_share, stage(seed, _DIVIDE))
    dropped.update(division.dropped)
    division = _drop_users_without_context(division, len(log.users), dropped)
    couples = match(division.asked, division.split, len(log.items), stage(seed, _MATCH))
    dropped["preferences without an opposite user in the same split"] = len(division.split) - 2 * len(couples.low)
    couples = bound(couples, shares, options.max_per_user, options.max_pairs, stage(seed, _BOUND), dropped)
    context = _context_of(division, couples)
    unused = len(division.context) - sum(map(len, context.values()))
    dropped[f"{log.kind} set aside as context of users who are asked nothing"] = unused
    return _Drawn(couples, context, user_split)


def _drop_users_without_context(division: LogDivision, users: int, dropped: Counter[str]) -> LogDivision:
    known = np.bincount(division.context_user, minlength=users) > 0
    kept = known[division.asked.user]
    dropped["preferences of users without context"] = int((~kept).sum())
    return division._replace(asked=division.asked.take(kept), split=division.split[kept])


def _context_of(division: LogDivision, couples: Couples) -> dict[int, Indices]:
    order = np.argsort(division.context_user, kind="stable")
    users, starts = np.unique(division.context_user[order], return_index=True)
    rows = dict(zip(users.tolist(), np.split(division.context[order], starts[1:]), strict=True)) if len(users) else {}
    asked = np.unique(np.concatenate([couples.low_user, couples.high_user]))
    return {user: rows[user] for user in asked.tolist()}


def _pairs(log: Log, drawn: _Drawn, options: MirrorConfig) -> Iterator[Pair]:
    profiles = _profiles(log, drawn.context, options)
    columns = drawn.couples
    width = len(str(len(columns.low)))
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for number, (split, low, high, low_user, high_user, _) in enumerate(rows, start=1):
        mirror = f"m{number:0{width}}"
        halves = (("a", low_user, low, high), ("b", high_user, high, low))
        for half, user, chosen, rejected in halves:
            pair = Pair(
                id=f"{mirror}{half}",
                user=log.users[user],
                question=ask(log.items, low, high, options.question),
                category=log.items.groups[low] if log.items.groups[low] == log.items.groups[high] else "",
                chosen=log.items.texts[chosen],
                rejected=log.items.texts[rejected],
                tags={
                    "split": SPLITS[split],
                    "mirror": mirror,
                    "item_pair": f"{log.items.ids[low]}|{log.items.ids[high]}",
                    "chosen_item": log.items.ids[chosen],
                    "rejected_item": log.items.ids[rejected],
                },
            )
            yield pair.model_copy(update={"profile": profiles[user]})  # validation would copy the profile each time


def _profiles(log: Log, context: Mapping[int, Indices], options: MirrorConfig) -> dict[int, tuple[Post, ...]]:
    random = stage(options.seed, _POSTS)
    profiles = {}
    for user, rows in context.items():
        kept = random.permutation(len(rows))[: options.max_posts]
        profiles[user] = tuple(log.post(row) for row in rows[np.sort(kept)].tolist())
    return profiles


def _context_rows(log: Log, drawn: _Drawn, options: MirrorConfig) -> Iterator[Mapping[str, Any]]:
    random, items = stage(options.seed, _LABELLED), log.items
    for user, rows in drawn.context.items():
        for pair in log.labelled_pairs(rows, options.max_posts, random):
            yield {
                "user": log.users[user],
                "split": SPLITS[drawn.user_split[user]],
                "question": ask(items, pair.a, pair.b, options.question),
                "a": items.ids[pair.a],
                "b": items.ids[pair.b],
                "choice": "a" if pair.prefers_a else "b",
                **({"reason": pair.reason} if pair.reason else {}),
            }


def _item_rows(items: MirrorItems, suite: Suite, context: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, str]]:
    used = {pair.tags["chosen_item"] for pair in suite} | {row[side] for row in context for side in ("a", "b")}
    for name, text, group, stance in zip(items.ids, items.texts, items.groups, items.stances, strict=True):
        if name in used:
            labels = {"group": group, "stance": stance}
            yield {"id": name, "text": text, **{field: value for field, value in labels.items() if value}}


def _refuse_agreement(path: Path, log: Log, found: Mirrorable) -> None:
    if found.disputed:
        return
    lost = "; ".join(f"{count:,} {reason}" for reason, count in log.dropped.items())
    hint = "lower --min-gap, or " if log.kind == "ratings" else ""
    raise DataError(
        f"{str(path)!r} holds no disagreement to mirror: {len(log.users):,} users have preferences on "
        f"{found.item_pairs:,} item pairs, and on none of them two users want opposite things"
        + (f" (left out: {lost})" if lost else ""),
        hint=f"{hint}bring a log in which several users judged the same items",
    )


def _refuse_nothing_left(path: Path, couples: Couples, found: Mirrorable, dropped: Counter[str]) -> None:
    if len(couples.low):
        return
    lost = "; ".join(f"{count:,} {reason}" for reason, count in (+dropped).items())
    raise DataError(
        f"{str(path)!r} has {found.judgments:,} judgments to mirror on {found.disputed:,} disputed item pairs, "
        f"but none is left once contexts are set aside and users and items are split ({lost})",
        hint="try --splits 0/0/100, another --seed or a smaller --context-share, or bring more judgments per user",
    )


PAIRS, CONTEXT, ITEMS, CARD = "pairs.parquet", "context.jsonl", "items.jsonl", "card.json"


def refuse_foreign(folder: Path) -> None:
    """Refuse to replace a folder that is neither empty nor made by an earlier build."""
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"--out {str(folder)!r} is a file", hint="name a folder")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / CARD).is_file():
        raise ConfigError(
            f"--out {str(folder)!r} holds files of something else", hint="name a new folder, or empty this one"
        )


def write_folder(
    folder: Path,
    suite: Suite,
    context: Iterable[Mapping[str, Any]],
    items: Iterable[Mapping[str, str]],
    card: MirrorCard,
) -> None:
    """Write everything beside its place, and move it there together."""
    refuse_foreign(folder)
    with replacing_folder(folder) as made:
        write_pairs(suite, made / PAIRS)
        _write(made / CONTEXT, (json.dumps(row, ensure_ascii=False) for row in context))
        _write(made / ITEMS, (json.dumps(row, ensure_ascii=False) for row in items))
        _write(made / CARD, [json.dumps(card.model_dump(mode="json"), ensure_ascii=False, indent=2)])


def _write(path: Path, lines: Iterable[str]) -> None:
    with replacing(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)
