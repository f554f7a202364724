"""Compile the suite's sources into the Parquet files that ship in the wheel: `make suite`.

Deterministic: the same sources give the same bytes. Pairs come out balanced by construction: whatever one half of a
couple is given to choose, the other half is given too, with the opposite label. This is version 2 of both suites; the
first is kept as it was compiled (`embedded/mirror-1.parquet`, `generic-1.parquet`), and nothing here makes it anew.
"""

import argparse
import itertools
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pick import Cell, Choice, pick
from wishes import wishes

from prbench.data.compact import write_compact
from prbench.data.passages import read_sources, write_flaws, write_forms, write_passages, write_sayings
from prbench.types import Aspect, Pair, Post

HERE = Path(__file__).parent
TARGET = HERE.parent / "src" / "prbench" / "data" / "embedded"
UNSEEN = ("humour", "candour", "tools")
"""Axes that never occur in train: what a model does on them it has not learnt there."""
MOST = {"train": 2, "validation": 2, "test": 1, "seen-users": 1}
"""Pairs that a couple and a question give at most, in each split."""
LENGTHS = ((8, "short"), (18, "medium"), (10**9, "long"))
"""What a history of fewer posts than this is called, where the design does not say."""

Toml = dict[str, Any]


class Sources(NamedTuple):
    """Everything that was written."""

    axes: Toml
    personas: dict[str, Toml]
    questions: dict[str, Toml]


def read() -> Sources:
    """Read all sources, with what the design adds to each."""
    axes, design = (tomllib.loads((HERE / f"{name}.toml").read_text(encoding="utf-8")) for name in ("axes", "design"))
    personas = {}
    for path in sorted((HERE / "personas").glob("*.toml")):
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        # The design's `posts` is how many there should be.
        drawn = {key: value for key, value in design["personas"][path.stem].items() if key != "posts"}
        personas[data["id"]] = {"history": history(len(data["posts"])), "profile": profile(data), **data, **drawn}
    questions = {}
    for domain, rows in design["questions"].items():
        path = HERE / "domains" / f"{domain}.toml"
        if path.is_file():
            for question in tomllib.loads(path.read_text(encoding="utf-8"))["questions"]:
                questions[question["id"]] = {**question, **rows[question["id"]], "domain": domain}
    return Sources(axes, personas, questions)


def history(posts: int) -> str:
    """What a history of so many posts is called."""
    return next(name for limit, name in LENGTHS if posts < limit)


def choices(question: Toml, stances: Toml, axes: Toml) -> Iterator[Choice]:
    """All pairs of this question's answers on which somebody with these stances has a preference."""
    content, manner = question["content"], question["manner"]
    if content in stances:
        one, two = stances[content], opposite(axes, content, stances[content])
        for fixed in axes[manner]["poles"]:
            yield Choice((content,), (one,), f"{one}+{fixed}", f"{two}+{fixed}")
    if manner in stances:
        one, two = stances[manner], opposite(axes, manner, stances[manner])
        for fixed in axes[content]["poles"]:
            yield Choice((manner,), (one,), f"{fixed}+{one}", f"{fixed}+{two}")
    if content in stances and manner in stances:
        wanted = (stances[content], stances[manner])
        refused = tuple(opposite(axes, axis, pole) for axis, pole in zip((content, manner), wanted, strict=True))
        yield Choice((content, manner), wanted, "+".join(wanted), "+".join(refused))


def opposite(axes: Toml, axis: str, pole: str) -> str:
    """The other pole."""
    one, two = axes[axis]["poles"]
    return str(two if pole == one else one)


def mirror(sources: Sources) -> Iterator[Pair]:
    """The mirrored pairs, couple by couple."""
    couples = sorted(
        {name[:-1] for name in sources.personas if {name[:-1] + half for half in "ab"} <= set(sources.personas)},
        key=lambda couple: int(couple[1:]),
    )
    kept = picked(sources, couples)
    for couple, question in itertools.product(couples, sources.questions.values()):
        halves = [sources.personas[couple + half] for half in "ab"]
        split = split_of(halves[0]["split"], question["split"])
        for choice in choices(question, halves[0]["stances"], sources.axes) if split else ():
            if (split, couple, question["id"], choice) in kept:
                yield half_pair(sources, halves[0], question, choice, couple, split)
                turned = tuple(opposite(sources.axes, a, p) for a, p in zip(choice.axes, choice.wanted, strict=True))
                swapped = Choice(choice.axes, turned, choice.rejected, choice.chosen)
                yield half_pair(sources, halves[1], question, swapped, couple, split)


