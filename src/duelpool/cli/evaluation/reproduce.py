"""`duelpool reproduce`: the papers' tables and figures, which are a distribution of their own.

Where that isn't installed, the command is still listed; using it says how to install it.
"""

from importlib.util import find_spec
from typing import Any

from duelpool.cli.helptext import DuelpoolCommand
from duelpool.errors import DuelpoolError

PACKAGE, DISTRIBUTION = "duelpool_reproduce", "duelpool-reproduce"


class NotInstalled(DuelpoolCommand):
    """A command without its distribution: whatever the arguments, `--help` included, it says how to install it."""

    def make_context(self, *_: Any, **__: Any) -> Any:
        """Refuse before any argument is read."""
        problem = (
            f"The papers' experiments are a package of their own, '{DISTRIBUTION}', which isn't installed."
        )
        remedy = f"Install it with: pip install {DISTRIBUTION} (from a checkout: pip install ./reproduce)"
        raise DuelpoolError(problem, remedy=remedy)


def _load() -> Any:
    if find_spec(PACKAGE) is None:
        text = f"Run a paper's experiment again. Needs the package {DISTRIBUTION}, which isn't installed."
        return NotInstalled("reproduce", help=text)
    from duelpool_reproduce.command import reproduce as installed

    return installed


reproduce = _load()
