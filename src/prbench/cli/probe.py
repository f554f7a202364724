"""`prbench models probe ADDRESS`: the known value that a served copy of the model is checked against."""

from typing import Annotated

import typer


def probe(
    address: Annotated[str, typer.Argument(help="A rater, for example hf:DIR.", metavar="ADDRESS")],
    trust_remote_code: Annotated[
        bool,
        typer.Option("--trust-remote-code", help="Run code that the checkpoint brings along, named and pinned."),
    ] = False,
) -> None:
    """Print a rater's raw score of a fixed conversation, for --expect-logit."""
    from prbench.config import ModelOptions
    from prbench.models.remote.known_score import probe_score

    options = ModelOptions(trust_remote_code=trust_remote_code)
    typer.echo(f"{probe_score(address, options):.6g}")
