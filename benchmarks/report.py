"""How large the report page becomes and how fast it answers: 10,000 pairs × 10 models, opened in Chromium.

    python benchmarks/report.py [--pairs 10000] [--models 10] [--folder FOLDER]

Every question and answer of the synthetic suite is distinct, so nothing is gained by keeping equal texts once; two of
the models are judges who write forty words about each verdict. Limits (issue 6): first paint under 2 s, filtering under
200 ms (median of five, until painted), file under 25 MB. Exits with 1 where one is missed. Runs are kept in FOLDER and
made only once.
"""

import argparse
import hashlib
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from prbench import evaluate
from prbench.data import write_pairs
from prbench.models import ModelCard
from prbench.report.page import report_page
from prbench.types import AnswerView, Aspect, Channel, Message, Outcome, Pair, PairView, Post, Prompt

if TYPE_CHECKING:
    from playwright.sync_api import Page

CONTEXTS = ["none", "profile", "other", "opposite", "oracle"]
LIMITS = {"first paint, ms": 2000, "slowest filter, ms": 200, "file, MB": 25}
CATEGORIES = ["art", "food", "law", "money", "music", "sport", "travel", "work"]
AXES = ["brevity", "candour", "humour", "proof", "risk", "warmth"]


class Prose:
    """Text of made-up words, as frequent as words are."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
        self._words = ["".join(self._rng.choice(syllables, self._rng.integers(1, 5))) for _ in range(12_000)]
        weights = 1 / np.arange(1, len(self._words) + 1)
        self._weights = weights / weights.sum()

    def text(self, words: int) -> str:
        """So many words."""
        return " ".join(self._words[i] for i in self._rng.choice(len(self._words), words, p=self._weights))


def synthetic_suite(pairs: int, users: int = 500) -> Iterator[Pair]:
    """Mirrored pairs with distinct texts."""
    prose = Prose(0)
    profiles = {
        f"u{user:04d}": tuple(Post(id=f"u{user:04d}-{i}", text=prose.text(80)) for i in range(12))
        for user in range(users)
    }
    for number in range(pairs // 2):
        couple = number % (users // 2)
        question, answers = prose.text(35), [prose.text(100), prose.text(100)]
        for half in range(2):
            user = f"u{2 * couple + half:04d}"
            yield Pair(
                id=f"{user}:{number:05d}",
                user=user,
                question=question,
                profile=profiles[user],
                narrative=prose.text(30),
                rubric_aspects=(Aspect(aspect=prose.text(8), reason=prose.text(15)),),
                category=CATEGORIES[number % len(CATEGORIES)],
                chosen=answers[half],
                rejected=answers[1 - half],
                tags={
                    "split": "test",
                    "axis": AXES[number % len(AXES)],
                    "pole": f"pole {half}",
                    "mirror": f"m{number}",
                    "couple": f"c{couple}",
                },
            )


def noise(*parts: object) -> float:
    """A number from 0 to 1 that depends on what it is given and on nothing else."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


class NoisyRater:
    """Scores by a hash of what it sees."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.card = ModelCard(address=f"py:bench:{name}", revision="1", reads=frozenset(Channel))

    def render(self, view: AnswerView) -> Prompt:
        """What decides the score."""
        shown = f"{view.user}|{len(view.posts)}|{len(view.plan)}"
        return Prompt((Message("user", f"{shown}|{view.question[:40]}|{view.answer[:40]}"),))

    def rate(self, views: Sequence[AnswerView]) -> Iterator[tuple[int, Outcome]]:
        """Score."""
        for index, view in enumerate(views):
            yield index, Outcome.scored(4 * noise(self.name, self.render(view)))


class NoisyJudge:
    """Judges by a hash, and writes forty words about it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.card = ModelCard(address=f"py:bench:{name}", revision="1", reads=frozenset(Channel))
        prose = Prose(7)
        self._phrases = [prose.text(8) for _ in range(4000)]

    def render(self, view: PairView) -> Prompt:
        """What decides the verdict."""
        shown = f"{view.user}|{len(view.posts)}|{len(view.plan)}|{view.question[:40]}"
        return Prompt((Message("user", f"{shown}|{view.first[:40]}|{view.second[:40]}"),))

    def compare(self, views: Sequence[PairView]) -> Iterator[tuple[int, Outcome]]:
        """Judge."""
        for index, view in enumerate(views):
            seen = self.render(view)
            margin = 4 * (noise(self.name, seen) - 0.5)
            words = [self._phrases[int(noise(self.name, seen, i) * len(self._phrases))] for i in range(5)]
            yield index, Outcome.judged("first" if margin > 0 else "second", margin, raw=". ".join(words))


