"""Four small runs that are kept as golden files: a rater, a comparer, one with plans, one without a mirrored suite.

`python tests/support/golden_runs.py FOLDER` makes them anew; the tests compare what the present code computes with
them.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from prbench.config import RunConfig
from prbench.data import Suite
from prbench.models import Model, ModelCard
from prbench.plan import Matcher, Planner, hold, needs_of
from prbench.results import RunFolder
from prbench.run import Session, execute
from prbench.types import AnswerView, Channel, Outcome, Pair, PairView, Prompt
from small_suite import Spy, SpyComparer, mirrored
from word_encoder import WordEncoder

EVERYTHING = ("none", "profile", "other", "opposite", "oracle")


class Rater(Spy):
    """Follows posts and rubric, in log-odds; cannot say anything of chess where it is shown posts."""

    def __init__(self) -> None:
        super().__init__(window=60)
        self.card = ModelCard(address="golden-rater", revision="1", reads=frozenset(Channel), units="log-odds")

    def rate(self, views: Sequence[AnswerView]) -> Iterator[tuple[int, Outcome]]:
        for index, outcome in super().rate(views):
            view = views[index]
            if "chess" in view.question and view.posts:
                yield index, Outcome.invalid("no score")
            else:
                told = sum(taste in line and taste in view.answer for line in view.plan for taste in ("red", "blue"))
                yield index, outcome.model_copy(update={"score": (outcome.score or 0.0) / 3 + told, "latency_ms": 1.5})


class Silent(Spy):
    """Answers nothing: every aggregate of an empty context."""

    def __init__(self) -> None:
        super().__init__()
        self.card = ModelCard(address="golden-silent", reads=frozenset(Channel))

    def rate(self, views: Sequence[AnswerView]) -> Iterator[tuple[int, Outcome]]:
        for index, _ in enumerate(views):
            yield index, Outcome.invalid("silent")


class Comparer(SpyComparer):
    """A judge with log-odds that leans to the first place and is contrary about boots."""

    def __init__(self) -> None:
        super().__init__(lean=0.5)
        self.card = ModelCard(address="golden-comparer", revision="1", reads=frozenset(Channel))

    def compare(self, views: Sequence[PairView]) -> Iterator[tuple[int, Outcome]]:
        for index, outcome in super().compare(views):
            if "boots" in views[index].question:
                turned = {"first": "second", "second": "first"}.get(str(outcome.verdict), "tie")
                outcome = outcome.model_copy(update={"verdict": turned, "margin": -(outcome.margin or 0.0)})
            yield index, outcome.model_copy(update={"tokens_in": 7, "tokens_out": 2, "latency_ms": 3.25})


class Writer:
    """Plans by the taste that the posts name; cannot be read about soup."""

    card = ModelCard(address="golden-writer", revision="1", reads=frozenset(Channel))

    def generate(self, prompts: Sequence[Prompt], **_: object) -> Iterator[tuple[int, tuple[Outcome, ...]]]:
        for index, prompt in enumerate(prompts):
            text = prompt.messages[-1].content
            taste = "red" if "glad of the red" in text else "blue"
            topic = text.partition("Which ")[2].partition(" ")[0]
            plan = "I cannot tell." if topic == "soup" else f"- ASPECT {taste} {topic}\n- keep it short"
            yield index, (Outcome(status="ok", raw=plan, tokens_in=20, tokens_out=5),)


def plain() -> list[Pair]:
    """Pairs of forty users with a question each, without couples or axes: enough units to tell contexts apart."""
    return [
        pair.model_copy(
            update={
                "user": f"user {index}",
                "question": f"{pair.question} ({index})",
                "tags": {"split": "test", "kind": "short" if index % 3 else "long"},
            }
        )
        for index, pair in enumerate(mirrored(couples=4, questions=5))
    ]


def session_of(model: Model, pairs: Sequence[Pair], contexts: Sequence[str], by: Sequence[str] = ()) -> Session:
    """A run on pairs in memory, resolved."""
    suite = Suite.of(pairs, name="golden")
    config = RunConfig.of(
        suite="golden", model=model.card.address, contexts=contexts, by=tuple(by), resamples=100, seed=3
    )
    return Session(config, model=model, suite=suite)


def rater(folder: RunFolder) -> None:
    """A rater under every context of a mirrored suite, by two tags, with answers that are missing."""
    execute(session_of(Rater(), mirrored(6, 4), EVERYTHING, ["pole", "axis"]), folder)


def comparer(folder: RunFolder) -> None:
    """A comparer in both orders."""
    execute(session_of(Comparer(), mirrored(5, 4), EVERYTHING), folder)


def plans(folder: RunFolder) -> None:
    """A comparer that is shown plans, and how good these are."""
    session = session_of(Comparer(), mirrored(4, 6), ["none", "plan", "profile+plan"], ["pole"])
    session.__dict__["planner"] = planner = Planner(Writer())
    execute(session, folder)
    needs = needs_of(session.suite, session.everything)
    written = {need.id: session.plans[planner.key(need.pair)] for need in needs}
    held = hold(needs, written, Matcher(WordEncoder(), 0.9), needs_of(session.everything), 3)
    folder.write_json("plan_quality.json", held.model_dump(mode="json"))
    execute(session, folder)


def unmirrored(folder: RunFolder) -> None:
    """A rater on pairs without couples, whose own context is `retrieved@2`."""
    execute(session_of(Rater(), plain(), ["none", "retrieved@2", "other"], ["kind"]), folder)


def silent(folder: RunFolder) -> None:
    """A model without a single verdict."""
    execute(session_of(Silent(), mirrored(2, 2), ["none", "profile", "oracle"], ["pole"]), folder)


def baseline(folder: RunFolder) -> None:
    """A model that reads no posts: contexts that it does not support."""
    from prbench.models import load_model

    execute(session_of(load_model("longer"), plain(), ["none", "profile"]), folder)


RUNS: dict[str, Callable[[RunFolder], None]] = {
    "rater": rater,
    "comparer": comparer,
    "plans": plans,
    "unmirrored": unmirrored,
    "silent": silent,
    "baseline": baseline,
}


if __name__ == "__main__":
    for name, make in RUNS.items():
        make(RunFolder(Path(sys.argv[1]) / name))
