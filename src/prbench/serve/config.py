"""Settings of a server; what does not fit together is refused before a model is loaded."""

import os
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field

from prbench.config import Config, ModelOptions
from prbench.errors import ConfigError
from prbench.serve.items import ItemBounds
from prbench.web import LOOPBACK, is_loopback

DEFAULT_STATE = Path("runs/serve/feedback.jsonl")
"""File that keeps judgments unless told otherwise."""


class ServeConfig(Config):
    """Settings of a server, resolved.

    Example:
        >>> ServeConfig.of(model="longer", context="none").port
        8000
    """

    model: str
    suite: str = "mirror"
    """Suite whose users are known by name."""
    context: str = "profile"
    ranker: str = "bm25"
    seed: int = 0
    host: str = LOOPBACK
    port: int = Field(default=8000, ge=0, le=65535)
    """Port to listen on; 0 takes any free one."""
    token_env: str | None = None
    """The environment variable with the bearer token that clients must send."""
    insecure: bool = False
    """Whether a host beyond this machine may be bound without a token."""
    max_batch: int = Field(default=32, ge=1)
    max_wait_ms: float = Field(default=10.0, ge=0)
    max_queue: int = Field(default=4096, ge=1)
    max_body: int = Field(default=16 * 2**20, ge=1)
    """Most bytes of a request."""
    max_text: int = Field(default=ItemBounds().text, ge=1)
    """Most characters of one text."""
    max_posts: int = Field(default=ItemBounds().posts, ge=1)
    """Most posts of an item."""
    max_item: int = Field(default=ItemBounds().item, ge=1)
    """Most characters of an item with all its posts."""
    max_judgments: int = Field(default=ItemBounds().judgments, ge=1)
    """Most judgments of one user."""
    floor: Literal["auto", "off"] | float = "auto"
    """The reward of an answer that says nothing: found from the suite's answers, a number, or what the model gives."""
    deadline_s: float = Field(default=120.0, gt=0)
    """The longest that a request may take."""
    state: Path = DEFAULT_STATE
    drain_s: float = Field(default=60.0, gt=0)
    """The most that answering what was accepted may take once the server is told to stop."""
    options: ModelOptions = ModelOptions()

    @classmethod
    def of(cls, place: str = "", /, **settings: Any) -> Self:
        """Make a configuration of what a user typed, and refuse to stand open to a network by mistake."""
        config = super().of(place, **settings)
        config.check_reach()
        return config

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)

    @property
    def token(self) -> str | None:
        """Token that clients must send."""
        return read_token(self.token_env)

    @property
    def bounds(self) -> ItemBounds:
        """Limits on the size of an item or a judgment."""
        return ItemBounds(self.max_text, self.max_posts, self.max_item, self.max_judgments, self.max_queue)

    def check_reach(self) -> None:
        """Refuse to stand open to a network by mistake."""
        if not self.loopback and self.token is None and not self.insecure:
            raise ConfigError(
                f"host {self.host!r} can be reached from other machines, and there is no token",
                hint="name the variable that holds one with --token-env NAME, or say --insecure",
            )


def read_token(variable: str | None) -> str | None:
    """A token from the environment; a variable that was named must hold one."""
    if variable is None:
        return None
    token = os.environ.get(variable, "").strip()
    if not token or not (token.isascii() and token.isprintable()):
        raise ConfigError(
            f"the variable {variable!r} holds no token", hint=f"set it, for example {variable}=$(openssl rand -hex 24)"
        )
    return token
