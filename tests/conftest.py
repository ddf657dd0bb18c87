"""What all tests share: the folder with real data, hypothesis profiles, and no silent skips."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from browsing import People, Site

DATA_VARIABLE = "DUELPOOL_DATA"
UNDER_CI = bool(os.environ.get("CI"))
# The workers have a core each: further threads of a matrix product would only wait for one another.
for pool in ("OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ.setdefault(pool, "1")

# Every answer waits for the disk, and the tests give tens of thousands: they keep their files in memory where there
# is room. Nothing is lost by it, since tests end processes and not machines. TMPDIR names another place.
IN_MEMORY, ROOM = Path("/dev/shm"), 4 * 2**30


def has_room(folder: Path) -> bool:
    if not os.access(folder, os.W_OK | os.X_OK) or os.statvfs(folder).f_flag & os.ST_NOEXEC:
        return False
    return shutil.disk_usage(folder).free >= ROOM


if "TMPDIR" not in os.environ and has_room(IN_MEMORY):
    os.environ["TMPDIR"] = tempfile.tempdir = str(IN_MEMORY)

settings.register_profile("default", deadline=None, derandomize=True, max_examples=60)
settings.register_profile(
    "stress", deadline=None, max_examples=2000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(autouse=True, scope="module")
def made_quickly(request: pytest.FixtureRequest) -> Iterator[None]:
    """Spare the tests what isn't theirs to try: migrations for every store, and costly hashes for every password."""
    from making import ABOUT_OPENING, made_quickly

    with nullcontext() if request.module.__name__ in ABOUT_OPENING else made_quickly():
        yield


@pytest.fixture(scope="session")
def data() -> Path:
    """Return the folder with the real data, or skip the test, saying so."""
    folder = os.environ.get(DATA_VARIABLE)
    if not folder or not Path(folder).is_dir():
        pytest.skip(f"{DATA_VARIABLE} names no folder with the real data")
    return Path(folder)


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    """Start one chromium for all tests of the page."""
    from browsing import open_browser

    with open_browser() as started:
        yield started


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Site]":
    """Start one server for all tests of the page."""
    from browsing import open_site

    with open_site(tmp_path_factory.mktemp("site")) as started:
        yield started


@pytest.fixture
def people(browser: "Browser", site: "Site", request: pytest.FixtureRequest) -> "Iterator[People]":
    """Give a test its people; at the end nobody's browser may have complained, and axe saw what it should."""
    import barriers
    from browsing import People

    made = People(browser, site)
    barriers.begin()
    failed = request.session.testsfailed
    yield made
    made.close()
    if request.session.testsfailed == failed:
        barriers.refuse_unseen(request.node.name)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = len(terminalreporter.stats.get("skipped", ()))
    if skipped:
        verdict = "and CI takes no skips" if UNDER_CI else "see above what they need"
        terminalreporter.section(f"{skipped} tests were skipped, {verdict}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if UNDER_CI and reporter is not None and reporter.stats.get("skipped") and not session.exitstatus:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
