"""No element is wider than its box at any width, no row is taller than its texts ask, and content begins at once."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from support.browsing import People
from support.every_page import PAGES, Tour, faults_of
from support.realistic import RealisticSite, open_realistic

KNOWN: dict[str, set[str]] = {}
"""Pages that still fail, and in what; a page that no longer fails must leave the list."""


@pytest.fixture(scope="module")
def realistic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealisticSite]:
    with open_realistic(tmp_path_factory.mktemp("realistic")) as opened:
        yield opened


@pytest.mark.long
@pytest.mark.parametrize("name", PAGES)
def test_every_element_fits_its_box(
    name: str, realistic: RealisticSite, browser: Browser, tmp_path: Path
) -> None:
    people = People(browser, realistic.site)
    person = people()
    tour = Tour(realistic, tmp_path)
    tour.sign_in(person.context)
    PAGES[name](tour, person.page)
    faults = faults_of(person.page)
    known = KNOWN.get(name, set())
    new = [each for kind in sorted(faults.keys() - known) for each in faults[kind]]
    assert not new, "\n".join([f"{name}: {len(new)} faults", *new[:40]])
    mended = sorted(known - faults.keys())
    assert not mended, f"{name} no longer fails in {mended}: take it out of KNOWN"
