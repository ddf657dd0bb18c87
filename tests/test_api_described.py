"""The API against its own description: whatever is sent, nothing breaks and nothing undocumented comes back."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from duelpool.store import open_store
from managed import judge, key_for, managed
from visitors import served

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    target: Path = tmp_path_factory.mktemp("described") / "campaign.db"
    with open_store(target, create=True) as store:
        judge(managed(store), 20)
    with served(target) as found:
        yield found


@pytest.fixture(scope="module")
def described(app: FastAPI) -> Any:
    return schemathesis.openapi.from_asgi("/api/v1/openapi.json", app)


schema = schemathesis.pytest.from_fixture("described")


@schema.parametrize()
@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_nothing_breaks_and_nothing_undocumented_comes_back(case: Any, app: FastAPI) -> None:
    campaign = app.state.halls.all()[0].id
    if "campaign" in case.path_parameters:
        case.path_parameters["campaign"] = campaign
    case.headers = {**(case.headers or {}), "Authorization": f"Bearer {key_for(app, campaign)}"}
    if "seconds" in (case.query or {}) or case.path.endswith("/events"):
        case.query = {**(case.query or {}), "seconds": 0}
    case.call_and_validate(checks=CHECKS)
