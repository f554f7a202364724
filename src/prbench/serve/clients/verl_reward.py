"""A custom reward for verl: name this file, or a copy of it, in `reward.custom_reward_function.path`.

Each row's `extra_info` says for whom: `question`, and `user` or `posts` (texts, or `{id, text}`). The server is named
by `url` among the `reward_kwargs`, or by PRBENCH_REWARD_URL; its token by PRBENCH_REWARD_TOKEN. A sample without a
score raises: verl has no way to leave one out, and whatever number stood in for it would be learned.
"""

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from prbench.serve.clients.client import RewardClient, RewardError
from prbench.serve.clients.openrlhf_reward import TOKEN_VARIABLE, environment_client


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    *,
    url: str | None = None,
    **ignored: Any,
) -> float:
    """The reward of one response: for verl's `naive` and other managers that score sample by sample."""
    (score,) = _score(url, [_item(solution_str, extra_info)])
    return score


def compute_score_batch(
    data_sources: Sequence[str],
    solution_strs: Sequence[str],
    ground_truths: Sequence[Any],
    extra_infos: Sequence[Mapping[str, Any] | None],
    *,
    url: str | None = None,
    **ignored: Any,
) -> list[float]:
    """The rewards of a batch: for verl's `batch` manager, with `name: compute_score_batch`."""
    return _score(url, [_item(text, info) for text, info in zip(solution_strs, extra_infos, strict=True)])


def _score(url: str | None, items: Sequence[Mapping[str, Any]]) -> list[float]:
    client = _client(os.getpid(), url) if url else environment_client(os.getpid())
    return [score for score in client.score(items) if score is not None]  # the client raises where there is none


@lru_cache(maxsize=4)
def _client(process: int, url: str) -> RewardClient:
    return RewardClient(url, token_env=TOKEN_VARIABLE if os.environ.get(TOKEN_VARIABLE) else None)


def _item(answer: str, info: Mapping[str, Any] | None) -> dict[str, Any]:
    info = info or {}
    if "question" not in info or not ("user" in info or "posts" in info):
        raise RewardError(
            f"extra_info has {', '.join(sorted(info)) or 'nothing'}; it needs question, and user or posts: for whom is "
            "the reward?"
        )
    item: dict[str, Any] = {"question": info["question"], "answer": answer, "user": info.get("user")}
    for name, kinds in (("posts", (str, Mapping)), ("plan", (str,))):
        if info.get(name) is not None:
            item[name] = _entries(name, info[name], kinds)
    return item


def _entries(name: str, given: Any, kinds: tuple[type, ...]) -> list[Any]:
    """Return what is shown to the reward model, entry by entry; parquet gives arrays in place of lists."""
    if isinstance(given, str | bytes | Mapping) or not hasattr(given, "__iter__"):
        raise RewardError(f"extra_info[{name!r}] is {given!r}; it should be a list")
    entries = list(given)
    for place, entry in enumerate(entries):
        if not isinstance(entry, kinds):
            wanted = "a text or {id, text}" if Mapping in kinds else "a text"
            raise RewardError(f"extra_info[{name!r}][{place}] is {entry!r}; it should be {wanted}")
    return [dict(entry) if isinstance(entry, Mapping) else entry for entry in entries]
