"""Shared by all tests: the data folder, hypothesis profiles, and a count of tests that can't run here."""

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import nullcontext
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from peers.installed import ADAPTED, installed, missing

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from support.browsing import People, Site

DATA_VARIABLE = "DUELPOOL_DATA"
UNDER_CI = bool(os.environ.get("CI"))
# Each worker has one core: more threads per matrix product would only wait for each other.
for pool in ("OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ.setdefault(pool, "1")

# Every answer waits for the disk, and the tests store tens of thousands: files are kept in memory where there is
# room. That is safe, since tests kill processes and not machines. TMPDIR names another place.
IN_MEMORY, ROOM = Path("/dev/shm"), 4 * 2**30


def has_room(folder: Path) -> bool:
    if (
        not hasattr(os, "statvfs")
        or not os.access(folder, os.W_OK | os.X_OK)
        or os.statvfs(folder).f_flag & os.ST_NOEXEC
    ):
        return False
    return shutil.disk_usage(folder).free >= ROOM


if "TMPDIR" not in os.environ and has_room(IN_MEMORY):
    os.environ["TMPDIR"] = tempfile.tempdir = str(IN_MEMORY)

# Python's tracker of semaphores starts with the first pool of processes, in the folder of the test that makes it; where
# that folder is removed too early, Python 3.13.0 can't start. So it starts here.
if os.name == "posix":
    resource_tracker.ensure_running()

settings.register_profile("default", deadline=None, derandomize=True, max_examples=30)
settings.register_profile(
    "stress", deadline=None, max_examples=2000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(autouse=True, scope="module")
def made_quickly(request: pytest.FixtureRequest) -> Iterator[None]:
    """Speed the tests up: no migrations for each store, and cheap hashes for passwords."""
    from support.quick_stores import ABOUT_OPENING, made_quickly

    with nullcontext() if request.module.__name__ in ABOUT_OPENING else made_quickly():
        yield


def data_folder() -> Path | None:
    """Return the folder with the real data, if one is named; a missing folder is an error."""
    named = os.environ.get(DATA_VARIABLE)
    if named and not Path(named).is_dir():
        message = f"{DATA_VARIABLE} names {named}, which is no folder. Name another, or unset it."
        raise pytest.UsageError(message)
    return Path(named) if named else None


@pytest.fixture(scope="session")
def data() -> Path:
    """Return the folder with the real data; without one the tests that use it are deselected."""
    folder = data_folder()
    assert folder is not None
    return folder


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    """Start one chromium for all tests of the page."""
    from support.browsing import open_browser

    with open_browser() as started:
        yield started


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Site]":
    """Start one server for all tests of the page."""
    from support.browsing import open_site

    with open_site(tmp_path_factory.mktemp("site")) as started:
        yield started


@pytest.fixture
def people(browser: "Browser", site: "Site", request: pytest.FixtureRequest) -> "Iterator[People]":
    """Provide browser users; at the end no browser may have logged an error, and axe must have checked the pages."""
    from support import accessibility
    from support.browsing import People

    made = People(browser, site)
    accessibility.begin()
    failed = request.session.testsfailed
    yield made
    made.close()
    if request.session.testsfailed == failed:
        accessibility.refuse_unseen(request.node.name)


# ---- tests that can't run here are deselected by marker and counted; a skipped test fails under CI


LEFT_OUT = pytest.StashKey[Counter[str]]()


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    config.stash[LEFT_OUT] = Counter()
    data_folder()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """Mark tests that use the data folder; deselect those whose data folder or peer is missing.

    Tests deselected by `-m` or `-k` aren't counted: they would not have run anyway.
    """
    for item in items:
        if "data" in getattr(item, "fixturenames", ()):
            item.add_marker("data")
        if any(mark.args[0] in ADAPTED for mark in item.iter_markers("peer")):
            item.add_marker("long")
    yield
    has_data = data_folder() is not None
    selected: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        peers = [mark.args[0] for mark in item.iter_markers("peer")]
        lacking = [peer for peer in peers if not installed(peer)]
        if not has_data and item.get_closest_marker("data"):
            lacking.append(DATA_VARIABLE)
        (left_out if lacking else selected).append(item)
        config.stash[LEFT_OUT].update(lacking)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = selected


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:  # a worker of pytest-xdist: all of them collect the same tests
        counted: Counter[str] = session.config.stash[LEFT_OUT]
        output["left_out"] = dict(counted)
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if UNDER_CI and reporter is not None and reporter.stats.get("skipped") and not session.exitstatus:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over the counts of a pytest-xdist worker."""
    counts = getattr(node, "workeroutput", {}).get("left_out", {})
    counted: Counter[str] = node.config.stash[LEFT_OUT]
    for what, count in counts.items():
        counted[what] = count


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    left_out = config.stash[LEFT_OUT]
    if count := left_out.pop(DATA_VARIABLE, 0):
        terminalreporter.section(f"{count} tests need the data folder: {DATA_VARIABLE} names none")
    if lacking := list(dict.fromkeys([*missing(), *left_out])):
        terminalreporter.section(f"peers that aren't installed: {', '.join(lacking)}")
        if count := sum(left_out.values()):
            note = "their recorded answers in tests/peers are checked everywhere"
            terminalreporter.line(f"{count} live comparisons were left out; {note}.")
    if skipped := len(terminalreporter.stats.get("skipped", ())):
        verdict = "and CI takes no skips" if UNDER_CI else "see above what they need"
        terminalreporter.section(f"{skipped} tests were skipped, {verdict}")
