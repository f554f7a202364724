"""`prbench models pull NAME`: fetch weights before they are needed."""

from typing import Annotated

import typer


def pull(
    name: Annotated[str, typer.Argument(help="smollm2, minilm, or ORG/NAME on the hub.", metavar="NAME")],
) -> None:
    """Fetch a model's weights into the cache, checksum verified, and print their folder."""
    from prbench.models.local.weights import pull as fetch

    typer.echo(fetch(name))
