"""What the engine does besides arithmetic, with bars: linear layers, the limit of sharing, growth with the profile.

Run: python benchmarks/engine.py [--size 135M|1.5B] [--part share|limit|growth] [--threads N] [--keep FILE]

Three parts, each of which prints a table and misses its bar or not; one missed bar exits with 1.

*share*: the engine scores a workload while the shape of every input of a linear layer is noted; then those layers alone
are timed on inputs of the same shapes, in the same order. Their time ÷ the engine's is the share; what is left is
attention, norms, rotary positions, activations, cache writes and Python. Bar: 65 % at 135M, 75 % at 1.5B parameters.
*limit*: time of whole prompts one by one, unpadded, the strongest baseline on a processor, ÷ the engine's, as a share
of naive ÷ distinct tokens. Bar: 90 %. Beside it, what the same ratio would be if an operation always took the same
time: answers behind a long profile attend to all of it, so even perfect kernels do not reach 100 %.
*growth*: profiles of 1,000 to 8,000 tokens, a pair each. The exponent of time over tokens, over useful operations, and
that of the operations themselves over tokens, which is above 1 because each token attends to all before it. Bar: 1.05
over operations; exact attention at 135M has more than that over tokens by arithmetic alone. Then 2 to 64 candidates for
one question behind a profile of 1,450 tokens: what one more of them costs.
"""

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scoring
import torch
from drawing import keep
from scoring import Draw, Ids, Workload, build, time_full, time_shared, workloads
from transformers import LlamaConfig, LlamaForSequenceClassification

from prbench.models.local.flops import Arithmetic, causal_keys, matmul_peak
from prbench.models.local.prefix.tree import Tree

SHARE_BARS = {"135M": 0.65, "1.5B": 0.75}
LIMIT_BAR = 0.90
EXPONENT_BAR = 1.05
PROFILES = (1000, 2000, 4000, 8000)
CANDIDATES = (2, 4, 8, 16, 32, 64)


class LinearCall(NamedTuple):
    """A linear layer and the shape of what went into it."""

    layer: torch.nn.Linear
    shape: tuple[int, ...]


