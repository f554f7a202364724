"""Mechanical checks of the suite's sources, for writers: `python suite/check.py FILE…` (silent when all is well)."""

import itertools
import re
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
AXES = tomllib.loads((HERE / "axes.toml").read_text(encoding="utf-8"))
DESIGN = tomllib.loads((HERE / "design.toml").read_text(encoding="utf-8"))
DOMAINS = list(DESIGN["questions"])
ANNOUNCEMENTS = re.compile(
    r"\bI (?:always |really |generally |much )?(?:prefer|value)\b|\bI(?:'m| am) (?:a|an) \w+ person\b", re.IGNORECASE
)
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
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    problems = [f"missing {key!r}" for key in ("id", "name", "trade", "place", "voice", "posts") if key not in data]
    if problems:
        return problems
    stances = DESIGN["personas"][data["id"]]["stances"]
    posts = data["posts"]
    if len(posts) < 12:
        problems.append(f"only {len(posts)} posts")
    if len({post["domain"] for post in posts}) < 7:
        problems.append("fewer than seven domains")
    for number, post in enumerate(posts, 1):
        where, text = post["id"], f"{post['title']}\n{post['text']}"
        if post["id"] != f"{data['id']}-{number:02d}":
            problems.append(f"{where}: id should be {data['id']}-{number:02d}")
        if post["domain"] not in DOMAINS:
            problems.append(f"{where}: unknown domain {post['domain']!r}")
        if not 40 <= words(text) <= 120:
            problems.append(f"{where}: {words(text)} words")
        problems += [f"{where}: shows {axis!r}, which is not held" for axis in post["shows"] if axis not in stances]
        if match := ANNOUNCEMENTS.search(text) or NAMES.search(text):
            problems.append(f"{where}: announces or names: {match[0]!r}")
    for axis in stances:
        count = sum(axis in post["shows"] for post in posts)
        if count < 2:
            problems.append(f"{axis}={stances[axis]} shown in {count} posts")
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


def main(paths: list[str]) -> int:
    """Check each file; the number of files with problems is the exit code."""
    bad = 0
    for name in paths:
        path = Path(name)
        problems = check_persona(path) if path.parent.name == "personas" else check_domain(path)
        bad += bool(problems)
        for problem in problems:
            print(f"{path.name}: {problem}")
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
