"""The application of one of several server processes, configured by environment variables of `duelpool serve`.

It is a module of its own so that a server process doesn't import all commands.
"""

import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from duelpool.access.sign_on_settings import RoleRule, SignOnSettings, with_secret
from duelpool.web.server.app import make_app

VARIABLE = "DUELPOOL_SERVES"


def leave(
    store: str,
    campaign: str | None,
    counts: str | None = None,
    uploads: str | None = None,
    url: str = "",
    *,
    sign_on: SignOnSettings | None = None,
) -> None:
    """Set what processes serve that are started from now on: store, folders of counts and uploads, URL, single sign-on.

    The client's secret isn't among it: each process reads it where the first one did.
    """
    wanted: dict[str, Any] = {
        "store": store,
        "campaign": campaign,
        "counts": counts,
        "uploads": uploads,
        "url": url,
    }
    wanted["sign_on"] = None if sign_on is None else asdict(replace(sign_on, secret=""))
    os.environ[VARIABLE] = json.dumps(wanted)


def take_up() -> FastAPI:
    """Return the application that the environment describes."""
    wanted = json.loads(os.environ[VARIABLE])
    counts, uploads = (Path(each) if each else None for each in (wanted["counts"], wanted["uploads"]))
    return make_app(
        wanted["store"],
        campaign=wanted["campaign"],
        counts=counts,
        uploads=uploads,
        url=wanted["url"],
        sign_on=_sign_on(wanted["sign_on"]),
    )


def _sign_on(values: dict[str, Any] | None) -> SignOnSettings | None:
    if values is None:
        return None
    rules = tuple(RoleRule(**each) for each in values["rules"])
    lists = {name: tuple(values[name]) for name in ("domains", "allow")}
    return with_secret(SignOnSettings(**{**values, **lists, "rules": rules}))
