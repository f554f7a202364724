"""The command that makes a run again, from its configuration: only what differs from the defaults is spelled out."""

import json
import shlex
from collections.abc import Iterator
from typing import Any

from prbench.config import ModelOptions, RunConfig

_PLAIN = {
    "--limit": "limit",
    "--ranker": "ranker",
    "--planner": "planner",
    "--plans": "plans",
    "--repeats": "repeats",
    "--seed": "seed",
    "--revision": "revision",
    "--resamples": "resamples",
}
_OPTIONS = {
    "--template": "template",
    "--window": "window",
    "--dtype": "dtype",
    "--device": "device",
    "--batch-tokens": "batch_tokens",
    "--concurrency": "concurrency",
    "--timeout": "timeout_s",
    "--retries": "retries",
    "--temperature": "temperature",
    "--max-tokens": "max_tokens",
    "--expect-logit": "expect_logit",
    "--key-env": "key_env",
    "--structured": "structured",
    "--device-map": "device_map",
    "--quantize": "quantize",
    "--quantize-sample": "quantize_sample",
}


def reproduction(config: RunConfig) -> str:
    """Return the command that makes this run again.

    Example:
        >>> config = RunConfig.of(suite="mirror", split="test", model="hf:org/rm", contexts="none,profile", limit=200)
        >>> reproduction(config)
        'prbench run --suite mirror --model hf:org/rm --context none,profile --limit 200'
    """
    return shlex.join(["prbench", "run", *_arguments(config)])


def _arguments(config: RunConfig) -> Iterator[str]:
    yield from ("--suite", config.suite, "--model", config.model, "--context", ",".join(config.contexts))
    if config.split != "test":
        yield from ("--split", config.split or "all")
    yield from _changed(_PLAIN, config, RunConfig(suite="", model=""))
    yield from _changed(_OPTIONS, config.options, ModelOptions())
    if config.options.price is not None:
        price = config.options.price
        each = (price.per_million_in, price.per_million_out, price.per_million_cached)
        yield from ("--price", ",".join(f"{one:g}" for one in each if one is not None))
    for name, value in config.options.body.items():
        yield from ("--body", f"{name}={value if isinstance(value, str) else json.dumps(value)}")
    for device, size in config.options.max_memory.items():
        yield from ("--max-memory", f"{device}={size}")
    if config.options.logprobs:
        yield "--logprobs"
    if config.options.trust_remote_code:
        yield "--trust-remote-code"
    for tag in config.by:
        yield from ("--by", tag)
    for field, column in config.columns.items():
        yield from ("--column", f"{field}={column}")
    if config.orders == "first":
        yield "--one-order"
    if config.allow_unfit:
        yield "--allow-unfit"


def _changed(flags: dict[str, str], settings: Any, defaults: Any) -> Iterator[str]:
    for flag, name in flags.items():
        value = getattr(settings, name)
        if value != getattr(defaults, name):
            yield from (flag, str(value))
