"""Runs to make pages of: a small mirrored suite on disk with a nasty pair in it, a rater with a small window, a judge
that speaks and leans to the first place, and one that sees nothing. Shared by the tests of the report and the browser.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from prbench import evaluate
from prbench.data import write_pairs
from prbench.models import ModelCard
from prbench.types import Channel, Outcome, Pair, PairView, Post
from small_suite import Spy, SpyComparer, mirrored

CONTEXTS = ["none", "profile", "other", "opposite", "oracle"]
NASTY = '</script><script>window.hacked = 1</script><img src=x onerror="window.hacked = 1"> & "quotes" ünïcode 🫖'


def suite(couples: int = 6, questions: int = 6) -> list[Pair]:
    """Mirrored pairs; the first question, its answers and a post try to break out of the page."""
    return [_nasty(pair) if "tea" in pair.id else pair for pair in mirrored(couples, questions)]


def _nasty(pair: Pair) -> Pair:
    change = {name: f"{getattr(pair, name)} {NASTY}" for name in ("question", "chosen", "rejected", "narrative")}
    first, *rest = pair.profile
    posts = (Post(id=first.id, text=f"{first.text} {NASTY}"), *rest)
    return pair.model_copy(update={**change, "profile": posts})


class Narrow(Spy):
    """A rater whose window holds two of three posts."""

    def __init__(self) -> None:
        super().__init__(window=50)
        self.card = ModelCard(address="py:tests:narrow", revision="1", reads=frozenset(Channel))


class Speaker(SpyComparer):
    """A judge with log-odds that says why, is contrary about boots and cannot be read about soup."""

    def __init__(self) -> None:
        super().__init__(lean=0.5)
        self.card = ModelCard(address="py:tests:<b>speaker</b>", revision="1", reads=frozenset(Channel))

    def compare(self, views: Sequence[PairView]) -> Iterator[tuple[int, Outcome]]:
        for index, outcome in super().compare(views):
            if "soup" in views[index].question and not views[index].posts:
                yield index, Outcome.invalid("no verdict in the reply", raw="Hard to say.")
            elif "boots" in views[index].question:
                turned = {"first": "second", "second": "first"}.get(str(outcome.verdict), "tie")
                yield (
                    index,
                    outcome.model_copy(update={"verdict": turned, "margin": -(outcome.margin or 0.0), "raw": "Hm."}),
                )
            else:
                yield index, outcome.model_copy(update={"raw": f"VERDICT: {outcome.verdict}. {NASTY}"})


def make_runs(folder: Path) -> list[Path]:
    """Three runs on one suite file."""
    pairs = write_pairs(suite(), folder / "suite.jsonl")
    models = {"narrow": Narrow(), "speaker": Speaker(), "shorter": "shorter"}
    for name, model in models.items():
        contexts = CONTEXTS if name != "shorter" else ["none", "profile"]
        evaluate(model, pairs, contexts=contexts, resamples=100, out=folder / name, cache=False)
    return [folder / name for name in models]