def build_large() -> Any:
    """Qwen2.5-1.5B's shape with random weights."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=8192, hidden_size=1536, intermediate_size=8960, num_hidden_layers=28, num_attention_heads=12,
        num_key_value_heads=2, max_position_embeddings=16384, num_labels=1, pad_token_id=2, eos_token_id=2,
    )  # fmt: skip
    return LlamaForSequenceClassification(config).eval()


def linear_calls(model: Any, prompts: Sequence[Ids]) -> list[LinearCall]:
    """Score the prompts and note every call of a linear layer."""
    calls: list[LinearCall] = []

    def note(layer: torch.nn.Linear, inputs: tuple[torch.Tensor, ...]) -> None:
        calls.append(LinearCall(layer, tuple(inputs[0].shape)))

    hooks = [layer.register_forward_pre_hook(note) for layer in model.modules() if isinstance(layer, torch.nn.Linear)]
    time_shared(model, prompts)
    for hook in hooks:
        hook.remove()
    return calls


def time_linear(calls: Sequence[LinearCall]) -> float:
    """Seconds of the layers alone."""
    inputs = {shape: torch.randn(shape) for shape in {call.shape for call in calls}}
    start = scoring.clock()
    with torch.inference_mode():
        for call in calls:
            call.layer(inputs[call.shape])
    return scoring.clock() - start


def share(model: Any, cases: Sequence[Workload], repeats: int, bar: float) -> bool:
    """Print the share of the linear layers in each workload; whether all reach the bar."""
    print(f"\n{'linear layers':31}{'engine':>9}{'linear':>9}{'share':>8}{'bar':>7}{'of peak':>9}")
    reached = True
    for case in cases:
        calls = linear_calls(model, case.prompts)
        ratios, engine = [], []
        for _ in range(repeats):
            timing, scorer = time_shared(model, case.prompts)
            engine.append(timing.seconds)
            ratios.append(time_linear(calls) / timing.seconds)
        found = statistics.median(ratios)
        took = statistics.median(engine)
        peak = scorer.effort.flops / took / matmul_peak(model, scoring.clock)
        print(f"{case.name:31}{took:>7.2f} s{took * found:>7.2f} s{found:>8.0%}{bar:>7.0%}{peak:>9.0%}", flush=True)
        reached &= found >= bar
    return reached


def limit(model: Any, cases: Sequence[Workload], repeats: int, sample_tokens: int) -> bool:
    """Print how much of the limit is reached against prompts one by one; whether all reach the bar."""
    print(f"\n{'against one by one':31}{'faster':>9}{'limit':>9}{'reached':>9}{'bar':>7}{'by operations':>15}")
    arithmetic = Arithmetic.of(model)
    reached = True
    for case in cases:
        some = scoring._middle([[index] for index in range(len(case.prompts))], case.prompts, sample_tokens)
        ratios = []
        for _ in range(repeats):
            whole = time_full(model, case.prompts, some).seconds
            timing, scorer = time_shared(model, case.prompts)
            ratios.append(whole / timing.seconds)
        naive = sum(arithmetic.flops(len(ids), causal_keys(0, len(ids)), rows=1) for ids in case.prompts)
        most = scorer.effort.naive_tokens / Tree(case.prompts).root.total
        found = statistics.median(ratios)
        ideal = naive / scorer.effort.flops / most
        print(
            f"{case.name:31}{found:>8.2f}×{most:>8.2f}×{found / most:>9.0%}{LIMIT_BAR:>7.0%}{ideal:>15.0%}", flush=True
        )
        reached &= found / most >= LIMIT_BAR
    return reached


def growth(model: Any, draw: Draw, repeats: int, file: Path | None) -> bool:
    """Print seconds for longer and longer profiles; whether the exponent over operations is within the bar."""
    print(f"\n{'profile':>9}{'tokens':>9}{'seconds':>10}{'ms per token':>14}{'ns per million operations':>27}")
    rows = []
    for profile in PROFILES:
        prompts = draw.candidates(1, 2, profile)
        found = [time_shared(model, prompts) for _ in range(repeats)]
        took = statistics.median(timing.seconds for timing, _ in found)
        effort = found[0][1].effort
        rows.append((effort.computed_tokens, effort.flops, took))
        print(
            f"{profile:>9,}{effort.computed_tokens:>9,}{took:>8.2f} s{1000 * took / effort.computed_tokens:>14.2f}"
            f"{1e15 * took / effort.flops:>27.0f}",
            flush=True,
        )
    tokens, operations, seconds = np.log(np.array(rows, dtype=float)).T
    of_tokens, own, of_operations = (
        np.polyfit(x, y, 1)[0] for x, y in ((tokens, seconds), (tokens, operations), (operations, seconds))
    )
    print(f"exponent over tokens {of_tokens:.2f} (operations alone: {own:.2f}); over operations {of_operations:.2f}")
    keep(file, **{"engine: seconds by profile": [(tokens, took) for tokens, _, took in rows]})
    return bool(of_operations <= EXPONENT_BAR)


def candidates(model: Any, draw: Draw, repeats: int, file: Path | None) -> None:
    """Print seconds for more and more candidates of one question, and the exponent."""
    print(f"\n{'candidates':>10}{'seconds':>10}{'ms each':>10}")
    rows = []
    for count in CANDIDATES:
        prompts = draw.candidates(1, count, 1450)
        took = statistics.median(time_shared(model, prompts)[0].seconds for _ in range(repeats))
        rows.append((count, took))
        print(f"{count:>10}{took:>8.2f} s{1000 * took / count:>10.0f}", flush=True)
    counts, seconds = np.log(np.array(rows, dtype=float)).T
    print(f"exponent over candidates {np.polyfit(counts, seconds, 1)[0]:.2f}")
    keep(file, **{"engine: seconds by candidates": rows})


def read_options() -> argparse.Namespace:
    """Read what was typed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SHARE_BARS, default="135M")
    parser.add_argument("--part", action="append", choices=("share", "limit", "growth"), help="default: all")
    parser.add_argument("--quick", action="store_true", help="fewer prompts")
    parser.add_argument("--workload", type=int, action="append", help="number of one, from 1")
    parser.add_argument("--threads", type=int, help="default: as many as PyTorch takes")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sample-tokens", type=int, default=6_600, help="least tokens of whole prompts to time")
    parser.add_argument("--processor-time", action="store_true", help="one thread, by its processor time")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="keep the growth there for drawing.py")
    return parser.parse_args()


def main() -> None:
    """Print the parts that were asked for, and exit with 1 where a bar is missed."""
    given = read_options()
    if given.processor_time:
        scoring.clock, given.threads = scoring.time.process_time, 1
    if given.threads:
        torch.set_num_threads(given.threads)
    model = build(None, "float32") if given.size == "135M" else build_large()
    draw = Draw(model.config.vocab_size)
    cases = workloads(draw, given.quick or given.size == "1.5B")
    cases = [case for number, case in enumerate(cases, start=1) if number in (given.workload or range(1, 6))]
    time_shared(model, draw.candidates(1, 2, 50))  # the first pass of a process is slower
    parts = given.part or ["share", "limit", "growth"]
    peak = matmul_peak(model, scoring.clock) / 1e9
    print(f"{given.size}, float32, {torch.get_num_threads()} threads; matmul peak {peak:.0f} GFLOP/s")
    reached = {}
    if "share" in parts:
        reached["share"] = share(model, cases, given.repeats, SHARE_BARS[given.size])
    if "limit" in parts:
        reached["limit"] = limit(model, cases, given.repeats, given.sample_tokens)
    if "growth" in parts:
        reached["growth"] = growth(model, draw, given.repeats, given.keep)
        candidates(model, draw, given.repeats, given.keep)
    missed = [part for part, good in reached.items() if not good]
    print(f"\nmissed: {', '.join(missed)}" if missed else "\nevery bar reached")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
