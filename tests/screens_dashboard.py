"""Takes pictures of the pages: those of the dashboard that the documentation shows, or all pages to look at.

python tests/screens_dashboard.py                        the documentation's pictures, in docs/pictures
python tests/screens_dashboard.py --every                every page on the realistic campaigns, in build/pictures
python tests/screens_dashboard.py --every topics pair    these pages alone; `make pictures PAGES="topics pair"` too

Every page is taken whole, at 1280 and 390 pixels, light and dark: build/pictures/topics-1280-dark.png. What is wrong
with its layout at any width is printed. The pages are the rows of `PAGES` in tests/support/every_page.py.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import FloatRect, Page
from typer.testing import CliRunner

from duelpool.cli import app
from duelpool.demo.story import write_collection
from duelpool.web.setup.keys import setup_address, setup_key
from support.browsing import People, Site, open_browser, open_site, wait_in
from support.every_page import PAGES, Tour, faults_of
from support.managed import key_for
from support.quick_stores import made_quickly
from support.realistic import open_realistic

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
EVERY = Path(__file__).parents[1] / "build" / "pictures"
TALLEST = 6000  # pixels of a picture; what is below that is cut off


def take(page: Page, name: str) -> None:
    """Take a picture of what stands on the screen."""
    page.screenshot(path=str(PICTURES / f"{name}.png"), animations="disabled")


def judged_by_a_crowd(site: Site, folder: Path) -> str:
    """Make a campaign of the demo's collection, let simulated people judge most of it, and return its id."""
    store = str(folder / "campaigns.db")
    runs = [str(path) for path in sorted((folder / "runs").glob("*.run"))]
    files = ["--qrels", str(folder / "qrels.txt"), "--texts", str(folder / "passages.jsonl")]
    files += ["--topics", str(folder / "topics.jsonl")]
    rules = ["--thin", "5", "--judges", "crowd", "--name", "Everyday questions", "-o", store]
    for words in (
        ["pool", *runs, *files, *rules],
        ["judge", store, "--judge", "simulated", "--model", "demo", "--careless", "0.15", "--limit", "800"],
    ):
        done = CliRunner().invoke(app, words)
        if done.exit_code:
            raise RuntimeError(done.output)
    return str(site.app.state.campaigns.all()[0].id)


def take_every(names: list[str]) -> int:
    """Take pictures of these pages of the realistic campaigns, or of all."""
    EVERY.mkdir(parents=True, exist_ok=True)
    with (
        made_quickly(),
        tempfile.TemporaryDirectory() as name,
        open_browser() as browser,
        open_realistic(Path(name)) as realistic,
    ):
        people = People(browser, realistic.site)
        person = people()
        tour = Tour(realistic, Path(name))
        tour.sign_in(person.context)
        page = person.page
        for each in [each for each in PAGES if not names or each in names]:
            PAGES[each](tour, page)
            for width in (1280, 390):
                page.set_viewport_size({"width": width, "height": 800})
                for scheme in ("light", "dark"):
                    page.emulate_media(color_scheme=scheme)
                    path = EVERY / f"{each}-{width}-{scheme}.png"
                    height = min(TALLEST, page.evaluate("document.documentElement.scrollHeight"))
                    area: FloatRect = {"x": 0, "y": 0, "width": width, "height": height}
                    page.screenshot(path=path, animations="disabled", full_page=True, clip=area)
            page.emulate_media(color_scheme="light")
            faults = [fault for kind in faults_of(page).values() for fault in kind]
            print(f"{each}: {len(faults)} faults", *faults[:5], sep="\n    ")
        people.close()
    print(f"The pictures are in {EVERY}.")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Take pictures of the pages.")
    parser.add_argument(
        "--every", nargs="*", choices=tuple(PAGES), metavar="PAGE", help="all pages, or these"
    )
    given = parser.parse_args()
    return take_pictures() if given.every is None else take_every(given.every)


def take_pictures() -> int:
    """Take the documentation's pictures."""
    with tempfile.TemporaryDirectory() as name, open_browser() as browser, open_site(Path(name)) as site:
        folder = Path(name)
        write_collection(folder, seed=1)
        campaign = judged_by_a_crowd(site, folder)
        people = People(browser, site)
        base = f"{site.address}/manage/{campaign}"
        key = f"{base}?key={key_for(site.app, campaign)}"
        waiting = people().page
        waiting.goto(key)
        while "being worked out" in waiting.inner_text("main"):
            time.sleep(1)
            waiting.goto(f"{base}/topics")
        for what, where, size, options in (
            ("overview", "overview", (1280, 1000), {}),
            ("leaderboard", "leaderboard", (1280, 1420), {}),
            ("assessors", "assessors?order=agreement", (1280, 800), {}),
            ("settings", "settings", (1280, 1000), {}),
            ("topic-dark", "topics?state=done", (1280, 1290), {"color_scheme": "dark"}),
            ("phone", "overview", (360, 1250), {"device_scale_factor": 2}),
        ):
            page = people(*size, **options).page
            page.goto(key)
            page.goto(f"{base}/{where}")
            wait_in(page, "document.documentElement.dataset.live === 'events'")
            if what == "topic-dark":
                page.click("#rows tbody th a")
                page.wait_for_selector("#closings")
            if what == "leaderboard":
                page.wait_for_selector("#looking-back", state="detached")
            take(page, f"dashboard-{what}")
        page = people(1280, 1200).page
        page.goto(setup_address(site.address, setup_key(site.app.state.links, time.time())))
        page.set_input_files(
            "#send-runs", [str(path) for path in sorted((folder / "runs").glob("*.run"))[:4]]
        )
        page.set_input_files("#send-qrels", str(folder / "qrels.txt"))
        page.set_input_files("#send-topics", str(folder / "topics.jsonl"))
        page.set_input_files("#send-texts", str(folder / "passages.jsonl"))
        page.eval_on_selector("form.files", "form => form.requestSubmit()")
        page.wait_for_selector("#pools")
        page.goto(f"{page.url.partition('?')[0]}?step=plan")
        page.wait_for_selector("#recommended", timeout=180_000)
        take(page, "dashboard-setup")
        people.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
