"""A server, a browser and its users for the tests of the judging page."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode

from playwright.sync_api import Browser, BrowserContext, Dialog, Page, Request, sync_playwright
from sqlalchemy import Connection, select, text

from duelpool.campaign import Campaign, Settings
from duelpool.records import Passage, Pool, Topic
from duelpool.store import open_store, schema
from duelpool.store.holdings import TestPair
from duelpool.web.server.app import make_app
from support.accessibility import name_templates
from support.serving import serving_in_thread

CHROMIUM = "DUELPOOL_CHROMIUM"
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
OFF_TOPIC = "Something else entirely"
PATIENCE = 60_000  # milliseconds; a loaded machine is slow, and a test that waits costs nothing


def chromium_path() -> str | None:
    """Return where the system's chromium is, or None: then it is the one that `make setup` had Playwright fetch."""
    installed = (shutil.which(name) for name in ("chromium-headless-shell", "chromium", "chromium-browser"))
    return os.environ.get(CHROMIUM) or next(filter(None, installed), None)


def wait_in(page: Page, condition: str, argument: Any = None) -> None:
    """Wait until a condition holds in a page; one that takes the argument is written as a function.

    Between two documents there is nothing to look into, so that any condition fails there; it is tried again.
    """
    whole = condition if condition.startswith(("last =>", "text =>", "key =>")) else f"() => {condition}"
    page.wait_for_function(
        f"given => {{ try {{ return ({whole})(given) }} catch (error) {{ return false }} }}",
        arg=argument,
        polling=25,
    )


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Start chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


class Site:
    """A server on this machine, and the campaigns that it shows."""

    def __init__(self, app: Any, address: str) -> None:
        self.app = app
        self.address = address
        self.store = app.state.store
        self._made = 0

    def campaign(
        self,
        *,
        topics: int = 8,
        items: int = 6,
        known: int = 30,
        steps: tuple[Any, ...] = (),
        texts: Callable[[str], Passage] | None = None,
        subjects: tuple[Topic, ...] = (),
        **settings: Any,
    ) -> Campaign:
        """Create a campaign; its test pairs are a good answer against an off-topic text."""
        self._made += 1
        asked = subjects or tuple(
            Topic(f"t{at}", f"What is known about matter {at}?") for at in range(topics)
        )
        pools = [Pool(topic.id, tuple(f"{topic.id}-{at}" for at in range(items))) for topic in asked]
        tests = [
            TestPair(f"k{at}", asked[at % len(asked)].id, f"good-{at}", f"off-{at}") for at in range(known)
        ]
        passages = [texts(item) if texts else plain(item) for pool in pools for item in pool.items]
        for at, pair in enumerate(tests):
            passages += [
                Passage(pair.better, f"This is known about matter {at}, and it is to the point."),
                Passage(pair.worse, f"{OFF_TOPIC}, number {at}, about nothing that was asked."),
            ]
        return Campaign.create(
            self.store,
            f"Campaign {self._made}",
            Settings(**{"strategy": "prefbest", "steps": steps, **settings}),
            topics=asked,
            pools=pools,
            passages=passages,
            test_pairs=tests,
        )

    def crowd(self, **settings: Any) -> Campaign:
        """Make a campaign for a crowd."""
        return self.campaign(
            **{"judges": "crowd", "completion_url": "https://panel.example/done", **settings}
        )

    def link(
        self,
        campaign: Campaign,
        assessor: str = "",
        kind: Literal["open", "personal", "manager"] = "open",
        **more: str,
    ) -> str:
        """Return a link into a campaign."""
        key = self.app.state.links.key(
            campaign.id, "personal" if assessor else kind, time.time(), assessor=assessor
        )
        return f"{self.address}/j/{campaign.id}?{urlencode({'key': key, **more})}"

    def rows(self, table: Any, campaign: Campaign) -> list[Any]:
        """Return a campaign's rows of a table."""
        return list(
            self.store.read(
                lambda connection: connection.execute(
                    select(table).where(table.c.campaign == campaign.id)
                ).all()
            )
        )

    def answers(self, campaign: Campaign) -> list[Any]:
        """Return the answers of a campaign in the order in which they were stored."""

        def work(connection: Connection) -> list[Any]:
            columns = schema.log.c
            return list(
                connection.execute(
                    select(schema.log, schema.question.c.place)
                    .join(schema.question, schema.question.c.id == columns.question)
                    .where(columns.campaign == campaign.id, columns.event == "judgment")
                    .order_by(text("log.rowid"))
                ).all()
            )

        return list(self.store.read(work))


def plain(item: str) -> Passage:
    """Return a passage of a few sentences."""
    return Passage(item, f"Text {item}. " + "What is known about this matter can be said in a sentence. " * 3)


@contextmanager
def open_site(folder: Path) -> Iterator[Site]:
    """Start a server in a thread."""
    open_store(folder / "campaigns.db", create=True).close()
    name_templates()
    app = make_app(folder / "campaigns.db", sweep_seconds=3600, uploads=folder / "uploads")
    with serving_in_thread(app) as port:
        app.state.url = f"http://127.0.0.1:{port}"
        yield Site(app, app.state.url)


