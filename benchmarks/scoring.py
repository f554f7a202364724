"""Shared-prefix scoring against full prompts, side by side on this machine, with the architecture of SmolLM2-135M.

Run: python benchmarks/scoring.py [--quick] [--model DIR] [--repeats N] [--dtype bfloat16] [--processor-time]

Weights are random unless a folder is named: speed does not depend on them. Full prompts are timed on a sample and
extrapolated by tokens; the sample of the sorted baseline lies together in the sorted order, so that it has no more
padding than the whole. Variants take turns; each figure is a median over repeats. Attention grows with the square of
the length, so the limit by tokens can be passed. On a busy machine, --processor-time counts what one thread really
computed instead of what the clock says.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification, LlamaConfig, LlamaForSequenceClassification

from prbench.models._prefix import PrefixScorer, last_logits
from prbench.models._prefix_forward import CausalForward
from prbench.models._prefix_tree import Tree

BATCH_TOKENS = 8192
OFFICIAL_BATCH = 8
Ids = list[int]
clock: Callable[[], float] = time.perf_counter


class Workload(NamedTuple):
    """Prompts to score, as a suite or a best-of-n study asks for them."""

    name: str
    target: str
    prompts: list[Ids]


class Timing(NamedTuple):
    """What one variant took for a workload."""

    seconds: float
    scores: dict[int, float]


class Draw:
    """Random token ids and lengths; every call gives new ones."""

    def __init__(self, vocabulary: int) -> None:
        self._random = np.random.default_rng(0)
        self._vocabulary = vocabulary

    def tokens(self, count: int) -> Ids:
        """So many tokens."""
        return self._random.integers(0, self._vocabulary, count).tolist()

    def answer(self) -> Ids:
        """An answer of 100 to 160 tokens, 130 on average."""
        return self.tokens(int(self._random.integers(100, 161)))

    def question(self) -> Ids:
        """A question of 20 to 60 tokens."""
        return self.tokens(int(self._random.integers(20, 61)))


def workloads(draw: Draw, quick: bool) -> list[Workload]:
    """The five situations of a real run; `quick` has fewer prompts of the same shape."""
    opening = draw.tokens(12)  # what a chat template begins with

    def candidates(count: int, answers: int, profile: int) -> list[Ids]:
        stems = [opening + draw.tokens(profile) + draw.question() for _ in range(count)]
        return [stem + draw.answer() for stem in stems for _ in range(answers)]

    def mirror(users: int, questions: int) -> list[Ids]:
        profiles = [opening + draw.tokens(1300) for _ in range(users)]
        stems = [profile + draw.question() for profile in profiles for _ in range(questions)]
        return [stem + draw.answer() for stem in stems for _ in range(2)]

    return [
        Workload("pair, 1,500-token profile", "≥ 85 %", candidates(1 if quick else 3, 2, 1450)),
        Workload("best of 16", "≥ 85 %", candidates(1, 16, 1450)),
        Workload("best of 64", "≥ 75 %", candidates(1, 24 if quick else 64, 1450)),
        Workload("mirror: 30 questions per user", "≥ 70 %", mirror(1, 10 if quick else 30)),
        Workload("short prompts, no profile", "not slower", candidates(8 if quick else 24, 2, 0)),
    ]


def time_shared(model: Any, prompts: Sequence[Ids]) -> Timing:
    """All prompts, shared."""
    scorer = PrefixScorer(model, batch_tokens=BATCH_TOKENS)
    start = clock()
    scores = {reading.request: reading.values[0] for reading in scorer.read([last_logits(ids, [0]) for ids in prompts])}
    return Timing(clock() - start, scores)


def time_sorted(model: Any, prompts: Sequence[Ids], most_tokens: int) -> Timing:
    """Full prompts in batches sorted by length, from the middle of the order, extrapolated."""
    order = sorted(range(len(prompts)), key=lambda index: len(prompts[index]))
    chosen = _sample(order, prompts, most_tokens)
    scorer = PrefixScorer(model, batch_tokens=BATCH_TOKENS, shared=False)
    start = clock()
    readings = list(scorer.read([last_logits(prompts[index], [0]) for index in chosen]))
    seconds = clock() - start
    return Timing(
        seconds * _share(prompts, chosen), {chosen[reading.request]: reading.values[0] for reading in readings}
    )


def time_official(model: Any, prompts: Sequence[Ids], most_tokens: int) -> Timing:
    """Full prompts in batches of eight as they come, extrapolated."""
    chosen = _sample(range(len(prompts)), prompts, most_tokens)
    forward = CausalForward(model)
    scores: list[float] = []
    start = clock()
    with torch.inference_mode():
        for begin in range(0, len(chosen), OFFICIAL_BATCH):
            batch = [np.asarray(prompts[index]) for index in chosen[begin : begin + OFFICIAL_BATCH]]
            ends = [(row, len(ids) - 1) for row, ids in enumerate(batch)]
            scores += forward.padded(batch, ends)[:, 0].tolist()
    seconds = clock() - start
    return Timing(seconds * _share(prompts, chosen), dict(zip(chosen, scores, strict=True)))


def _sample(order: Sequence[int], prompts: Sequence[Ids], most_tokens: int) -> list[int]:
    """As many whole prompts from the middle of an order as the tokens allow."""
    length = statistics.mean(len(ids) for ids in prompts)
    count = min(len(order), max(2, round(most_tokens / length)))
    start = (len(order) - count) // 2
    return list(order[start : start + count])


def _share(prompts: Sequence[Ids], chosen: Sequence[int]) -> float:
    return sum(map(len, prompts)) / sum(len(prompts[index]) for index in chosen)


def measure(model: Any, workload: Workload, repeats: int, sample_tokens: int) -> str:
    """Time the three variants in turn and describe them in one row."""
    variants: dict[str, Callable[[], Timing]] = {
        "sorted": lambda: time_sorted(model, workload.prompts, sample_tokens),
        "official": lambda: time_official(model, workload.prompts, sample_tokens),
        "shared": lambda: time_shared(model, workload.prompts),
    }
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    ratios: dict[str, list[float]] = {"sorted": [], "official": []}
    difference = 0.0
    for _ in range(repeats):
        timings = {name: run() for name, run in variants.items()}
        for name, timing in timings.items():
            seconds[name].append(timing.seconds)
        for name, found in ratios.items():
            found.append(timings[name].seconds / timings["shared"].seconds)
            pairs = timings[name].scores.items()
            difference = max(difference, *(abs(score - timings["shared"].scores[index]) for index, score in pairs))
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    ratio, official = (statistics.median(ratios[name]) for name in ("sorted", "official"))
    naive, distinct = sum(map(len, workload.prompts)), Tree(workload.prompts).root.total
    limit = naive / distinct
    return (
        f"{workload.name:31}{medians['sorted']:>9.1f}{medians['official']:>10.1f}{medians['shared']:>9.1f}"
        f"{ratio:>9.2f}×{official:>9.2f}×{limit:>8.2f}×{ratio / limit:>8.0%} {workload.target:>11}"
        f"{difference:>10.0e}{distinct / medians['shared']:>8.0f}"
        f"{useful_flops(model, workload.prompts) / medians['shared'] / matmul_peak():>7.0%}"
    )


def useful_flops(model: Any, prompts: Sequence[Ids]) -> float:
    """Operations on distinct tokens: two per weight, and attention to the keys that a token really sees."""
    embedded = model.get_input_embeddings().weight.numel()
    weights = sum(parameter.numel() for parameter in model.parameters()) - embedded
    config = model.config
    per_key = 4 * config.num_hidden_layers * config.hidden_size
    nodes = list(Tree(prompts).nodes())
    keys = sum((node.end * (node.end + 1) - node.start * (node.start + 1)) // 2 for node in nodes)
    return 2.0 * weights * sum(node.size for node in nodes) + per_key * keys


def matmul_peak() -> float:
    """Operations per second of a large matrix product in float32, the best of a few."""
    size = 2048
    matrix = torch.randn(size, size)
    times = []
    for _ in range(5):
        start = clock()
        matrix @ matrix
        times.append(clock() - start)
    return 2 * size**3 / min(times)


def build(folder: str | None, dtype: str) -> Any:
    """The named classifier, or SmolLM2-135M's shape with random weights."""
    if folder is not None:
        model = AutoModelForSequenceClassification.from_pretrained(folder)
    else:
        torch.manual_seed(0)
        config = LlamaConfig(
            vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9,
            num_key_value_heads=3, max_position_embeddings=8192, num_labels=1, pad_token_id=2, eos_token_id=2,
        )  # fmt: skip
        model = LlamaForSequenceClassification(config)
    return model.eval().to(getattr(torch, dtype))


