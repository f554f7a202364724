"""Mechanical checks of the suite's sources, for writers: `python suite/check.py FILE…` (silent when all is well).

`python suite/check.py --all` checks every file there is, and what people of version 2 have in common with each other.
"""

import itertools
import re
import sys
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
AXES = tomllib.loads((HERE / "axes.toml").read_text(encoding="utf-8"))
DESIGN = tomllib.loads((HERE / "design.toml").read_text(encoding="utf-8"))
DOMAINS = list(DESIGN["questions"])
ANNOUNCEMENTS = re.compile(
    r"\bI (?:always |really |generally |much )?(?:prefer|value)\b|\bI(?:'m| am) (?:a|an) \w+ person\b", re.IGNORECASE
)
FORMS = ("question", "rant", "thanks", "follow-up", "two-liner", "story", "request", "report")
RUN = 6
"""Words in a row that no two people may share."""
OPENINGS = 3
"""Posts that may open with the same three words, over all people of version 2."""
BROKEN = ("cannot be read", "missing", "post ")
"""How problems begin after which a file cannot be compared with others."""
NAMES = re.compile(r"\b(?:matter-of-fact|brevity|liberty|common good|boldness|candour)\b", re.IGNORECASE)


def words(text: str) -> int:
    """Count words."""
    return len(text.split())


def sentences(text: str) -> set[str]:
    """Sentences of five words or more, normalised."""
    parts = re.split(r"(?<=[.!?])\s+|\n+", text)
    clean = (re.sub(r"[^a-z0-9 ]", "", part.lower()).strip() for part in parts)
    return {part for part in clean if words(part) >= 5}


def ngrams(text: str, n: int) -> set[tuple[str, ...]]:
    """Word n-grams."""
    tokens = re.findall(r"[a-z0-9']+", text.lower())
    return {tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)}


