"""Shared-prefix scoring against full prompts, side by side on this machine, with the architecture of SmolLM2-135M.

Run: python benchmarks/scoring.py [--quick] [--threads N] [--model DIR] [--repeats N] [--dtype NAME] [--processor-time]

Protocol. Three baselines compute every prompt in full: *sorted*, length-sorted batches of 8,192 padded tokens;
*official*, batches of eight as they come; *one by one*, unpadded, which lets PyTorch use its causal kernel and is the
strongest on a processor. Baselines are timed on whole batches (from the middle of the order, at least --sample-tokens)
and extrapolated by tokens; shared scoring is timed on everything. Variants take turns and each figure is a median over
repeats. The limit is naive ÷ distinct tokens. It leaves out attention, which is cheaper without padding and masks and
dearer behind a long prefix, so it can be passed as well as missed. Verdicts are held against those of full prompts on
all pairs of sampled prompts.

The second part scores 1, 2, 4, 8 times as many pairs, then profiles 1, 2, 4, 8 times as long, and fits seconds against
distinct tokens. Weights are random unless a folder is named: speed does not depend on them. On a busy machine,
--processor-time counts what one thread really computed instead of what the clock says.
"""

import argparse
import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification, LlamaConfig, LlamaForSequenceClassification

from prbench.models.local.batching import plan_batches
from prbench.models.local.flops import matmul_peak
from prbench.models.local.linear import pack_linears
from prbench.models.local.prefix import PrefixScorer, last_logits
from prbench.models.local.prefix.forward import CausalForward
from prbench.models.local.prefix.tree import Tree

BATCH_TOKENS = 8192
OFFICIAL_BATCH = 8
CLOSE = 1e-4
TIMES = (1, 2, 4, 8)
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


class Agreement(NamedTuple):
    """How shared scores compare with those of full prompts."""

    difference: float
    same: int
    """Pairs with the same verdict, of those whose margin is above 1e-4."""
    clear: int

    def __add__(self, other: "Agreement") -> "Agreement":  # type: ignore[override]
        return Agreement(max(self.difference, other.difference), self.same + other.same, self.clear + other.clear)


class Draw:
    """Random token ids and lengths; every call gives new ones."""

    def __init__(self, vocabulary: int) -> None:
        self._random = np.random.default_rng(0)
        self._vocabulary = vocabulary
        self._opening = self.tokens(12)  # what a chat template begins with

    def tokens(self, count: int) -> Ids:
        """So many tokens."""
        return self._random.integers(0, self._vocabulary, count).tolist()

    def between(self, least: int, most: int) -> Ids:
        """A text of some length in between."""
        return self.tokens(int(self._random.integers(least, most + 1)))

    def candidates(self, count: int, answers: int, profile: int) -> list[Ids]:
        """Questions of 20 to 60 tokens, each with a profile of its own and answers of 100 to 160 tokens."""
        stems = [self._opening + self.tokens(profile) + self.between(20, 60) for _ in range(count)]
        return [stem + self.between(100, 160) for stem in stems for _ in range(answers)]

    def one_user(self, questions: int, profile: int) -> list[Ids]:
        """Many questions of one user, two answers each."""
        shown = self._opening + self.tokens(profile)
        stems = [shown + self.between(20, 60) for _ in range(questions)]
        return [stem + self.between(100, 160) for stem in stems for _ in range(2)]


def workloads(draw: Draw, quick: bool) -> list[Workload]:
    """The five situations of a real run; `quick` has fewer prompts of the same shape."""
    return [
        Workload("pair, 1,500-token profile", "≥ 85 %", draw.candidates(1 if quick else 3, 2, 1450)),
        Workload("best of 16", "≥ 85 %", draw.candidates(1, 16, 1450)),
        Workload("best of 64", "≥ 75 %", draw.candidates(1, 24 if quick else 64, 1450)),
        Workload("mirror: 30 questions per user", "≥ 70 %", draw.one_user(10 if quick else 30, 1300)),
        Workload("short prompts, no profile", "not slower", draw.candidates(8 if quick else 24, 2, 0)),
    ]


