"""How long a pair takes: `python benchmarks/latency.py [MODEL] [PAIRS] [DTYPE]`, to be run on a quiet machine.

One pair at a time, a warm model, texts that nobody has seen (the words of each sentence in another order): once for a
user whose posts are new too, and once more for the same user with another question. Beside the model stands the plain
encoder `embed:minilm`, so that a slow machine is told from a slow model. Users have between 12 and 14 posts.
"""

import sys

from prbench import load_model, load_pairs
from prbench.config import ModelOptions
from prbench.contexts import ContextBuilder
from prbench.scorecard.latency import measure_latency
from prbench.types import Context

LIMITS = {"known user": 60, "new user": 600}
"""Milliseconds at p50 that the reference model is to keep on two quiet cores."""


def main() -> int:
    """Print a line for each model."""
    address = sys.argv[1] if len(sys.argv) > 1 else "personal:reference"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    options = ModelOptions.typed(dtype=sys.argv[3]) if len(sys.argv) > 3 else ModelOptions()
    suite = load_pairs("mirror")
    held = [pair for pair in suite if pair.tags["split"] == "validation" and 12 <= len(pair.profile) <= 14]
    chosen = list({pair.user + pair.question: pair for pair in held}.values())
    pairs = chosen[:: max(len(chosen) // count, 1)][:count]
    for name in (address, "embed:minilm"):
        model = load_model(name, options)
        found = measure_latency(model, pairs, ContextBuilder(suite, model), Context.parse("profile"))
        print(
            f"{name}: known user {found.known_user_p50.value:.0f} ms (p95 {found.known_user_p95.value:.0f}), "
            f"new user {found.p50.value:.0f} ms (p95 {found.p95.value:.0f}), processor time "
            f"{found.known_user_cpu_p50.value:.0f} and {found.cpu_p50.value:.0f} ms, {found.pairs} pairs, "
            f"load {found.load}"
        )
    print("wanted of the reference: " + ", ".join(f"{who} {most} ms" for who, most in LIMITS.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
