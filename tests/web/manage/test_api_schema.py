"""The API against its own schema: no generated request breaks it or gets an undocumented response."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from fastapi import FastAPI
from fastapi.routing import APIRoute
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from duelpool.store import open_store
from duelpool.web.manage.api import router
from duelpool.web.setup.api import router as setting_up
from duelpool.web.setup.keys import setup_key
from support.managed import judge, key_for, managed
from support.stores import new_target
from support.visitors import served

EXAMPLES, EXAMPLES_IN_LONG = 12, 150
KNOWN = {
    "topic": "one",
    "a": "a",
    "b": "b",
    "assessor": "anna",
    "measure": "nDCG@5",
    "baseline": "shuffled",
    "tag": "odd",
    "test": "wilcoxon",
    "correction": "bh",
    "cursor": "",
    "state": "paused",
    "phase": "1",
    "seqs": [1, 2],
    "order": "tests",
    "event": "judgment",
    "settings": {"reward": 300, "consent": "Yes."},
}
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)]
)  # the long form has both
def app(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    folder: Path = tmp_path_factory.mktemp("described")
    with new_target(request.param, folder) as target:
        with open_store(target, create=True) as store:
            judge(managed(store), 20)
        with served(target, uploads=folder / "uploads") as application:
            yield application
            application.state.drafts.close()


@pytest.fixture(scope="module")
def described(app: FastAPI) -> Any:
    async def without_lifespan(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":  # every call would start and end the application, and close its store
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
        else:
            await app(scope, receive, send)

    return schemathesis.openapi.from_asgi("/api/v1/openapi.json", without_lifespan)


OPERATIONS = sorted(
    (route.path, method)
    for route in (*router.routes, *setting_up.routes)
    if isinstance(route, APIRoute)
    for method in route.methods or ()
)


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_responses_conform_to_the_schema(described: Any, app: FastAPI, path: str, method: str) -> None:
    assert_conforms(described, app, path, method, EXAMPLES)


@pytest.mark.slow
@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_many_responses_conform_to_the_schema(described: Any, app: FastAPI, path: str, method: str) -> None:
    assert_conforms(described, app, path, method, EXAMPLES_IN_LONG)


def assert_conforms(described: Any, app: FastAPI, path: str, method: str, examples: int) -> None:
    campaign = app.state.campaigns.all()[0].id

    @settings(max_examples=examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(described[path][method].as_strategy(), st.booleans())
    def check(case: Any, known: bool) -> None:
        for sent in (case.query, case.body):
            if known and isinstance(sent, dict):  # names that are there lead further in
                sent.update({name: value for name, value in KNOWN.items() if name in sent})
        if "campaign" in (case.path_parameters or {}):
            case.path_parameters["campaign"] = campaign
        if path.endswith("/events"):
            case.query = {**(case.query or {}), "seconds": 0}
        if "draft" in (case.path_parameters or {}) and known:
            for old in app.state.drafts.all():  # there is a limit of drafts
                old.clear()
            case.path_parameters["draft"] = app.state.drafts.new().id
            if "kind" in case.path_parameters:
                case.path_parameters["kind"] = "runs"
        own = key_for(app, campaign) if "/setups" not in path else setup_key(app.state.links, time.time())
        case.call_and_validate(headers={"Authorization": f"Bearer {own}"}, checks=CHECKS)

    check()
