"""The application of one of several server processes, configured by environment variables of `duelpool serve`.

It is a module of its own so that a server process doesn't import all commands.
"""

import json
import os
from pathlib import Path

from fastapi import FastAPI

from duelpool.web.server.app import make_app

VARIABLE = "DUELPOOL_SERVES"


def leave(
    store: str,
    campaign: str | None,
    counts: str | None = None,
    uploads: str | None = None,
    url: str = "",
) -> None:
    """Set the store, the folders of counts and of uploads, and the URL for processes started from now on."""
    wanted = {"store": store, "campaign": campaign, "counts": counts, "uploads": uploads, "url": url}
    os.environ[VARIABLE] = json.dumps(wanted)


def take_up() -> FastAPI:
    """Return the application that the environment describes."""
    wanted = json.loads(os.environ[VARIABLE])
    counts, uploads = (Path(each) if each else None for each in (wanted["counts"], wanted["uploads"]))
    return make_app(
        wanted["store"], campaign=wanted["campaign"], counts=counts, uploads=uploads, url=wanted["url"]
    )
