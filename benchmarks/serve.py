"""The reward server with batches of 32 against the same server scoring one item at a time, side by side, with bars.

Run: python benchmarks/serve.py [--case rollouts|distinct|short|minilm …] [--items 64] [--group 16] [--repeats 1]

A real server process on loopback, real HTTP, one item per request, as OpenRLHF and verl send them, from 64 clients at
once. Both arms differ in `--max-batch` alone (1 is a blocking handler); they take turns, figures are
medians. On a busy machine the clock tells little: items per second of the server's own processor time are compared too,
which with --threads 1 is what a quiet machine would show. Both arms must give the same answers, and some of them are
held against a reference that this process computes without a server: a lost or crossed answer ends the benchmark,
unless two scores are equal to 2e-5.

p50 and p95 of a request, as its client sees it under all clients at once, are those of the arm with batches.

    rollouts   16 candidates for each question (--group), as best-of-N and GRPO draw them, with three posts: a
               causal classifier, which computes posts and question once for all candidates in a batch
    distinct   one answer for each question, with two posts: the same classifier, little to share
    short      a tiny classifier, 40 words without posts: what a call costs beside its arithmetic is shared
    minilm     closeness of MiniLM embeddings, distinct texts, one post: compute-bound on CPU, so batches hardly pay

Exits with 1 where a case misses its bar: 2× for rollouts, 1× for distinct texts, of the ratio as it is printed. The bar
holds for processor time, and for the clock as well where the machine was quiet at the beginning.
"""

import argparse
import asyncio
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import tiny_models
from prbench.data import Suite, load_pairs
from prbench.models import ModelOptions, load_model
from prbench.serve.items import ItemError, ScoreItem
from prbench.serve.views import Views
from prbench.types import Context, Pair

Json = dict[str, Any]
TOLERANCE = 2e-5
"""Batches move scores by 5e-7 (`rollouts`) to 2e-6 (`short`, whose scores are larger), measured."""
BATCH = 32
WINDOW = 4000
CUT = 100
"""Characters of a short text."""
BARS = {"rollouts": 2.0, "distinct": 1.0, "short": 1.0, "minilm": 1.0}
"""Least ratio to one by one."""
SHORT_ITEMS = 4
"""Times as many items where each takes milliseconds."""
REFERENCE_EVERY = 8
"""One answer in so many is computed without a server."""
QUIET = 0.5
"""Load for each core up to which a machine is quiet."""


class Case(NamedTuple):
    """A model, a context, and what is asked."""

    name: str
    model: str
    context: str
    items: list[Json]


class Load(NamedTuple):
    """What one arm did."""

    items_per_second: float
    items_per_cpu_second: float
    scores: list[float]
    mean_batch: float
    waited_s: list[float]
    """Seconds that each request took, as its client saw it."""


@cache
def suite() -> Suite:
    """Everything that the server knows."""
    return load_pairs("mirror")


