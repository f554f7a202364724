"""The suites as tasks of lm-evaluation-harness: whether the answer that the user prefers is the likelier one.

The prompt is that of `prbench run --model lm:NAME#loglik`: posts, then the question. The two answers stand in the order
of their texts, which says nothing of the label, so that a model that finds both equally likely is right in one half of
each mirrored couple. `acc` compares whole log-likelihoods, `acc_norm` divides them by the length of the answer.
"""

from typing import Any

from prbench.harnesses import ShownPair, shown_pairs
from prbench.prompts import Template


def load(
    context: str = "profile",
    suite: str = "mirror",
    split: str = "test",
    limit: int | None = None,
    seed: int = 0,
    **_metadata: Any,
) -> dict[str, Any]:
    """Return the rows of a task, as lm_eval asks for them; its other metadata is none of ours."""
    from datasets import Dataset

    template = Template.builtin("turn.jinja", "turn")
    return {
        "test": Dataset.from_list([_row(item, template) for item in shown_pairs(suite, split, context, limit, seed)])
    }


def _row(item: ShownPair, template: Template) -> dict[str, Any]:
    pair, (view, _) = item.pair, item.view.answers()
    answers = sorted((pair.chosen, pair.rejected))
    return {
        "id": pair.id,
        "user": pair.user,
        "category": pair.category,
        "prompt": template.render(view),
        "answers": answers,
        "target": answers.index(pair.chosen),
    }