def time_shared(model: Any, prompts: Sequence[Ids]) -> tuple[Timing, PrefixScorer]:
    """All prompts, shared."""
    scorer = PrefixScorer(model, batch_tokens=BATCH_TOKENS)
    start = clock()
    scores = {reading.request: reading.values[0] for reading in scorer.read([last_logits(ids, [0]) for ids in prompts])}
    return Timing(clock() - start, scores), scorer


def time_full(model: Any, prompts: Sequence[Ids], batches: Sequence[list[int]]) -> Timing:
    """Full prompts in these batches, padded where lengths differ, extrapolated to all; weights as PyTorch has them."""
    forward = CausalForward(model)
    scores: dict[int, float] = {}
    start = clock()
    with torch.no_grad():  # in inference mode linear layers take the arranged weights of the engine
        for batch in batches:
            arrays = [np.asarray(prompts[index]) for index in batch]
            found = forward.padded(arrays, [(row, len(ids) - 1) for row, ids in enumerate(arrays)])[:, 0]
            scores |= zip(batch, found.tolist(), strict=True)
    share = sum(len(prompts[index]) for index in scores) / sum(map(len, prompts))
    return Timing((clock() - start) / share, scores)


def baselines(prompts: Sequence[Ids], sample_tokens: int) -> dict[str, list[list[int]]]:
    """The batches of each baseline that are timed."""
    ranks = list(range(len(prompts)))
    every = {
        "sorted": plan_batches([len(ids) for ids in prompts], BATCH_TOKENS),
        "official": [ranks[start : start + OFFICIAL_BATCH] for start in ranks[::OFFICIAL_BATCH]],
        "one by one": [[index] for index in ranks],
    }
    return {name: _middle(batches, prompts, sample_tokens) for name, batches in every.items()}


def _middle(batches: Sequence[list[int]], prompts: Sequence[Ids], least_tokens: int) -> list[list[int]]:
    """Whole batches around the middle of an order, until they have enough tokens."""
    tokens = [sum(len(prompts[index]) for index in batch) for batch in batches]
    low = high = middle = len(batches) // 2
    while sum(tokens[low:high]) < min(least_tokens, sum(tokens)):
        if high < len(batches) and (low == 0 or high - middle <= middle - low):
            high += 1
        else:
            low -= 1
    return list(batches[low:high])


def agreement(shared: dict[int, float], full: dict[int, float]) -> Agreement:
    """Largest difference, and the verdicts of all pairs of prompts that were also computed in full."""
    margins = [(full[a] - full[b], shared[a] - shared[b]) for a, b in itertools.combinations(sorted(full), 2)]
    clear = [(one, other) for one, other in margins if abs(one) > CLOSE]
    difference = max(abs(score - shared[index]) for index, score in full.items())
    return Agreement(difference, sum(one * other > 0 for one, other in clear), len(clear))


def measure(model: Any, workload: Workload, repeats: int, sample_tokens: int) -> Agreement:
    """Time all variants in turn and print them in one row."""
    batches = baselines(workload.prompts, sample_tokens)
    seconds: dict[str, list[float]] = {name: [] for name in [*batches, "shared"]}
    full: dict[int, float] = {}
    for _ in range(repeats):
        for name, some in batches.items():
            timing = time_full(model, workload.prompts, some)
            seconds[name].append(timing.seconds)
            full |= timing.scores
        shared, scorer = time_shared(model, workload.prompts)
        seconds["shared"].append(shared.seconds)
    took = {name: statistics.median(values) for name, values in seconds.items()}
    ratio = {
        name: statistics.median(one / other for one, other in zip(seconds[name], seconds["shared"], strict=True))
        for name in batches
    }
    limit = scorer.effort.naive_tokens / Tree(workload.prompts).root.total
    found = agreement(shared.scores, full)
    print(
        f"{workload.name:31}"
        + "".join(f"{took[name]:>11.1f}" for name in took)
        + "".join(f"{ratio[name]:>10.2f}×" for name in ratio)
        + f"{limit:>8.2f}×{ratio['sorted'] / limit:>8.0%} {workload.target:>11}{ratio['one by one'] / limit:>11.0%}"
        + f"{scorer.effort.computed_tokens / took['shared']:>8.0f}"
        + f"{scorer.effort.flops / took['shared'] / matmul_peak(model, clock):>7.0%}"
        + f"{found.difference:>9.0e}{found.same:>7}/{found.clear}",
        flush=True,
    )
    return found


