"""How often a model follows a stated wish: `python suite/wishes_check.py [MODEL]`, on pairs of the validation split.

Each wish of `wishes/asked.toml` and its negation is shown as a plan beside every validation pair that only its axis
decides. A pair counts as moved the stated way if the margin of the answer at the wished pole is higher under the wish
than under its negation, and a wish as followed if that is so for more than half of its pairs.
"""

import sys
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any

from prbench import PairView, load_model, load_pairs
from prbench.models import Comparer

_ASKED = Path(__file__).parent / "wishes" / "asked.toml"


def moved(model: Comparer, split: str = "validation") -> list[tuple[dict[str, Any], float, float]]:
    """Each wish with the share of pairs that it moves the stated way, and the share on which its words alone decide."""
    pairs = defaultdict(list)
    for pair in load_pairs("mirror"):
        if pair.tags["split"] == split and len(pair.stances) == 1:
            ((axis, pole),) = pair.stances.items()
            pairs[axis].append((pole, pair))
    found = []
    for wish in tomllib.loads(_ASKED.read_text())["wish"]:
        shown = {}
        for said in ("says", "denies"):
            views = [
                PairView(
                    pair.question,
                    *((pair.chosen, pair.rejected) if pole == wish["pole"] else (pair.rejected, pair.chosen)),
                    plan=(wish[said],),
                )
                for pole, pair in pairs[wish["axis"]]
            ]
            shown[said] = [outcome.margin or 0.0 for _, outcome in sorted(model.compare(views))]
        both = list(zip(shown["says"], shown["denies"], strict=True))
        right = [(yes > 0) + (no < 0) for yes, no in both]
        found.append((wish, sum(yes > no for yes, no in both) / len(both), sum(right) / 2 / len(both)))
    return found


def main() -> int:
    """Print a line for each wish, and the shares of followed ones."""
    found = moved(load_model(sys.argv[1] if len(sys.argv) > 1 else "personal:reference"))  # type: ignore[arg-type]
    for wish, share, right in found:
        kind = "known" if wish["known"] else "new"
        print(f"{kind:6} {100 * share:4.0f} % moved, {100 * right:4.0f} % right  {wish['says']}")
    for name, known in (("known", True), ("new", False)):
        shares = [share for wish, share, _ in found if wish["known"] is known]
        print(f"{name}: {sum(share > 0.5 for share in shares)} of {len(shares)} wishes followed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
