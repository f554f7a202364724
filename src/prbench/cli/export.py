"""The command `prbench export`: a run in the forms that other tools read."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Target(StrEnum):
    """The forms there are."""

    parquet = "parquet"
    csv = "csv"
    inspect = "inspect"
    hub_eval_results = "hub-eval-results"
    model_card = "model-card"


def export(
    run: Annotated[Path, typer.Argument(help="A finished run folder.", metavar="RUN")],
    to: Annotated[Target, typer.Option("--to", help="Which form.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="File; for hub-eval-results the folder of the model's repository.")
    ],
    dataset_id: Annotated[
        str | None,
        typer.Option(help="For hub-eval-results: the benchmark's ORG/NAME on the hub, where the suite has none."),
    ] = None,
    texts: Annotated[
        bool, typer.Option("--texts", help="For parquet and csv: question and answers in each row.")
    ] = False,
) -> None:
    """Write a finished run as Parquet, CSV, Inspect log, hub evaluation results or model-card section."""
    from prbench.report.export import export as write

    for path in write(run, to.value, out, dataset_id=dataset_id, texts=texts):
        typer.echo(f"wrote {path}")