def picked(sources: Sources, couples: list[str]) -> set[tuple[str, str, str, Choice]]:
    """The choices that are kept, with split, couple and question."""
    cells: dict[str, list[Cell]] = {split: [] for split in MOST}
    for couple, question in itertools.product(couples, sources.questions.values()):
        first = sources.personas[couple + "a"]
        split = split_of(first["split"], question["split"])
        offers = tuple(choices(question, first["stances"], sources.axes))
        if split and offers:
            cells[split].append(Cell(couple, question["id"], question["domain"], offers))
    return {
        (split, couple, question, choice)
        for split, found in cells.items()
        for (couple, question), chosen in pick(found, MOST[split]).items()
        for choice in chosen
    }


def split_of(persona: str, question: str) -> str | None:
    """Users and questions are disjoint between splits, but for train users on test questions."""
    if persona == question:
        return persona
    return "seen-users" if (persona, question) == ("train", "test") else None


def half_pair(sources: Sources, persona: Toml, question: Toml, choice: Choice, couple: str, split: str) -> Pair:
    """One half's pair."""
    held = [axis for axis in (question["content"], question["manner"]) if axis in persona["stances"]]
    answers = sorted((choice.chosen, choice.rejected))
    mirrored = f"{couple}:{question['id']}:{'/'.join(answers)}"
    own = "+".join(persona["stances"][axis] for axis in held)
    return Pair(
        id=f"{persona['id']}:{question['id']}:{'/'.join(answers)}",
        user=persona["id"],
        question=question["question"],
        profile=persona["profile"],
        narrative=question["narratives"][own if len(held) == 2 else choice.chosen],
        rubric_aspects=tuple(aspect(persona, question, axis) for axis in held),
        category=question["domain"],
        chosen=question["answers"][choice.chosen],
        rejected=question["answers"][choice.rejected],
        tags={
            "split": split,
            "axis": "+".join(choice.axes),
            "pole": "+".join(choice.wanted),
            "family": "+".join(sources.axes[axis]["family"] for axis in choice.axes),
            "axes": str(len(choice.axes)),
            "unseen": "yes" if set(choice.axes) & set(UNSEEN) else "no",
            "mirror": mirrored,
            "couple": couple,
            "history": persona["history"],
        },
    )


def profile(persona: Toml) -> tuple[Post, ...]:
    """A persona's posts, title first."""
    return tuple(
        Post(id=post["id"], text=f"{post['title']}\n{post['text'].strip()}", category=post["domain"])
        for post in persona["posts"]
    )


def aspect(persona: Toml, question: Toml, axis: str) -> Aspect:
    """What the persona wants of an answer to this question on this axis, with the posts that show it."""
    written = question["aspects"][persona["stances"][axis]]
    shown = [post["id"] for post in persona["posts"] if axis in post["shows"]]
    return Aspect(aspect=written["aspect"], reason=written["reason"], evidence=", ".join(shown))


def generic(sources: Sources) -> Iterator[Pair]:
    """Sound against subtly flawed answers: no user, only quality."""
    for question in sources.questions.values():
        for key, text in question["answers"].items():
            if key != "flawed":
                yield Pair(
                    id=f"{question['id']}:{key}",
                    user=f"asker-{question['id']}",
                    question=question["question"],
                    category=question["domain"],
                    narrative=f"Flaw of the rejected answer: {question['flaw']}",
                    chosen=text,
                    rejected=question["answers"]["flawed"],
                    tags={"split": question["split"], "content": question["content"], "manner": question["manner"]},
                )


def main() -> int:
    """Write both suites, or say whether the shipped ones are up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=TARGET)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    sources = read()
    for name, pairs in (("mirror", list(mirror(sources))), ("generic", list(generic(sources)))):
        write_compact(pairs, out / f"{name}.parquet")
        size = (out / f"{name}.parquet").stat().st_size / 1e6
        print(f"{name}: {len(pairs):,} pairs, {len({p.user for p in pairs})} users, {size:.1f} MB", file=sys.stderr)
    passages = [*read_sources(sorted((HERE / "stances").glob("*.jsonl"))), *wishes()]
    (out / "training").mkdir(exist_ok=True)
    for one in passages:
        if one.pole not in sources.axes[one.axis]["poles"]:
            raise SystemExit(f"{one.pole!r} is no pole of {one.axis}: {one.text[:60]!r}")
    write_passages(passages, out / "training" / "passages.parquet")
    write_forms(sorted((HERE / "forms").glob("*.jsonl")), out / "training" / "forms.parquet")
    write_flaws(sorted((HERE / "flaws").glob("*.jsonl")), out / "training" / "flaws.parquet")
    write_sayings(sorted((HERE / "sayings").glob("*.jsonl")), out / "training" / "sayings.parquet")
    texts, axes = ({getattr(passage, name) for passage in passages} for name in ("text", "axis"))
    print(f"passages: {len(passages):,} stances in {len(texts):,} texts on {len(axes)} axes", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
