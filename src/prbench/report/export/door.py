"""One door for all exports: which forms there are, and the checks they share."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal, get_args

from prbench.errors import ConfigError, did_you_mean
from prbench.report.export import cards, flat, hub, inspect_log
from prbench.report.finished import open_finished

Export = Literal["parquet", "csv", "inspect", "hub-eval-results", "model-card"]
EXPORTS: tuple[Export, ...] = get_args(Export)
_FILES: dict[str, Callable[..., None]] = {
    "parquet": flat.write_parquet,
    "csv": flat.write_csv,
    "inspect": inspect_log.write,
    "model-card": cards.write,
}


def export(run: Path | str, to: str, out: Path, *, dataset_id: str | None = None, texts: bool = False) -> list[Path]:
    """Write a finished run in another form.

    Args:
        run: A run folder; one that is not finished or does not verify is refused.
        to: `parquet`, `csv`, `inspect`, `hub-eval-results` or `model-card`.
        out: A file; for `hub-eval-results` the folder of the model's repository.
        dataset_id: For `hub-eval-results`: the benchmark's id on the hub; known already for published suites.
        texts: For `parquet` and `csv`: whether question and answers stand in each row.

    Returns:
        What was written.
    """
    if to not in EXPORTS:
        raise ConfigError(f"unknown export {to!r}", hint=did_you_mean(to, EXPORTS))
    if texts and to not in ("parquet", "csv"):
        raise ConfigError(f"--texts means nothing to {to}", hint="parquet and csv take it")
    if to == "hub-eval-results":
        if out.exists() and not out.is_dir():
            raise ConfigError(f"{str(out)!r} is a file", hint="give the folder of the model's repository")
        return hub.write(open_finished(run), out, dataset_id)
    if out.is_dir():
        raise ConfigError(f"{str(out)!r} is a folder", hint=f"give a file, for example {out / 'run'}{_suffix(to)}")
    if to == "inspect" and out.suffix != ".json":
        raise ConfigError(
            f"an Inspect log in JSON must be named *.json, not {out.name!r}",
            hint=f"-o {out.with_suffix('.json')}; `inspect log convert` makes the binary form of it",
        )
    write = partial(_FILES[to], texts=True) if texts else _FILES[to]
    write(open_finished(run), out)
    return [out]


def _suffix(to: str) -> str:
    return {"inspect": ".json", "model-card": ".md"}.get(to, f".{to}")
