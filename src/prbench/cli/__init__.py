"""The command line. Nothing heavy is imported before a command runs, so `--help` answers at once."""

import gc
import sys
from typing import TYPE_CHECKING

from prbench.cli.annotate import annotate_app
from prbench.cli.app import app, models_app
from prbench.cli.audit import audit
from prbench.cli.build import build_app
from prbench.cli.models import probe, pull
from prbench.cli.plan import plan
from prbench.cli.prompt import prompt
from prbench.cli.report import export, leaderboard, report, view
from prbench.cli.scorecard import scorecard
from prbench.cli.serve import serve
from prbench.cli.stress import stress
from prbench.cli.study import study_app
from prbench.cli.train import train

if TYPE_CHECKING:
    from prbench.errors import PrbenchError

app.command()(audit)
app.command()(export)
app.command()(leaderboard)
app.command()(plan)
app.command()(prompt)
app.command()(report)
app.command()(scorecard)
app.command()(serve)
app.command()(stress)
app.command()(train)
app.command()(view)
app.add_typer(annotate_app, name="annotate")
app.add_typer(build_app, name="build")
app.add_typer(study_app, name="study")
models_app.command()(probe)
models_app.command()(pull)

__all__ = ["app", "main"]

EXIT_USER_ERROR = 2
_COLLECT = (50_000, 20, 100)
"""How rarely the collector looks for cycles: a large run holds millions of plain objects, and there are none."""


def main() -> None:
    """Run the command line: a user's mistake is a message and a hint, a bug keeps its traceback."""
    from prbench.errors import MissingExtraError, PrbenchError

    gc.set_threshold(*_COLLECT)
    try:
        app()
    except PrbenchError as error:
        _tell(error)
    except ModuleNotFoundError as error:
        command = " ".join(["prbench", *(word for word in sys.argv[1:2] if not word.startswith("-"))])
        missing = MissingExtraError.of(error, command, extra=sys.argv[1] if len(sys.argv) > 1 else "")
        if missing is None:
            raise
        _tell(missing)
    except BrokenPipeError:  # the reader of our output went away, as `| head` does
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:  # a disk or a folder that refuses is the user's to mend, wherever it was met
        if error.filename is None:
            raise
        print(f"error: {str(error.filename)!r}: {error.strerror}", file=sys.stderr)
        print("\nhint: check the path, its permissions and the room on the disk", file=sys.stderr)
        sys.exit(EXIT_USER_ERROR)


def _tell(error: "PrbenchError") -> None:
    print(f"error: {error.message}", file=sys.stderr)
    if error.hint:
        print(f"\nhint: {error.hint}", file=sys.stderr)
    sys.exit(EXIT_USER_ERROR)
