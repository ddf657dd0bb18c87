"""One of several server processes: what `duelpool serve` has left for it in the environment.

It stands here, and not beside the command, so that a process loads the page alone and not every command.
"""

import json
import os
from pathlib import Path

from fastapi import FastAPI

from duelpool.web.app import make_app

VARIABLE = "DUELPOOL_SERVES"


def leave(store: str, campaign: str | None, counts: str | None = None) -> None:
    """Say what the processes that are started from here on serve, and where they count."""
    os.environ[VARIABLE] = json.dumps({"store": store, "campaign": campaign, "counts": counts})


def take_up() -> FastAPI:
    """Return the application that was asked for."""
    wanted = json.loads(os.environ[VARIABLE])
    counts = wanted.get("counts")
    return make_app(wanted["store"], campaign=wanted["campaign"], counts=Path(counts) if counts else None)
