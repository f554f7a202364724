"""`prbench models probe ADDRESS`: the known value that a served copy of the model is checked against."""

from typing import Annotated

import typer


def probe(
    address: Annotated[str, typer.Argument(help="A rater, for example hf:DIR.", metavar="ADDRESS")],
) -> None:
    """Print a rater's raw score of a fixed conversation, for --expect-logit."""
    from prbench.models.remote.probe import probe_score

    typer.echo(f"{probe_score(address):.6g}")