def make_runs(folder: Path, pairs: int, models: int) -> list[Path]:
    """The runs, made once."""
    suite = folder / "suite.jsonl"
    if not suite.is_file():
        write_pairs(synthetic_suite(pairs), suite)
    paths = []
    for number in range(models):
        path = folder / f"model-{number}"
        if not (path / "result.json").is_file():
            model = NoisyJudge(f"judge-{number}") if number >= models - 2 else NoisyRater(f"rater-{number}")
            evaluate(model, suite, contexts=CONTEXTS, resamples=100, out=path, cache=False)
            print(f"  made {path.name}", file=sys.stderr, flush=True)
        paths.append(path)
    return paths


FILTERS: dict[str, str] = {
    "category": "choose('category', '=law')",
    "axis": "choose('axis', '=risk')",
    "user": "choose('user', '=u0007')",
    "model wrong under profile": "click('condition-add')",
    "models disagree": "click('disagree')",
    "hardest first": "choose('sort', 'hardest')",
    "search, one word": "type('kabe')",
    "search, two words": "type('kabe zu')",
    "search everything": "(document.getElementById('scope').value = 'all', type('kabe zu'))",
}

TURNS = 5

MEASURE = """async () => {
  const get = (id) => document.getElementById(id);
  const choose = (id, value) => { get(id).value = value; get(id).dispatchEvent(new Event("change")); };
  const type = (text) => { get("query").value = text; get("query").dispatchEvent(new Event("input")); };
  const click = (id) => get(id).click();
  const root = get("browser");
  delete root.dataset.filterMs;
  const started = performance.now();
  ACTION;
  while (root.dataset.filterMs === undefined) await new Promise((done) => setTimeout(done, 0));
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  return performance.now() - started;
}"""


def measure(path: Path) -> dict[str, float]:
    """Open the page and use it, as a reader would; milliseconds."""
    from playwright.sync_api import sync_playwright

    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.set_default_timeout(120_000)
        page.goto(path.as_uri())
        paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        loaded = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
        started = time.perf_counter()
        page.evaluate("location.hash = '#pairs'")
        page.wait_for_selector(".detail h2")
        found = {"first paint": paint, "loaded": loaded, "pairs opened": 1000 * (time.perf_counter() - started)}
        for name, action in FILTERS.items():
            taken = [_filter(page, action) for _ in range(TURNS + 1)]
            found[name] = statistics.median(taken[1:])
            if "search" in name:
                found[f"{name}, first time"] = taken[0]  # unpacks the texts
        browser.close()
    return found


def _filter(page: "Page", action: str) -> float:
    """From a change of the filters to the next frame painted, in milliseconds."""
    page.evaluate("document.getElementById('reset').click()")
    page.wait_for_timeout(200)
    return float(page.evaluate(MEASURE.replace("ACTION", action)))


def timed(work: Callable[[], str]) -> tuple[str, float]:
    """A result and its seconds."""
    started = time.perf_counter()
    return work(), time.perf_counter() - started


def main() -> int:
    """Build, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--models", type=int, default=10)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "prbench-report-benchmark")
    options = parser.parse_args()
    runs = make_runs(options.folder / f"{options.pairs}x{options.models}", options.pairs, options.models)
    page, built_s = timed(lambda: report_page(runs))
    path = options.folder / "report.html"
    path.write_text(page, encoding="utf-8")
    times = measure(path)
    steady = {name: value for name, value in times.items() if name in FILTERS}
    figures = {
        "pairs × models": f"{options.pairs} × {options.models}",
        "built in, s": round(built_s, 1),
        "file, MB": round(path.stat().st_size / 1e6, 1),
        "first paint, ms": round(times["first paint"]),
        "slowest filter, ms": round(max(steady.values())),
        "all, ms": {name: round(value) for name, value in times.items()},
    }
    print(json.dumps(figures, indent=2, ensure_ascii=False))
    missed = [name for name, limit in LIMITS.items() if figures[name] > limit]
    if missed:
        print("missed: " + ", ".join(missed), file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
