"""How time and memory of a run grow with its pairs: a free model, so that everything measured is the house's own.

    python benchmarks/growth.py [--pairs 10000 100000 1000000] [--format parquet|jsonl] [--folder FOLDER] [--keep FILE]

A synthetic mirrored suite of so many pairs is written once; `prbench run --model longer --context none`, `prbench
verify` and `prbench report` then run on it, each in a process of its own with an empty cache. Printed are processor
time (user and system, all threads) and peak memory of each, their exponents from 100,000 pairs up, what a report of ten
models on 10,000 pairs takes, and the bars below.
Exits with 1 where one is missed. Times are those of this machine: run it on two quiet cores before believing a bar.
"""

import argparse
import json
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from drawing import keep

STEPS = ("run", "verify", "report")
RUN_BARS: dict[int, tuple[float, float]] = {10_000: (3, math.inf), 100_000: (15, 800), 1_000_000: (300, 3_000)}
"""Pairs → processor seconds and peak megabytes of `run`, on two quiet cores."""
MODELS, MODELS_PAIRS, MODELS_S = 10, 10_000, 10
"""Models in one report, pairs of each, and processor seconds that it may take."""
EXPONENT = 1.05
"""Of time and memory, from 100,000 pairs up."""
LARGE = 100_000
_CATEGORIES = ("art", "food", "law", "money", "music", "sport", "travel", "work")
_AXES = ("brevity", "candour", "humour", "proof", "risk", "warmth")
_BATCH = 10_000


class Taken(NamedTuple):
    """What one command took."""

    cpu_s: float
    peak_mb: float


