"""Conversion of a policy's rollout to an item: question and user come with the sample, the answer is its text.

OpenRLHF sends whole texts and one label for each sample. The label says for whom, as JSON; the prompt, which is already
in the policy's own format, is taken off the text, and the policy's end tokens are taken off the answer: a reward model
has a format of its own.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from prbench.serve.items import BadRequestError, ItemBounds, ScoreItem, check_posts, parse

_MARK = re.compile(r"(?:<\|[^<>|]{1,40}\|>|<｜[^<>｜]{1,40}｜>|</s>|<eos>|<end_of_turn>|<pad>)\Z")
"""An end, padding or turn mark of the usual chat formats, at the end of a text."""
_LONGEST_MARK = 44
"""Characters; no mark begins further from the end."""

_LOOKED_AFTER = 64
"""Items of a batch after which its posts are counted, and again after so many."""


def label(question: str, user: str | None = None, posts: Sequence[str] | None = None, plan: Sequence[str] = ()) -> str:
    """Return the text for a sample's label column: for whom its answer is to be scored, and to which question.

    Example:
        >>> label("Tea?", user="ann")
        '{"question": "Tea?", "user": "ann"}'
    """
    fields: dict[str, Any] = {"question": question, "user": user, "posts": posts, "plan": list(plan) or None}
    return json.dumps({name: value for name, value in fields.items() if value is not None}, ensure_ascii=False)


def items_of(
    queries: Sequence[str], prompts: Sequence[str], labels: Sequence[str], bounds: ItemBounds | None = None
) -> list[ScoreItem]:
    """Items of a batch as OpenRLHF hands it over.

    Example:
        >>> items_of(["<|user|>Tea?<|assistant|>Green.<|end|>"], ["<|user|>Tea?<|assistant|>"], [label("Tea?", "ann")])
        [ScoreItem(question='Tea?', answer='Green.', user='ann', posts=None, plan=())]
    """
    if not len(queries) == len(prompts) == len(labels):
        raise BadRequestError(f"there are {len(queries)} queries, {len(prompts)} prompts and {len(labels)} labels")
    samples = enumerate(zip(queries, prompts, labels, strict=True))
    items: list[ScoreItem] = []
    for place, sample in samples:
        items.append(_item(place, *sample, bounds))
        if bounds is not None and (len(items) % _LOOKED_AFTER == 0 or len(items) == len(queries)):
            check_posts((item.posts for item in items), bounds)
    return items


def _item(place: int, query: str, prompt: str, label: str, bounds: ItemBounds | None) -> ScoreItem:
    if not query.startswith(prompt):
        raise BadRequestError(
            f"query[{place}] does not begin with prompts[{place}], so where the answer begins is not known: "
            f"{query[:40]!r} and {prompt[:40]!r}"
        )
    try:
        known = json.loads(label)
    except ValueError:
        known = None
    if not isinstance(known, dict):
        raise BadRequestError(
            f'labels[{place}] is {label[:80]!r}: it should be JSON such as {{"question": …, "user": …}}'
        )
    try:
        return parse(ScoreItem, json.dumps({**known, "answer": answer_text(query[len(prompt) :])}).encode(), bounds)
    except (BadRequestError, ValidationError) as error:
        raise BadRequestError(f"labels[{place}]: {error}") from error


def answer_text(written: str) -> str:
    r"""Return the text that a policy wrote, without the marks at its end.

    Example:
        >>> answer_text(" Green. <|im_end|>\n<|endoftext|>")
        'Green.'
    """
    end = len(written)
    while end:
        if written[end - 1].isspace():
            end -= 1
        # Only the tail is looked at: a search through the whole text for every mark would take for ever on a long one.
        elif mark := _MARK.search(written, max(0, end - _LONGEST_MARK), end):
            end = mark.start()
        else:
            break
    return written[:end].lstrip()
