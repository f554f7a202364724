"""`prbench run --config FILE`: options from a TOML file, as every run writes one; what is typed goes before."""

from pathlib import Path
from typing import Any

import typer

_RENAMED = {"contexts": "context", "columns": "column", "timeout_s": "timeout"}
_LEFT_OUT = ("digest", "options", "orders", "price", "body")


def read_config_file(context: typer.Context, path: Path | None) -> Path | None:
    """Take the file's values as the defaults of the command; an unknown name is refused."""
    if path is None:
        return None
    from prbench.errors import ConfigError, did_you_mean
    from prbench.files import read_toml

    values = as_options(read_toml(path, raises=ConfigError, hint="name a file such as runs/NAME/config.toml"))
    known = {parameter.name for parameter in context.command.params if parameter.name}
    for name in values:
        if name not in known:
            raise ConfigError(f"{str(path)!r} sets {name!r}, which run does not take", hint=did_you_mean(name, known))
    context.default_map = {**(context.default_map or {}), **values}
    return path


def as_options(data: dict[str, Any]) -> dict[str, Any]:
    """The options of the command line for the fields of a configuration.

    Example:
        >>> as_options({"model": "longer", "contexts": ["none", "other"], "options": {"timeout_s": 5.0}})
        {'split': 'all', 'model': 'longer', 'context': 'none,other', 'timeout': 5.0}
    """
    given = {**data, **data.get("options", {})}
    # A run over all splits, and one from the file of another run, has no split in it.
    found: dict[str, Any] = {"split": "all"} if "options" in data else {}
    for name, value in given.items():
        if name not in _LEFT_OUT and value is not None:
            found[_RENAMED.get(name, name)] = _as_option(name, value)
    if given.get("orders") == "first":
        found["one_order"] = True
    if price := given.get("price"):
        found["price"] = price if isinstance(price, str) else f"{price['per_million_in']},{price['per_million_out']}"
    if body := given.get("body"):
        import json

        found["body"] = [f"{key}={json.dumps(value)}" for key, value in body.items()]
    return found


def _as_option(name: str, value: Any) -> Any:
    if name == "contexts" and not isinstance(value, str):
        return ",".join(value)
    if isinstance(value, dict):
        return [f"{key}={item}" for key, item in value.items()]
    return value