def print_header() -> None:
    """What the columns are; `reached` is against sorted batches, the column after `wanted` against one by one."""
    names = ["sorted", "official", "one by one"]
    print(f"\n{'':31}{'seconds':>44}{'shared is faster by':>33}{'limit, and how much of it':>41}")
    print(
        f"{'workload':31}"
        + "".join(f"{name:>11}" for name in [*names, "shared", *names])
        + f"{'limit':>9}{'reached':>8} {'wanted':>11}{'one by one':>11}"
        + f"{'tok/s':>8}{'peak':>7}{'differs':>9}{'verdicts':>10}"
    )


def scaling(model: Any, draw: Draw, repeats: int, quick: bool) -> None:
    """Seconds against distinct tokens as pairs, then profiles, double three times."""
    base = 1 if quick else 2
    series = {
        "pairs, each with a 1,450-token profile": [draw.candidates(base * times, 2, 1450) for times in TIMES],
        f"tokens of the profile, {4 * base} pairs": [draw.candidates(4 * base, 2, 375 * times) for times in TIMES],
    }
    for name, cases in series.items():
        tokens = [Tree(prompts).root.total for prompts in cases]
        seconds = [statistics.median(time_shared(model, case)[0].seconds for _ in range(repeats)) for case in cases]
        slope, start = np.polyfit(tokens, seconds, 1)
        exponent = np.polyfit(np.log(tokens), np.log(seconds), 1)[0]
        print(f"\n1, 2, 4, 8 times the {name}")
        for count, took in zip(tokens, seconds, strict=True):
            print(f"{count:>9,} distinct tokens{took:>9.2f} s{1000 * took / count:>8.2f} ms per token")
        print(f"  slope {1000 * slope:.2f} ms per token from {start:+.2f} s; exponent {exponent:.2f}")
    print("An exponent of 1 is linear in distinct tokens; attention adds a part quadratic in the length of a prompt.")


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
    model = model.eval().to(getattr(torch, dtype))
    pack_linears(model)
    return model


def read_options() -> argparse.Namespace:
    """What was typed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer prompts, one repeat")
    parser.add_argument("--threads", type=int, help="default: as many as PyTorch takes")
    parser.add_argument("--model", help="folder of a causal sequence classifier")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", type=int, help="number of one workload, from 1, or 6 for the scaling")
    parser.add_argument("--sample-tokens", type=int, default=6_600, help="least tokens of full prompts to time")
    parser.add_argument("--processor-time", action="store_true", help="one thread, by its processor time")
    options = parser.parse_args()
    if options.quick:
        options.repeats, options.sample_tokens = 1, min(options.sample_tokens, 3_300)
    return options


def main() -> None:
    """Print one row per workload, what scores and verdicts agree in, and the scaling."""
    global clock
    options = read_options()
    if options.processor_time:
        clock, options.threads = time.process_time, 1
    if options.threads:
        torch.set_num_threads(options.threads)
    model = build(options.model, options.dtype)
    draw = Draw(model.config.vocab_size)
    cases = workloads(draw, options.quick)
    time_shared(model, draw.candidates(1, 2, 50))  # the first pass of a process is slower
    by = "processor time" if options.processor_time else "wall clock"
    peak = matmul_peak(model, clock) / 1e9
    print(f"{options.dtype}, {torch.get_num_threads()} threads, {by}; matmul peak {peak:.0f} GFLOP/s")
    chosen = [case for number, case in enumerate(cases, start=1) if options.only in {None, number}]
    if chosen:
        print_header()
        rows = [measure(model, case, options.repeats, options.sample_tokens) for case in chosen]
        total = sum(rows, Agreement(0.0, 0, 0))
        print(f"\nlargest score difference {total.difference:.1e}")
        print(f"same verdict on {total.same:,} of {total.clear:,} pairs of prompts with a margin above {CLOSE:g}")
    if options.only in {None, len(cases) + 1}:
        scaling(model, draw, options.repeats, options.quick)


if __name__ == "__main__":
    main()
