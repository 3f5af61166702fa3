"""The command line, `toggle-harness`: thin; each command has its own file in `harness.commands`."""

import logging
import sys
import traceback

import typer
from rich.console import Console
from typer.exceptions import TyperException

from harness.commands import bench, detect, doctor, replay, run, search, serve, validate
from harness.errors import UsageError

USAGE = 2
"""Exit code of wrong usage: one line on standard error, no traceback."""
BROKEN = 70
"""Exit code of a mistake in this program, which its traceback shows (`EX_SOFTWARE`, sysexits.h)."""

app = typer.Typer(
    name="toggle-harness",
    help="Finds, shrinks and replays bugs at the switch between speculative and plain decoding in SGLang.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("run")(run.command)
app.command("replay")(replay.command)
app.command("search")(search.command)
app.command("validate")(validate.command)
app.command("detect")(detect.command)
app.command("serve")(serve.command)
app.command("doctor")(doctor.command)
app.add_typer(bench.app, name="bench")


def main() -> None:
    """Entry point; turns errors that a person can cause into one line and exit code 2."""
    logging.getLogger().setLevel(logging.ERROR)  # SGLang warns through the root logger, amid the table
    try:
        sys.exit(app(prog_name="toggle-harness", standalone_mode=False))
    except UsageError as error:
        _refuse(str(error))
    except TyperException as error:
        _refuse(f"{error.format_message()} See toggle-harness --help.")
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception:  # not to be taken for a verdict, whose exit codes are 0, 1 and 3
        traceback.print_exc()
        sys.exit(BROKEN)


def _refuse(message: str) -> None:
    Console(stderr=True, highlight=False).print(f"error: {' '.join(message.split())}", soft_wrap=True, markup=False)
    sys.exit(USAGE)


if __name__ == "__main__":
    main()