def classifier(folder: Path) -> str:
    """A causal classifier of 4 layers of width 128: small, but with arithmetic to do."""
    size = {"hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 4, "num_attention_heads": 8}
    path = tiny_models.save_reward_model(
        folder / "classifier", num_key_value_heads=4, max_position_embeddings=4096, initializer_range=0.05, **size
    )
    return f"hf:{path}"


def candidates(pair: Pair, count: int) -> list[str]:
    """Answers to one question, all different: the pair's own with their sentences cut and turned."""
    words = f"{pair.chosen} {pair.rejected}".split()
    return [" ".join(words[number : number + 25]) + f" ({number})" for number in range(count)]


def make_case(name: str, count: int, group: int, folder: Path) -> Case:
    """Items and model of a case."""
    pairs = list({pair.chosen[:CUT]: pair for pair in suite() if pair.tags["split"] == "test"}.values())
    count = count * SHORT_ITEMS if name == "short" else count
    step = max(1, len(pairs) // count)
    spread = pairs[::step][:count]
    if name == "rollouts":
        asked = [(pair, answer) for pair in spread[::group] for answer in candidates(pair, group)]
        return Case(name, classifier(folder), "retrieved@3", [_item(*one) for one in asked])
    items = [_item(pair, pair.chosen) for pair in spread]
    match name:
        case "distinct":
            return Case(name, classifier(folder), "retrieved@2", items)
        case "short":
            tiny = tiny_models.save_reward_model(folder / "tiny")
            short = [{**item, "answer": item["answer"][:CUT], "question": item["question"][:CUT]} for item in items]
            return Case(name, f"hf:{tiny}", "none", short)
        case _:
            return Case(name, "embed:minilm", "retrieved@1", items)


def _item(pair: Pair, answer: str) -> Json:
    return {"question": pair.question, "answer": answer, "user": pair.user}


def reference(case: Case) -> list[float]:
    """What the model says of some items, asked here, one after the other."""
    model = load_model(case.model, ModelOptions(window=WINDOW if case.model.startswith("hf:") else None))
    views = Views(suite(), model, Context.parse(case.context))  # type: ignore[arg-type]
    scores = []
    for item in case.items[::REFERENCE_EVERY]:
        (view,) = views.show([ScoreItem.model_validate(item)])
        if isinstance(view, ItemError):
            raise SystemExit(f"case {case.name!r}: {view.message}")
        ((_, outcome),) = list(model.rate([view]))  # type: ignore[union-attr]
        scores.append(outcome.score)
    return scores


@contextmanager
def server(case: Case, max_batch: int, folder: Path) -> Iterator[tuple[str, int, int]]:
    """The server process; yields host, port and process id."""
    options = ["--max-batch", str(max_batch), "--max-wait-ms", "0" if max_batch == 1 else "10"]
    command = [
        sys.executable,
        "-m",
        "prbench",
        "serve",
        "--model",
        case.model,
        "--context",
        case.context,
        "--port",
        "0",
    ]
    options += ["--window", str(WINDOW)] if case.model.startswith("hf:") else []
    state = ["--state", str(folder / f"{case.name}-{max_batch}.jsonl")]
    process = subprocess.Popen([*command, *options, *state], stdout=subprocess.PIPE, text=True, env=os.environ)
    try:
        found = re.match(r"http://([\d.]+):(\d+)", process.stdout.readline() if process.stdout else "")
        if not found:
            raise SystemExit(f"the server of case {case.name!r} did not start")
        yield found[1], int(found[2]), process.pid
        process.send_signal(signal.SIGTERM)
        if process.wait(60) != 0:
            raise SystemExit("the server did not stop cleanly")
    finally:
        process.kill()


async def request(streams: Any, method: str, path: str, body: bytes = b"") -> bytes:
    """One request over an open connection; a bare client, so that its own work is not what is measured."""
    reader, writer = streams
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    )
    writer.write(head.encode() + b"\r\n\r\n" + body)
    await writer.drain()
    headers = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = re.search(r"content-length: (\d+)", headers, re.IGNORECASE)
    reply = await reader.readexactly(int(length[1]) if length else 0)
    if " 200 " not in headers.partition("\r\n")[0]:
        raise SystemExit(f"{headers.partition(chr(13))[0]}: {reply[:300]!r}")
    return bytes(reply)


def cpu_seconds(process: int) -> float:
    """Processor time of a process so far; 0 where the system does not tell."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def load(host: str, port: int, process: int, items: Sequence[Json], clients: int) -> Load:
    """Have so many clients ask for all items, one per request."""
    open_items = list(enumerate(items))[::-1]
    scores: dict[int, float] = {}
    waited: list[float] = []

    async def client() -> None:
        streams = await asyncio.open_connection(host, port)
        while open_items:
            place, item = open_items.pop()
            asked = time.perf_counter()
            reply = await request(streams, "POST", "/score", json.dumps({"items": [item]}).encode())
            waited.append(time.perf_counter() - asked)
            scores[place] = json.loads(reply)["scores"][0]
        streams[1].close()

    before = await batches(host, port)
    began, cpu = time.perf_counter(), cpu_seconds(process)
    await asyncio.gather(*(client() for _ in range(clients)))
    took, worked = time.perf_counter() - began, cpu_seconds(process) - cpu
    made = await batches(host, port) - before
    in_order = [scores[place] for place in range(len(items))]
    return Load(len(items) / took, len(items) / (worked or float("nan")), in_order, len(items) / made, waited)


async def batches(host: str, port: int) -> float:
    """Batches that the server has made so far."""
    page = (await request(await asyncio.open_connection(host, port), "GET", "/metrics")).decode()
    return float(re.search(r"batch_items_count (\S+)", page)[1])  # type: ignore[index]


def arm(case: Case, max_batch: int, clients: int, folder: Path) -> Load:
    """Start a server, warm it up with other answers, load it."""
    with server(case, max_batch, folder) as place:
        warm = [{**item, "answer": item["answer"] + " Warm."} for item in case.items[:8]]
        asyncio.run(load(*place, warm, 4))
        return asyncio.run(load(*place, case.items, clients))


def check(case: Case, found: Sequence[float], expected: Sequence[float]) -> float:
    """The largest difference from what is expected; ends the benchmark where an answer is another item's."""
    worst = max(abs(one - two) for one, two in zip(found, expected, strict=True))
    if worst > TOLERANCE:
        raise SystemExit(f"case {case.name!r}: an answer is {worst:.4f} off its reference: lost, crossed or wrong")
    return worst


def main() -> int:
    """Print one row per case; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", action="append", choices=list(BARS))
    parser.add_argument("--items", type=int, default=64)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--group", type=int, default=16, help="candidates for a question, in rollouts")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="of the model, in both arms")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    cores, busy = os.cpu_count() or 1, os.getloadavg()[0]
    quiet = busy <= QUIET * cores
    judged = "clock and processor time" if quiet else "processor time"
    machine = f"{options.threads} of {cores} cores, load {busy:.1f}: judged by {judged}"
    print(f"{options.items} items, {options.clients} clients, {machine}")
    columns = ("one by one", "batches", "ratio", "CPU ratio", "bar", "mean batch", "p50 / p95 ms", "max diff")
    print("case       {:>12} {:>12} {:>7} {:>10} {:>5} {:>11} {:>15} {:>9}".format(*columns))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cases = (make_case(one, options.items, options.group, folder) for one in options.case or BARS)
        missed = [case.name for case in cases if not row(case, options, folder, quiet)]
    print(f"missed: {', '.join(missed)}" if missed else "every bar reached")
    return 1 if missed else 0


def row(case: Case, options: argparse.Namespace, folder: Path, quiet: bool) -> bool:
    """Measure one case, arms taking turns; whether its bar is reached."""
    expected = reference(case)
    runs = [[arm(case, size, options.clients, folder) for size in (1, BATCH)] for _ in range(options.repeats)]
    loads = [one for pair in runs for one in pair]
    worst = max(
        *(check(case, one.scores[::REFERENCE_EVERY], expected) for one in loads),
        *(check(case, one.scores, loads[0].scores) for one in loads),
    )
    single, batched = (statistics.median(pair[place].items_per_second for pair in runs) for place in (0, 1))
    ratio = statistics.median(pair[1].items_per_second / pair[0].items_per_second for pair in runs)
    cpu = statistics.median(pair[1].items_per_cpu_second / pair[0].items_per_cpu_second for pair in runs)
    size = statistics.median(pair[1].mean_batch for pair in runs)
    cuts = statistics.quantiles([1000 * one for pair in runs for one in pair[1].waited_s], n=20)
    waited = f"{cuts[9]:.0f} / {cuts[18]:.0f}"
    bar = BARS[case.name]
    print(
        f"{case.name:10} {single:10.1f}/s {batched:10.1f}/s {ratio:6.1f}× {cpu:9.1f}× {bar:4.0f}× {size:11.1f} "
        f"{waited:>15} {worst:9.1e}",
        flush=True,
    )
    return all(round(one, 1) >= bar for one in ((cpu, ratio) if quiet else (cpu,)))


if __name__ == "__main__":
    sys.exit(main())
