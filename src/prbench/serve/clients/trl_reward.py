"""A reward function for TRL's GRPO and RLOO, called with prompts, completions and the data set's columns."""

from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from typing import Any, Literal

from prbench.errors import ConfigError
from prbench.serve.clients.client import RewardClient, RewardError

Conversation = str | Sequence[Mapping[str, Any]]
"""A text, or turns with `role` and `content`."""
_LEAVES_OUT = (1, 6)
"""The first TRL whose GRPO and RLOO leave a None out of its group (huggingface/trl #5902); before, it was paid 0."""


def trl_reward(
    url: str | RewardClient,
    *,
    user: str = "user",
    question: str = "question",
    posts: str = "posts",
    plan: str = "plan",
    on_error: Literal["raise", "drop"] | None = None,
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
        on_error: `drop` gives None for a completion without a score, which GRPO and RLOO leave out of their group; how
            many is logged as `prbench/dropped`. Only for these two, and from TRL 1.6 on: other trainers (SDPO, online
            DPO) pay 0 for it. Default: `raise`, or what a client was opened with.
        token_env: The environment variable with the bearer token; a client has its own.
        name: Under which TRL logs the reward.

    Example:
        >>> reward = trl_reward("http://127.0.0.1:8000", on_error="drop")
        >>> reward.__name__
        'prbench'

    Raises:
        ConfigError: If samples are to be dropped and the TRL beside us would pay 0 for them; or if what is asked for is
            not what the given client does.
    """
    client = _client(url, on_error, token_env)
    if client.on_error == "drop":
        _require_leaves_out()
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


def _client(url: str | RewardClient, on_error: Literal["raise", "drop"] | None, token_env: str | None) -> RewardClient:
    if not isinstance(url, RewardClient):
        return RewardClient(url, on_error=on_error or "raise", token_env=token_env)
    if on_error not in (None, url.on_error):
        raise ConfigError(
            f"on_error is {on_error!r}, but the client was opened with {url.on_error!r}",
            hint=f"RewardClient({url.url!r}, on_error={on_error!r})",
        )
    if token_env is not None:
        raise ConfigError(
            f"token_env is {token_env!r}, but a client was given, which has its own",
            hint=f"RewardClient({url.url!r}, token_env={token_env!r})",
        )
    return url


def _require_leaves_out() -> None:
    """Refuse a TRL that pays 0 where there is no score: 0 may be the best reward of a group."""
    try:
        installed = metadata.version("trl")
    except metadata.PackageNotFoundError:
        return  # the caller is not TRL
    if tuple(map(int, installed.split(".")[:2])) < _LEAVES_OUT:
        raise ConfigError(
            f"on_error is 'drop', but TRL {installed} pays 0 for a dropped sample",
            hint="install trl>=1.6, or take on_error='raise'",
        )


def _question(prompt: Conversation) -> str:
    """Return the last question of the user.

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
    """Return the text that the policy wrote."""
    if isinstance(completion, str):
        return completion
    return "".join(_content(turn) for turn in completion if turn.get("role") == "assistant")


def _content(turn: Mapping[str, Any]) -> str:
    content = turn.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content if isinstance(part, Mapping))
