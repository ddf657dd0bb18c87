"""The command line: one file a command. Commands translate: parse, one call, print."""

import atexit
import gc
import os
import sys
from typing import TYPE_CHECKING

from duelpool.cli.stored_help import stored_help

if TYPE_CHECKING:
    from duelpool.cli.commands import COMMAND_GROUPS, COMMANDS
    from duelpool.cli.program import app

__all__ = ["COMMANDS", "COMMAND_GROUPS", "app", "main"]

_FEWER_COLLECTIONS = (
    50_000  # objects: importing makes many and drops none, and looking for some takes a tenth of it
)
_HELP = ("-h", "--help")
_THREADS = "OPENBLAS_NUM_THREADS"


def __getattr__(name: str) -> object:
    """Import typer and the commands when they are asked for: stored help needs neither."""
    if name == "app":
        from duelpool.cli.program import app

        return app
    if name in ("COMMANDS", "COMMAND_GROUPS"):
        from duelpool.cli import commands

        return getattr(commands, name)
    raise AttributeError(f"module 'duelpool.cli' has no attribute '{name}'")


def main() -> None:
    """Run the command line."""
    gc.set_threshold(_FEWER_COLLECTIONS)
    atexit.register(
        gc.freeze
    )  # Python looks through all objects once more when it ends: an eighth of a small command
    words = sys.argv[1:]
    if words and words[-1] in _HELP and (text := stored_help(words[:-1])) is not None:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    # numpy starts a thread a core, and these spin while they wait. Our matrices are small, and one thread adds numbers
    # in the same order on every machine.
    os.environ.setdefault(_THREADS, os.environ.get("OMP_NUM_THREADS", "1"))
    from duelpool.cli.program import app

    app(prog_name="duelpool")
