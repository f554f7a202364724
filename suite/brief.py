"""Print what a writer has to know of one couple: `python suite/brief.py c26`."""

import re
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
NAME = re.compile(r'^name = "(.+)"', re.M)

Toml = dict[str, Any]


def load(name: str) -> Toml:
    """One of the suite's tables."""
    return tomllib.loads((HERE / f"{name}.toml").read_text(encoding="utf-8"))


def silent(posts: int) -> str:
    """How many posts show nothing: about a third."""
    third = max(1, round(posts / 3))
    return f"{third} ({third - 1} or {third + 1} will do)" if posts >= 20 else str(third)


def brief(couple: str) -> str:
    """The writing brief of a couple."""
    axes, people, lives = load("axes"), load("design")["personas"], load("lives")
    first = people[f"{couple}a"]
    if first.get("version", 1) != 2:
        return f"{couple} belongs to version 1 and is written already."
    posts, short = first["posts"], first["history"] == "short"
    files = [path for path in (HERE / "personas").glob("*.toml") if path.stem[:-1] != couple]
    taken = sorted(name for path in files for name in NAME.findall(path.read_text(encoding="utf-8")))
    lines = [
        f"# Couple {couple}: {first['split']}, {first['history']} history",
        "",
        f"Each half: exactly {posts} posts, of which {silent(posts)} show nothing (shows = []).",
        f"Domains: at least {4 if short else 7} different ones. One post at least under 35 words"
        + ("." if short else ", one at least over 90; at least four different forms."),
        "Each stance in two posts at least, no more than five stances in a post, none ever announced.",
        "The two halves want the opposite of each other and must not sound alike.",
    ]
    for half in "ab":
        lines += ["", *portrait(couple + half, people[couple + half], lives, axes)]
    lines += ["", "## Axes that neither holds: no leaning to either side, in no post", ""]
    lines += [f"- {axis}: {' / '.join(axes[axis]['poles'])}" for axis in axes if axis not in first["stances"]]
    lines += ["", "## Names in use", "", textwrap.fill(", ".join(taken), 118), ""]
    lines += [f"Then: python suite/check.py suite/personas/{couple}a.toml suite/personas/{couple}b.toml"]
    return "\n".join(lines)


def portrait(name: str, person: Toml, lives: Toml, axes: Toml) -> list[str]:
    """What is given of one half."""
    life = lives[person["life"]]
    lines = [
        f"## {name} -> suite/personas/{name}.toml",
        "",
        f"- {person['gender']}, {person['age']}; {person['region']}, {person['settlement']}; {person['work']}",
        f"- place: {life['place']}",
        f"- trade: {life['trade']}",
        f"- voice: {life['voice']}",
        f"- mood: {life['mood']}",
    ]
    if person.get("english") == "second":
        lines.append("- English is a second language: real and dignified, always clear, never comic")
    lines += [
        "- where voice or mood pulls against a stance below, the stance wins",
        "",
        "Stances (never announced):",
        "",
    ]
    for axis, pole in person["stances"].items():
        other = next(each for each in axes[axis]["poles"] if each != pole)
        lines.append(f"- {axis} = {pole}: {axes[axis][pole]}")
        lines.append(f"  (never a word for {other}: {axes[axis][other]})")
    return lines


def main(couples: list[str]) -> int:
    """Print the briefs of these couples."""
    if not couples:
        print(__doc__, file=sys.stderr)
        return 2
    print("\n\n".join(brief(couple) for couple in couples))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