def main() -> None:
    """Print one row per workload."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer prompts, one repeat")
    parser.add_argument("--model", help="folder of a causal sequence classifier")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", type=int, help="number of one workload, from 1")
    parser.add_argument("--sample-tokens", type=int, default=6_600, help="tokens of full prompts to time")
    parser.add_argument("--processor-time", action="store_true", help="one thread, by its processor time")
    options = parser.parse_args()
    if options.processor_time:
        global clock
        clock = time.process_time
        torch.set_num_threads(1)
    model = build(options.model, options.dtype)
    cases = workloads(Draw(model.config.vocab_size), options.quick)
    print(f"matmul peak {matmul_peak() / 1e9:.0f} GFLOP/s on {torch.get_num_threads()} threads, {options.dtype}")
    print(f"{'':31}{'—————————— seconds ——————————':>28}{'— shared is faster by —':>21}")
    print(
        f"{'workload':31}{'sorted':>9}{'official':>10}{'shared':>9}{'sorted':>10}{'official':>10}{'limit':>9}"
        f"{'reached':>8} {'wanted':>11}{'differs':>10}{'tok/s':>8}{'peak':>7}"
    )
    for case in cases if options.only is None else cases[options.only - 1 : options.only]:
        print(measure(model, case, 1 if options.quick else options.repeats, options.sample_tokens), flush=True)


if __name__ == "__main__":
    main()
