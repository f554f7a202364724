"""The command `prbench serve`: a reward model over HTTP."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prbench.cli import options as shared
from prbench.cli.options import Dtype, model_options, settings_of

if TYPE_CHECKING:
    from prbench.serve.service import RewardService


_MODEL_OPTIONS = (
    *("template", "seed", "window", "dtype", "device", "device_map", "max_memory", "trust_remote_code"),
    "batch_tokens",
)


def serve(
    model: Annotated[str, typer.Option("--model", "-m", help="Address of a model that scores single answers.")],
    suite: Annotated[str, typer.Option("--suite", "-s", help="Whose users are known by name.")] = "mirror",
    context: Annotated[
        str, typer.Option("--context", "-c", help="What of the user is shown, as in `run`.")
    ] = "profile",
    host: Annotated[str, typer.Option(help="Where to listen; beyond this machine only with a token.")] = "127.0.0.1",
    port: shared.PortOption = 8000,
    token_env: Annotated[str | None, typer.Option(help="Variable with the token that clients must send.")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Listen beyond this machine without a token.")] = False,
    max_batch: Annotated[int, typer.Option(min=1, help="Most items that the model is handed at once.")] = 32,
    max_wait_ms: Annotated[float, typer.Option(min=0, help="Longest wait for a batch to fill.")] = 10.0,
    max_queue: Annotated[int, typer.Option(min=1, help="Items that may wait; beyond it 503.")] = 4096,
    max_body: Annotated[int, typer.Option(min=1, help="Most bytes of a request.")] = 16 * 2**20,
    max_text: Annotated[int, typer.Option(min=1, help="Most characters of one text.")] = 12_000,
    max_posts: Annotated[int, typer.Option(min=1, help="Most posts of an item.")] = 2_000,
    max_item: Annotated[
        int, typer.Option(min=1, help="Most characters of an item with its posts, and of all that a user has judged.")
    ] = 400_000,
    max_judgments: Annotated[int, typer.Option(min=1, help="Most judgments of one user.")] = 500,
    floor: Annotated[
        str, typer.Option(help="Reward of an answer that says nothing: auto, a number, or off (ask the model).")
    ] = "auto",
    deadline_s: Annotated[float, typer.Option(min=0.1, help="Longest that a request may take.")] = 120.0,
    state: Annotated[
        Path | None, typer.Option(help="Where judgments are kept; default runs/serve/feedback.jsonl.")
    ] = None,
    template: shared.TemplateOption = None,
    ranker: shared.RankerOption = "bm25",
    seed: Annotated[int, typer.Option(help="Of the wrong users shown.")] = 0,
    window: shared.WindowOption = None,
    dtype: shared.DtypeOption = Dtype.float32,
    device: shared.DeviceOption = "auto",
    device_map: shared.DeviceMapOption = None,
    max_memory: shared.MaxMemoryOption = None,
    trust_remote_code: shared.TrustOption = False,
    batch_tokens: shared.BatchTokensOption = 8192,
) -> None:
    """Serve a reward model: batched, shown what the benchmark shows it, adapting to feedback."""
    given = locals()
    try:
        from prbench.serve.server import serve as run_server
    except ModuleNotFoundError as error:
        from prbench.errors import MissingExtraError

        raise MissingExtraError("prbench serve", "serve") from error
    from prbench.serve.config import DEFAULT_STATE, ServeConfig

    own = {
        "floor": floor if floor in ("auto", "off") else _number(floor),
        "state": state or DEFAULT_STATE,
        "options": model_options(given, *_MODEL_OPTIONS),
    }
    config = ServeConfig.of(**settings_of(ServeConfig, given) | own)
    print(f"loading {model} …", file=sys.stderr)
    if not run_server(config, _say):
        print("stopped before everything was answered", file=sys.stderr)
        raise typer.Exit(1)
    print("stopped; everything accepted was answered", file=sys.stderr)


def _number(text: str) -> float:
    from prbench.errors import ConfigError

    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"--floor {text!r} should be auto, off or a number") from None


def _say(url: str, service: "RewardService") -> None:
    health = service.health()
    learns = "learns from feedback" if health["adapts"] else "does not learn from feedback"
    leaks = " (leaks the true rubric)" if health["context"] == "oracle" else ""
    users = f"{health['users']} users of {health['suite']}"
    print(f"{health['model']} · context {health['context']}{leaks} · {users} · {learns}", file=sys.stderr)
    typer.echo(f"{url}    (Ctrl-C stops it)")
    sys.stdout.flush()