class Prose:
    """Texts of made-up words."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
        self._words = np.array(["".join(self._rng.choice(syllables, 1 + i % 4)) for i in range(5_000)], dtype=object)

    def texts(self, count: int, low: int, high: int) -> list[str]:
        """So many texts, each of a number of words between two bounds."""
        sizes = self._rng.integers(low, high + 1, count)
        words = self._words[self._rng.integers(0, len(self._words), int(sizes.sum()))]
        ends = np.cumsum(sizes)
        return [" ".join(words[end - size : end]) for end, size in zip(ends.tolist(), sizes.tolist(), strict=True)]


def rows(pairs: int) -> Iterator[dict[str, Any]]:
    """Mirrored pairs: some fifty for a user, questions that several couples meet, answers that nobody else meets."""
    prose = Prose(0)
    mirrors = pairs // 2
    couples, asked = max(2, pairs // 100), max(3, pairs // 20 + 1)
    posts = prose.texts(4 * couples, 8, 16)
    questions = prose.texts(asked, 8, 16)
    for start in range(0, mirrors, _BATCH):
        numbers = range(start, min(start + _BATCH, mirrors))
        answers = prose.texts(2 * len(numbers), 20, 40)
        for place, number in enumerate(numbers):
            couple, both = number % couples, answers[2 * place : 2 * place + 2]
            for half in range(2):
                user = f"u{2 * couple + half:06d}"
                said = posts[2 * (2 * couple + half) :][:2]
                yield {
                    "id": f"{user}:{number:07d}",
                    "user": user,
                    "question": questions[number % asked],
                    "profile": [{"id": f"{user}-{i}", "category": "", "text": text} for i, text in enumerate(said)],
                    "rubric_aspects": [{"aspect": f"{_AXES[number % 6]} {half}", "evidence": "", "reason": ""}],
                    "narrative": "",
                    "category": _CATEGORIES[number % 8],
                    "chosen": both[half],
                    "rejected": both[1 - half],
                    "tags": {
                        "axis": _AXES[number % 6],
                        "couple": f"c{couple}",
                        "mirror": f"m{number}",
                        "pole": f"pole {half}",
                        "split": "test",
                    },
                }


def write_suite(path: Path, pairs: int) -> None:
    """Write the suite in the layout of `write_pairs`, batch by batch."""
    partial = path.with_suffix(".part")
    if path.suffix == ".jsonl":
        with partial.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows(pairs))
    else:
        _write_parquet(partial, pairs)
    partial.replace(path)


def _write_parquet(path: Path, pairs: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer, batch = None, []
    for number, row in enumerate(rows(pairs), 1):
        batch.append({**row, "tags": json.dumps(row["tags"])})
        if len(batch) == _BATCH or number == pairs // 2 * 2:
            table = pa.Table.from_pylist(batch)
            writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
            writer.write_table(table)
            batch = []
    if writer is not None:
        writer.close()


def measured(arguments: Sequence[str], cache: Path, log: Path) -> Taken:
    """Run a command and count what it took, children included."""
    environment = {**os.environ, "PRBENCH_CACHE": str(cache), "PYTHONPYCACHEPREFIX": str(log.parent / "compiled")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled once, not at every start
    with log.open("wb") as output:
        process = os.posix_spawn(
            sys.executable,
            [sys.executable, "-m", "prbench", *arguments],
            environment,
            file_actions=[(os.POSIX_SPAWN_DUP2, output.fileno(), 1), (os.POSIX_SPAWN_DUP2, output.fileno(), 2)],
        )
        _, status, usage = os.wait4(process, 0)
    if status:
        sys.exit(f"prbench {' '.join(arguments)} ended with {status}:\n{log.read_text()[-2000:]}")
    return Taken(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def warm_up(folder: Path) -> None:
    """Run each step once on a few pairs, so that all modules are compiled."""
    suite, run = folder / "pairs-200.jsonl", folder / "run-200"
    write_suite(suite, 200)
    shutil.rmtree(run, ignore_errors=True)
    for arguments in (
        ["run", "--suite", str(suite), "--model", "longer", "--context", "none", "--out", str(run)],
        ["verify", str(run)],
        ["report", str(run), "--out", str(folder / "report-200.html")],
    ):
        measured(arguments, folder / "cache", folder / "warm-up.log")


def measure(folder: Path, pairs: int, form: str) -> dict[str, Taken]:
    """What each step took for a suite of so many pairs."""
    suite, run = folder / f"pairs-{pairs}.{form}", folder / f"run-{pairs}"
    if not suite.is_file():
        write_suite(suite, pairs)
    shutil.rmtree(run, ignore_errors=True)
    commands = {
        "run": ["run", "--suite", str(suite), "--model", "longer", "--context", "none", "--out", str(run)],
        "verify": ["verify", str(run)],
        "report": ["report", str(run), "--out", str(folder / f"report-{pairs}.html")],
    }
    with tempfile.TemporaryDirectory(dir=folder) as cache:
        found = {}
        for step, arguments in commands.items():
            found[step] = measured(arguments, Path(cache), folder / f"{step}.log")
            print(f"{pairs:>10,} {step:8}{found[step].cpu_s:>9.1f} s{found[step].peak_mb:>9,.0f} MB", flush=True)
    return found


def measure_models(folder: Path, form: str) -> dict[int, Taken]:
    """What a report of one, some and all models took: three of them fixed, the others chance with different seeds."""
    suite, runs = folder / f"pairs-{MODELS_PAIRS}.{form}", []
    models = [["longer"], ["shorter"], ["overlap"], *(["random", "--seed", str(seed)] for seed in range(MODELS - 3))]
    with tempfile.TemporaryDirectory(dir=folder) as place:
        for number, model in enumerate(models):
            runs.append(f"{place}/run-{number}")
            run = ["run", "--suite", str(suite), "--context", "none", "--out", runs[-1], "--model", *model]
            measured(run, Path(place) / "cache", folder / "run.log")
        found = {}
        for count in (1, 2, 5, MODELS):
            report = ["report", *runs[:count], "--out", f"{place}/report.html"]
            found[count] = taken = measured(report, Path(place) / "cache", folder / "report.log")
            shown = f"{taken.cpu_s:>9.1f} s{taken.peak_mb:>9,.0f} MB"
            print(f"{MODELS_PAIRS:>10,} report of {count} models{shown}", flush=True)
    return found


def exponent(sizes: Sequence[int], values: Sequence[float]) -> float:
    """The slope of the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def missed_bars(taken: dict[int, dict[str, Taken]]) -> Iterator[str]:
    """Every bar that was missed, in words; prints the exponents on the way."""
    for pairs, found in taken.items():
        seconds, megabytes = RUN_BARS.get(pairs, (math.inf, math.inf))
        if found["run"].cpu_s > seconds:
            yield f"run of {pairs:,} pairs: {found['run'].cpu_s:.1f} s of processor time, {seconds:.0f} allowed"
        if found["run"].peak_mb > megabytes:
            yield f"run of {pairs:,} pairs: {found['run'].peak_mb:,.0f} MB, {megabytes:,.0f} allowed"
        for step in STEPS[1:]:
            if found[step].cpu_s > found["run"].cpu_s:
                yield f"{step} of {pairs:,} pairs takes longer than the run"
    large = [pairs for pairs in taken if pairs >= LARGE]
    for step in STEPS if len(large) > 1 else ():
        for name, values in (
            ("time", [taken[pairs][step].cpu_s for pairs in large]),
            ("memory", [taken[pairs][step].peak_mb for pairs in large]),
        ):
            found_exponent = exponent(large, values)
            print(f"exponent of {name}, {step}: {found_exponent:.2f}")
            if found_exponent > EXPONENT:
                yield f"exponent of {name} of {step} from {large[0]:,} pairs up: {found_exponent:.2f} > {EXPONENT}"


def main() -> int:
    """Measure, print, compare with the bars."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, nargs="+", default=[10_000, 100_000, 300_000, 1_000_000])
    parser.add_argument("--format", choices=["parquet", "jsonl"], default="parquet")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "prbench-growth")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="keep the figures there for drawing.py")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    warm_up(options.folder)
    taken = {pairs: measure(options.folder, pairs, options.format) for pairs in sorted(options.pairs)}
    missed = list(missed_bars(taken))
    for step in STEPS:
        keep(options.keep, **{f"{step}: seconds by pairs": [(pairs, taken[pairs][step].cpu_s) for pairs in taken]})
    keep(options.keep, **{"run: megabytes by pairs": [(pairs, taken[pairs]["run"].peak_mb) for pairs in taken]})
    if MODELS_PAIRS in taken:
        reports = measure_models(options.folder, options.format)
        keep(options.keep, **{"report: seconds by models": [(count, one.cpu_s) for count, one in reports.items()]})
        if (all_s := reports[MODELS].cpu_s) > MODELS_S:
            missed.append(f"report of {MODELS} models: {all_s:.1f} s of processor time, {MODELS_S} allowed")
    for bar in missed:
        print(f"missed: {bar}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
