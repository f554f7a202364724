"""How long a run with a local language model takes until it asks: what fits its window, and what is asked only once.

    python benchmarks/planning.py [--model lm:smollm2] [--pairs 2668] [--window 2048]

Opens a session on the mirror suite in five contexts and plans all calls, as `prbench run` does before the first one.
Printed is processor time: of importing this package and the model's libraries, of opening, of planning. Exits with 1
where opening and planning together take longer than the bar, libraries left out. Run it on quiet cores.
"""

import argparse
import sys
import time

CONTEXTS = ("none", "profile", "other", "retrieved@3", "oracle")
BAR_S = 5.0
"""Processor seconds until the first call, besides importing libraries."""


def main() -> int:
    """Measure, print, compare with the bar."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="lm:smollm2", help="address of a local language model")
    parser.add_argument("--pairs", type=int, default=2668)
    parser.add_argument("--window", type=int, default=2048)
    options = parser.parse_args()
    began = time.process_time()
    import transformers.models.llama.configuration_llama  # noqa: F401  # as opening a model does

    from prbench.config import RunConfig
    from prbench.run import Session

    imported = time.process_time()
    config = RunConfig.of(
        suite="mirror", model=options.model, limit=options.pairs, contexts=CONTEXTS, options={"window": options.window}
    )
    session = Session(config)
    opened = time.process_time()
    work = session.work()
    planned = time.process_time()
    print(f"{len(session.suite):,} pairs, {len(CONTEXTS)} contexts, window {options.window}: {len(work.calls):,} calls")
    print(f"libraries {imported - began:.1f} s, opening {opened - imported:.1f} s, planning {planned - opened:.1f} s")
    if (taken := planned - imported) > BAR_S:
        print(f"missed: {taken:.1f} s until the first call, {BAR_S:.0f} allowed")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
