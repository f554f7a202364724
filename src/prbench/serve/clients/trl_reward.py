"""A reward function for TRL's GRPO, RLOO and kin, called with prompts, completions and the data set's columns."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from prbench.serve.clients.client import RewardClient, RewardError

Conversation = str | Sequence[Mapping[str, Any]]
"""A text, or turns with `role` and `content`."""


def trl_reward(
    url: str | RewardClient,
    *,
    user: str = "user",
    question: str = "question",
    posts: str = "posts",
    plan: str = "plan",
    on_error: Literal["raise", "drop"] = "raise",
    token_env: str | None = None,
    name: str = "prbench",
) -> Callable[..., list[float | None]]:
    """A function for `reward_funcs=`: every completion is scored for the user in its row.

    Args:
        url: Of the server, or a client of it.
        user: The column with the user's name.
        question: The column with the question; where there is none, the prompt's last user turn is the question.
        posts: The column with the user's posts, for users that the server's suite does not have.
        plan: The column with what the user expects.
        on_error: `drop` gives None for a completion without a score, which TRL leaves out of the group's mean; how many
            is logged as `prbench/dropped`.
        token_env: The environment variable with the bearer token.
        name: Under which TRL logs the reward.

    Example:
        >>> reward = trl_reward("http://127.0.0.1:8000", on_error="drop")
        >>> reward.__name__
        'prbench'
    """
    client = url if isinstance(url, RewardClient) else RewardClient(url, on_error=on_error, token_env=token_env)
    names = {"user": user, "question": question, "posts": posts, "plan": plan}

    def reward(
        prompts: Sequence[Conversation],
        completions: Sequence[Conversation],
        completion_ids: Any = None,
        **columns: Any,
    ) -> list[float | None]:
        known = {field: columns[column] for field, column in names.items() if column in columns}
        if not known.keys() & {"user", "posts"}:
            raise RewardError(f"the data set has no column {user!r} and no column {posts!r}: for whom is the reward?")
        known.setdefault("question", [_question(prompt) for prompt in prompts])
        items = [
            {"answer": _said(completion), **{field: values[place] for field, values in known.items()}}
            for place, completion in enumerate(completions)
        ]
        scores = client.score(items)
        if callable(log := columns.get("log_metric")):
            log(f"{name}/dropped", float(sum(score is None for score in scores)))
        return scores

    reward.__name__ = reward.__qualname__ = name
    return reward


def _question(prompt: Conversation) -> str:
    """What the user asked last.

    Example:
        >>> _question([{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Tea?"}])
        'Tea?'
    """
    if isinstance(prompt, str):
        return prompt
    asked = [_content(turn) for turn in prompt if turn.get("role") == "user"]
    if not asked:
        raise RewardError(f"a prompt has no turn of the user: {list(prompt)!r}")
    return asked[-1]


def _said(completion: Conversation) -> str:
    """What the policy said."""
    if isinstance(completion, str):
        return completion
    return "".join(_content(turn) for turn in completion if turn.get("role") == "assistant")


def _content(turn: Mapping[str, Any]) -> str:
    content = turn.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content if isinstance(part, Mapping))
