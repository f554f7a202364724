"""`prbench models probe` and `prbench models pull`: a rater's known score, and weights before they are needed."""

from typing import Annotated

import typer

from prbench.cli.options import TrustOption


def probe(
    address: Annotated[str, typer.Argument(help="A rater, for example hf:DIR.", metavar="ADDRESS")],
    trust_remote_code: TrustOption = False,
) -> None:
    """Print a rater's raw score of a fixed conversation, for --expect-logit."""
    from prbench.config import ModelOptions
    from prbench.models.remote.known_score import probe_score

    options = ModelOptions(trust_remote_code=trust_remote_code)
    typer.echo(f"{probe_score(address, options):.6g}")


def pull(
    name: Annotated[str, typer.Argument(help="smollm2, minilm, or ORG/NAME on the hub.", metavar="NAME")],
) -> None:
    """Fetch a model's weights into the cache, checksum verified, and print their folder."""
    from prbench.models.local.weights import pull as fetch

    typer.echo(fetch(name))
