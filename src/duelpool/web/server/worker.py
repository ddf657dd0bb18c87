"""One of several server processes: what `duelpool serve` has left for it in the environment.

It stands here, and not beside the command, so that a process loads the page alone and not every command.
"""

import json
import os
from pathlib import Path

from fastapi import FastAPI

from duelpool.web.server.app import make_app

VARIABLE = "DUELPOOL_SERVES"


def leave(store: str, campaign: str | None, counts: str | None = None, uploads: str | None = None) -> None:
    """Say what the processes that are started from here on serve, where they count, and where uploads lie."""
    wanted = {"store": store, "campaign": campaign, "counts": counts, "uploads": uploads}
    os.environ[VARIABLE] = json.dumps(wanted)


def take_up() -> FastAPI:
    """Return the application that was asked for."""
    wanted = json.loads(os.environ[VARIABLE])
    counts, uploads = (Path(each) if each else None for each in (wanted["counts"], wanted["uploads"]))
    return make_app(wanted["store"], campaign=wanted["campaign"], counts=counts, uploads=uploads)
