"""The suites as a task of Inspect AI: `inspect eval prbench/personal --model PROVIDER/MODEL -T context=profile`.

Each pair is asked in both orders, with the prompt of `prbench run --model chat:…` and the parser of its answers. A tie
counts ½, and a reply without a readable verdict is left unscored, so that it stays out of the mean. Standard errors are
clustered by user.
"""

from collections.abc import Iterator

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageSystem, ChatMessageUser
from inspect_ai.scorer import Score, Scorer, Target, accuracy, scorer, stderr
from inspect_ai.solver import TaskState, generate

from prbench.harnesses.views import ShownPair, shown_pairs
from prbench.prompts import Template, UnreadableReply, judged_conversation, parse_verdict
from prbench.types import PairView

_MESSAGES = {"user": ChatMessageUser, "assistant": ChatMessageAssistant, "system": ChatMessageSystem}


@task
def personal(
    suite: str = "mirror", split: str = "test", context: str = "profile", limit: int | None = None, seed: int = 0
) -> Task:
    """Ask a judge which of two answers a user prefers.

    Args:
        suite: Name or file of a suite, as for `prbench run`.
        split: Part of it; `all` for all of it.
        context: What is shown of the user: `none`, `profile`, `other`, `opposite`, `recent@5` …
        limit: At most so many pairs, whole couples; Inspect's own `--limit` would tear them.
        seed: Of the sample, and of the users behind `other`.
    """
    template = Template.load(None, "compare", "compare.jinja")
    pairs = shown_pairs(suite, split, context, limit, seed)
    samples = [sample for item in pairs for sample in _samples(item, template)]
    name = f"prbench {suite} {context}"
    return Task(dataset=MemoryDataset(samples, name=name), solver=generate(), scorer=preferred(), name="personal")


@scorer(metrics=[accuracy(), stderr(cluster="user")])
def preferred() -> Scorer:
    """Score 1 for the answer that the user prefers, ½ for a tie, nothing where there is no verdict."""

    async def score(state: TaskState, target: Target) -> Score:
        verdict = parse_verdict(state.output.completion)
        if isinstance(verdict, UnreadableReply):
            return Score.unscored(explanation=verdict.reason)
        value = 0.5 if verdict == "tie" else float(verdict == target.text)
        return Score(value=value, answer=verdict, explanation=state.output.completion)

    return score


def _samples(item: ShownPair, template: Template) -> Iterator[Sample]:
    for order, view, wanted in (
        ("chosen-first", item.view, "first"),
        ("chosen-second", item.view.swap(), "second"),
    ):
        pair = item.pair
        about = {"pair": pair.id, "order": order, "user": pair.user, "category": pair.category, **pair.tags}
        yield Sample(id=f"{pair.id}/{order}", input=_messages(view, template), target=wanted, metadata=about)


def _messages(view: PairView, template: Template) -> list[ChatMessage]:
    return [_MESSAGES[one.role](content=one.content) for one in judged_conversation(template, view)]