@dataclass
class Person:
    """A user of the page, and the errors of their browser."""

    site: Site
    context: BrowserContext
    page: Page
    complaints: list[str] = field(default_factory=list)

    # ---- where they are

    def enter(self, link: str) -> None:
        self.page.goto(link)

    @property
    def state(self) -> str:
        return str(self.page.get_attribute("body", "data-state"))

    def wait_for_state(self, state: str) -> None:
        self.page.wait_for_selector(f'body[data-state="{state}"]')

    def data(self, name: str) -> str:
        return str(self.page.evaluate("name => document.documentElement.dataset[name] ?? ''", name))

    def wait_until(self, condition: str, argument: Any = None) -> None:
        """Wait until a condition holds in the page; one that takes the argument is written as a function."""
        wait_in(self.page, condition, argument)

    def wait_for_pair(self, after: str = "") -> str:
        """Wait until another pair is shown and can be answered; return its question's id and attempt."""
        self.wait_until(
            "last => ![undefined, '', last].includes(document.documentElement.dataset.open)", after
        )
        return self.data("shown")  # `open` may be empty again, when the page has learnt what is in view

    def sees_both(self) -> bool:
        """Wait until the page knows what is in view; return whether both passages have been seen."""
        self.wait_until("['some', 'all'].includes(document.documentElement.dataset.seen)")
        return self.data("seen") == "all"

    def wait_until_answerable(self) -> None:
        """Wait until both passages have been seen and the page has been still since."""
        self.wait_until(
            "(({ seen, open }) => seen === 'all' && ![undefined, ''].includes(open))"
            "(document.documentElement.dataset)"
        )

    def wait_until_saved(self) -> None:
        self.wait_until("document.documentElement.dataset.waiting === '0'")

    def said(self, text: str) -> None:
        """Wait until the page has announced this text."""
        self.wait_until("text => document.getElementById('said').textContent.includes(text)", text)

    # ---- what they do

    def tab_to(self, selector: str) -> None:
        """Go to an element with the Tab key alone."""
        for _ in range(80):
            self.page.keyboard.press("Tab")
            if self.page.evaluate("selector => document.activeElement.matches(selector)", selector):
                return
        raise AssertionError(f"The Tab key never reaches {selector}")

    def better_side(self) -> str:
        """Look at both texts, and choose the one that isn't off-topic."""
        return "right" if OFF_TOPIC in self.page.inner_text("#left .body") else "left"

    def worse_side(self) -> str:
        return "left" if self.better_side() == "right" else "right"

    def press(self, key: str, after: str) -> None:
        """Answer with a key, and wait for the next pair or the next page."""
        self.page.keyboard.press(key)
        self.leave(after)

    def leave(self, after: str) -> None:
        self.wait_until(
            "last => document.body && (document.body.dataset.state !== 'judging' "
            "|| ![undefined, last].includes(document.documentElement.dataset.shown))",
            after,
        )

    def judge_on(self, choose: Callable[["Person"], str], how: Callable[["Person", str], None]) -> int:
        """Judge until the page is another one; return how many were judged."""
        self.wait_for_state("judging")  # the step before it may still be shown
        judged, last = 0, ""
        while True:
            self.wait_until(
                "last => document.body && (!['judging', ''].includes(document.body.dataset.state) "
                "|| ![undefined, '', last].includes(document.documentElement.dataset.open))",
                last,
            )
            if self.state != "judging":
                return judged
            last = self.data("shown")
            how(self, choose(self))
            self.leave(last)
            judged += 1


def by_key(person: Person, side: str) -> None:
    person.page.keyboard.press("ArrowLeft" if side == "left" else "ArrowRight")


def by_mouse(person: Person, side: str) -> None:
    person.page.click(f'button.choice[value="{side}"]')


class People:
    """Creates users, each with a browser profile of their own."""

    def __init__(self, browser: Browser, site: Site) -> None:
        self._browser = browser
        self._site = site
        self._contexts: list[BrowserContext] = []
        self.everybody: list[Person] = []

    def __call__(self, width: int = 1280, height: int = 800, **options: Any) -> Person:
        context = self._browser.new_context(viewport={"width": width, "height": height}, **options)
        context.set_default_timeout(PATIENCE)
        self._contexts.append(context)
        return self.tab(context)

    def tab(self, context: BrowserContext) -> Person:
        """Open another tab of the same user."""
        page = context.new_page()
        person = Person(self._site, context, page)
        complaints = person.complaints

        def answer(dialog: Dialog) -> None:
            complaints.append(f"dialog: {dialog.message}")
            dialog.dismiss()

        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("dialog", answer)

        def note_request(request: Request) -> None:
            if "/csp-report" in request.url:
                complaints.append(f"policy: {request.post_data}")
            elif not request.url.startswith((self._site.address, "data:", "about:", "blob:", "file:")):
                complaints.append(f"request to another host: {request.url}")

        def refused(request: Request) -> None:
            """Remove requests that the policy of a sandboxed frame blocked."""
            complaint = f"request to another host: {request.url}"
            if request.failure == "csp" and request.frame != page.main_frame and complaint in complaints:
                complaints.remove(complaint)

        page.on("request", note_request)
        page.on("requestfailed", refused)
        self.everybody.append(person)
        return person

    def close(self) -> None:
        """Close all browser profiles; no browser may have logged an error."""
        for context in self._contexts:
            context.close()
        complaints = [each for person in self.everybody for each in person.complaints]
        assert not complaints, complaints