def check_persona(path: Path) -> list[str]:
    """Everything a machine can see in a persona file."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        return [f"cannot be read: {error}"]
    problems = [f"missing {key!r}" for key in ("id", "name", "trade", "place", "voice", "posts") if key not in data]
    keys = ("id", "domain", "title", "text", "shows")
    for number, post in enumerate(data.get("posts", ()), 1):
        problems += [f"post {number}: missing {key!r}" for key in keys if key not in post]
    if problems:
        return problems
    if data["id"] != path.stem or data["id"] not in DESIGN["personas"]:
        return [f"id {data['id']!r} is not that of the file, or not in design.toml"]
    drawn = DESIGN["personas"][data["id"]]
    stances, posts = drawn["stances"], data["posts"]
    new = drawn.get("version", 1) == 2
    shortest, longest = (15, 140) if new else (40, 120)
    problems += check_history(posts, drawn) if new else check_first_history(posts)
    for number, post in enumerate(posts, 1):
        where, text = post["id"], f"{post['title']}\n{post['text']}"
        if post["id"] != f"{data['id']}-{number:02d}":
            problems.append(f"{where}: id should be {data['id']}-{number:02d}")
        if post["domain"] not in DOMAINS:
            problems.append(f"{where}: unknown domain {post['domain']!r}")
        if not shortest <= words(text) <= longest:
            problems.append(f"{where}: {words(text)} words")
        problems += [f"{where}: shows {axis!r}, which is not held" for axis in post["shows"] if axis not in stances]
        if match := ANNOUNCEMENTS.search(text) or NAMES.search(text):
            problems.append(f"{where}: announces or names: {match[0]!r}")
    for axis in stances:
        count = sum(axis in post["shows"] for post in posts)
        if count < 2:
            problems.append(f"{axis}={stances[axis]} shown in {count} posts")
    return problems


def check_first_history(posts: list[dict[str, Any]]) -> list[str]:
    """What the posts of a person of version 1 are together."""
    problems = []
    if len(posts) < 12:
        problems.append(f"only {len(posts)} posts")
    if len({post["domain"] for post in posts}) < 7:
        problems.append("fewer than seven domains")
    return problems


def check_history(posts: list[dict[str, Any]], drawn: dict[str, Any]) -> list[str]:
    """What the posts of a person of version 2 are together: number, silence, domains, lengths and forms."""
    problems = []
    short = drawn["history"] == "short"
    if len(posts) != drawn["posts"]:
        problems.append(f"{len(posts)} posts, want {drawn['posts']}")
    for post in posts:
        if len(post["shows"]) > 5:
            problems.append(f"{post['id']}: shows {len(post['shows'])} stances, want five at most")
        if len(set(post["shows"])) < len(post["shows"]):
            problems.append(f"{post['id']}: shows a stance twice")
        if post.get("form", FORMS[0]) not in FORMS:
            problems.append(f"{post['id']}: unknown form {post['form']!r}")
    silent = sum(not post["shows"] for post in posts)
    if short and not silent:
        problems.append("no post that shows nothing")
    if not short and not 0.25 * len(posts) <= silent <= 0.42 * len(posts):
        problems.append(f"{silent} of {len(posts)} posts show nothing, want 25–42 %")
    domains, least = len({post["domain"] for post in posts}), 4 if short else 7
    if domains < least:
        problems.append(f"{domains} domains, want {least} at least")
    lengths = [words(f"{post['title']}\n{post['text']}") for post in posts]
    if min(lengths, default=0) >= 35:
        problems.append(f"no post under 35 words, the shortest has {min(lengths)}")
    if not short and max(lengths, default=0) <= 90:
        problems.append(f"no post over 90 words, the longest has {max(lengths, default=0)}")
    forms = {post["form"] for post in posts if "form" in post}
    if not short and len(forms) < 4:
        problems.append(f"{len(forms)} different forms, want four at least")
    return problems


def check_people(paths: list[Path]) -> list[str]:
    """What people of version 2 have in common with anybody else: names, runs of words, and openings of posts."""
    people = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(paths)}
    new = {name for name in people if DESIGN["personas"].get(name, {}).get("version", 1) == 2}
    names: defaultdict[str, list[str]] = defaultdict(list)
    runs: defaultdict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
    openings: defaultdict[str, list[str]] = defaultdict(list)
    for person, data in people.items():
        names[data["name"]].append(person)
        for post in data["posts"]:
            for text in (post["title"], post["text"]):
                for run in ngrams(re.sub(r"\d+", " ", text), RUN):
                    runs[run].setdefault(person, post["id"])
            if person in new:
                start = " ".join(re.findall(r"[^\W_]+(?:['’][^\W_]+)*", post["text"].lower())[:3])
                openings[start].append(post["id"])
    problems = [f"{', '.join(who)}: all named {name}" for name, who in names.items() if len(who) > 1 and new & set(who)]
    found: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for run, where in sorted(runs.items()):
        if len(where) > 1 and new & set(where):
            found[tuple(where.values())].append(" ".join(run))
    problems += [f"{', '.join(posts)}: share {shared[0]!r}" for posts, shared in found.items()]
    problems += [
        f"{', '.join(posts)}: {len(posts)} posts open with {start!r}"
        for start, posts in sorted(openings.items())
        if len(posts) > OPENINGS
    ]
    return problems


def check_question(question: dict, domain: str) -> list[str]:
    """Everything a machine can see in a question."""
    problems: list[str] = []
    where = question["id"]
    design = DESIGN["questions"][domain].get(where)
    if design is None:
        return [f"{where}: not in design.toml"]
    content, manner = (AXES[design[kind]]["poles"] for kind in ("content", "manner"))
    combinations = [f"{a}+{b}" for a in content for b in manner]
    if not 20 <= words(question["question"]) <= 60:
        problems.append(f"{where}: question of {words(question['question'])} words")
    if set(question["answers"]) != {*combinations, "flawed"}:
        return [*problems, f"{where}: answers should be {combinations} and flawed"]
    if set(question["narratives"]) != set(combinations):
        problems.append(f"{where}: narratives should be {combinations}")
    if set(question["aspects"]) != {*content, *manner}:
        problems.append(f"{where}: aspects should be {[*content, *manner]}")
    for key, text in question["answers"].items():
        low, high = (70, 110)
        if "brief" in key.split("+"):
            high = 80
        if "thorough" in key.split("+"):
            low = 98
        if not low <= words(text) <= high:
            problems.append(f"{where} {key}: {words(text)} words, want {low}–{high}")
        if "steps" in key.split("+") and len(re.findall(r"^\s*\d+\.", text, re.M)) < 3:
            problems.append(f"{where} {key}: not in numbered steps")
        if "story" in key.split("+") and re.search(r"^\s*(\d+\.|[-*])", text, re.M):
            problems.append(f"{where} {key}: a list in a story")
    for key, text in question["narratives"].items():
        if not 25 <= words(text) <= 50:
            problems.append(f"{where} narrative {key}: {words(text)} words")
    for pole, aspect in question["aspects"].items():
        if not 4 <= words(aspect["aspect"]) <= 12 or not aspect.get("reason"):
            problems.append(f"{where} aspect {pole}: title of {words(aspect['aspect'])} words, or no reason")
    for (a, one), (b, two) in itertools.combinations(question["answers"].items(), 2):
        if shared := sentences(one) & sentences(two):
            problems.append(f"{where} {a} and {b} share: {min(shared)!r}")
        elif shared_run := ngrams(one, 7) & ngrams(two, 7):
            problems.append(f"{where} {a} and {b} share the phrase: {' '.join(min(shared_run))!r}")
    return problems


def check_domain(path: Path) -> list[str]:
    """Everything a machine can see in a domain file, and the length balance per pole over the file."""
    domain = path.stem
    questions = tomllib.loads(path.read_text(encoding="utf-8"))["questions"]
    problems = [problem for question in questions for problem in check_question(question, domain)]
    if missing := sorted(set(DESIGN["questions"][domain]) - {question["id"] for question in questions}):
        problems.append(f"missing: {', '.join(missing)}")
    lengths: dict[str, list[int]] = {}
    for question in questions:
        for key, text in question["answers"].items():
            for pole in key.split("+") if key != "flawed" else ():
                lengths.setdefault(pole, []).append(words(text))
    for axis, spec in AXES.items():
        one, two = (lengths.get(pole) for pole in spec["poles"])
        if axis != "brevity" and one and two:
            ratio = (sum(one) / len(one)) / (sum(two) / len(two))
            if not 0.94 <= ratio <= 1.06:
                problems.append(f"{axis}: {spec['poles'][0]} is {ratio:.2f} times as long as {spec['poles'][1]}")
    return problems


def main(arguments: list[str]) -> int:
    """Check each file, or all of them and what they share; the exit code says in how many there is a problem."""
    paths = [Path(name) for name in arguments if name != "--all"]
    everyone = "--all" in arguments
    if everyone:
        paths = sorted(path for folder in ("personas", "domains") for path in (HERE / folder).glob("*.toml"))
    bad = 0
    sound = []
    for path in paths:
        problems = check_persona(path) if path.parent.name == "personas" else check_domain(path)
        bad += bool(problems)
        for problem in problems:
            print(f"{path.name}: {problem}")
        if path.parent.name == "personas" and not any(p.startswith(BROKEN) for p in problems):
            sound.append(path)
    if everyone:
        shared = check_people(sound)
        bad += bool(shared)
        for problem in shared:
            print(problem)
    return min(bad, 100)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
