"""Every page that people see, opened on the realistic campaigns, and what is wrong with its layout at some width.

A new page gets a row in `PAGES`; `make pictures` and tests/web/test_layout.py look at all of them.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import BrowserContext, Page
from typer.testing import CliRunner

from duelpool.access import accounts
from duelpool.campaign import Campaign
from duelpool.campaign.views.tally import pairs_of
from duelpool.cli import app
from duelpool.errors import BadParameter
from duelpool.files import Run
from duelpool.leaderboard.scoring import runs_of
from duelpool.web.setup.keys import setup_address, setup_key
from duelpool.webhooks import setting_up
from support.browsing import wait_in
from support.managed import DASHBOARD, key_for
from support.realistic import PASSAGES, RealisticSite, questions, worker_names

PASSWORD = "correct horse battery"


@dataclass(frozen=True, slots=True)
class Tour:
    """Where the pages are: a server with the realistic campaigns, and a folder for files that are pages."""

    realistic: RealisticSite
    folder: Path

    @property
    def address(self) -> str:
        """The server's address."""
        return self.realistic.site.address

    def base(self, campaign: Campaign) -> str:
        """Return the dashboard of a campaign."""
        return f"{self.address}/manage/{campaign.id}"

    def sign_in(self, context: BrowserContext) -> None:
        """Let a browser manage both campaigns."""
        page = context.new_page()
        for campaign in (self.realistic.passages, self.realistic.systems):
            page.goto(f"{self.base(campaign)}?key={key_for(self.realistic.site.app, campaign.id)}")
            page.wait_for_selector("body[data-state=manage]")  # the log is read for the first time
        page.close()

    def topic(self) -> str:
        """Return the topic with the most items."""
        return max(
            (topic.id for topic in questions(53)),
            key=lambda name: len(self.realistic.passages.live.items(name)),
        )

    def file(self, name: str, *words: str) -> str:
        """Run a command that writes a page, once, and return the page's address."""
        path = self.folder / name
        if not path.exists():
            done = CliRunner().invoke(app, [each.format(path=path) for each in words])
            if not path.exists():
                raise RuntimeError(done.output)
        return path.as_uri()

    def runs(self) -> Path:
        """Write the first runs as files, and a broken one, once; return their folder."""
        folder = self.folder / "runs"
        if not folder.exists():
            folder.mkdir()
            for run in runs_of(self.realistic.passages)[:8]:
                (folder / f"{run.name}.run").write_text(_lines(run), encoding="utf-8")
            broken = _lines(runs_of(self.realistic.passages)[8]).splitlines()
            broken[3], broken[5] = broken[2], "a line of five fields"
            (folder / "p_broken_submission_of_a_team.run").write_text("\n".join(broken), encoding="utf-8")
        return folder


def _lines(run: Run) -> str:
    return "".join(
        f"{topic} Q0 {item} {rank} {score} {run.name}\n"
        for topic, scores in run.to_dict().items()
        for rank, (item, score) in enumerate(sorted(scores.items(), key=lambda each: -each[1]), 1)
    )


Opener = Callable[[Tour, Page], None]


def _of_passages(path: str) -> Opener:
    return lambda tour, page: _go(page, f"{tour.base(tour.realistic.passages)}/{path}")


def _of_systems(path: str) -> Opener:
    return lambda tour, page: _go(page, f"{tour.base(tour.realistic.systems)}/{path}")


def _go(page: Page, address: str) -> None:
    page.goto(address)
    with suppress(Exception):  # earlier points of a history are worked out in the background
        page.wait_for_selector("#looking-back, [data-again]", state="detached", timeout=20_000)


def _agreement(tour: Tour, page: Page) -> None:
    _of_passages("agreement")(tour, page)
    page.wait_for_selector("#verdict strong")  # also where the page was open before the figures were there


def _topic(tour: Tour, page: Page) -> None:
    _go(page, f"{tour.base(tour.realistic.passages)}/topic?topic={tour.topic()}")


def _pair(tour: Tour, page: Page) -> None:
    """Open the pair with the most votes."""
    state = tour.realistic.passages.live.state(tour.topic())
    most = max(pairs_of(state, tour.topic()), key=lambda pair: pair.votes)
    assert most.votes > 1
    _go(page, f"{tour.base(tour.realistic.passages)}/pair?topic={most.topic}&a={most.a}&b={most.b}")


def _assessor(tour: Tour, page: Page) -> None:
    _go(page, f"{tour.base(tour.realistic.passages)}/assessor?assessor={worker_names(1)[0]}")


def _confirm(tour: Tour, page: Page) -> None:
    _assessor(tour, page)
    page.fill("input[name=reason]", "Failed most of the test pairs of the last three assignments.")
    page.click("form.step button")
    page.wait_for_selector("#sure")


def _settings(tour: Tour, page: Page) -> None:
    campaign = tour.realistic.passages
    if not campaign.read(setting_up.webhooks):
        setting_up.add(
            campaign, "https://1.1.1.1/services/T01/B02/long-and-secret"
        )  # nothing happens: it isn't called
    _of_passages("settings")(tour, page)


def _judging(tour: Tour, page: Page) -> None:
    page.goto(tour.realistic.site.link(tour.realistic.passages, "a-visitor"))
    wait_in(page, "document.documentElement.dataset.open")


def _grading(tour: Tour, page: Page) -> None:
    page.goto(tour.realistic.site.link(tour.realistic.grades, "a-visitor"))
    page.click('button[name="agree"]')
    page.wait_for_selector("body[data-state=guide]")


def _consent(tour: Tour, page: Page) -> None:
    page.goto(tour.realistic.site.link(tour.realistic.grades, "another-visitor"))


def _setup(tour: Tour, page: Page) -> None:
    page.goto(setup_address(tour.address, setup_key(tour.realistic.site.app.state.links, time.time())))


def _draft(tour: Tour, page: Page) -> None:
    _setup(tour, page)
    topics = "".join(f"{topic.id}\t{topic.text}\n" for topic in questions(53))
    (tour.folder / "topics.tsv").write_text(topics, encoding="utf-8")
    page.set_input_files(
        "#send-runs", [str(path) for path in sorted(tour.runs().glob("*.run")) if "broken" not in path.name]
    )
    page.set_input_files("#send-topics", str(tour.folder / "topics.tsv"))
    page.eval_on_selector("form.files", "form => form.requestSubmit()")
    page.wait_for_selector("#pools")


def _step(name: str) -> Callable[[Tour, Page], None]:
    def go(tour: Tour, page: Page) -> None:
        _draft(tour, page)
        page.goto(f"{page.url.partition('?')[0]}?step={name}")

    return go


def _account(tour: Tour, page: Page) -> None:
    site = tour.realistic.site
    with suppress(BadParameter):  # it is there already
        site.store.write(
            lambda connection, now: accounts.add(
                connection, "anna", PASSWORD, "viewer", now, campaign=tour.realistic.passages.id
            )
        )
    page.context.clear_cookies()
    page.goto(f"{tour.address}/login")
    page.fill("#name", "anna")
    page.fill("#password", PASSWORD)
    page.click("main button")
    page.wait_for_selector("body[data-state=account]")


def _report(tour: Tour, page: Page) -> None:
    page.goto(
        tour.file("report.html", "report", str(tour.realistic.store), "--campaign", PASSAGES, "-o", "{path}")
    )


def _sheet(tour: Tour, page: Page) -> None:
    runs = tour.runs()
    qrels = tour.folder / "qrels.txt"
    if not qrels.exists():
        rows = [
            f"{topic.id} 0 {item} {at % 4}\n"
            for topic in questions(53)
            for at, item in enumerate(tour.realistic.passages.live.items(topic.id))
        ]
        qrels.write_text("".join(rows), encoding="utf-8")
        good = [str(path) for path in sorted(runs.glob("*.run")) if "broken" not in path.name]
        done = CliRunner().invoke(
            app, ["sheets", str(qrels), *good, "-m", "nDCG@10", "-o", str(tour.folder / "sheets")]
        )
        assert done.exit_code == 0, done.output
    page.goto(sorted((tour.folder / "sheets").glob("*.html"))[0].as_uri())


def _findings(tour: Tour, page: Page) -> None:
    runs = str(tour.runs())
    page.goto(tour.file("findings.html", "check-runs", runs, "--tag-length", "20", "--page", "{path}"))


PAGES: dict[str, Opener] = {
    **{name: _of_passages(name) for name in DASHBOARD},
    "agreement": _agreement,
    "leaderboard-baseline": _of_passages("leaderboard?baseline=bm25base_p&tag=health"),
    "topic": _topic,
    "pair": _pair,
    "assessor": _assessor,
    "confirm": _confirm,
    "settings": _settings,
    "systems": _of_systems("leaderboard"),
    **{f"systems-{name}": _of_systems(name) for name in ("overview", "topics", "pairs", "log")},
    "systems-topic": _of_systems("topic?topic=prompt-00"),
    "not-found": lambda tour, page: _go(page, f"{tour.address}/"),
    "first-account": _of_passages("account"),
    "setup": _setup,
    "draft": _draft,
    **{f"draft-{name}": _step(name) for name in ("judges", "plan", "review")},
    "judging": _judging,
    "consent": _consent,
    "guide": _grading,
    "report": _report,
    "sheet": _sheet,
    "findings": _findings,
    "login": lambda tour, page: _go(page, f"{tour.address}/login"),
    "account": _account,
}
"""Every page by the name of its picture; `account` signs in as somebody else, and comes last."""

MEASURE = (Path(__file__).parent / "layout.js").read_text(encoding="utf-8")
WIDTHS = (320, 390, 768, 1280, 1920)
PHONE, BEFORE_CONTENT = 390, 120
MAY_SCROLL = ".matrix-box, pre, code, textarea"
"""What may scroll sideways: a win matrix, which is as wide as it has items; code, whose lines must not break; and the
text that somebody writes."""


def faults_of(page: Page) -> dict[str, list[str]]:
    """Measure the page at every width, with all that folds open; return what is wrong, by kind."""
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    wrong: dict[str, list[str]] = {}
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        page.evaluate("scrollTo(0, 0)")
        for each in page.evaluate(MEASURE, [MAY_SCROLL, BEFORE_CONTENT if width == PHONE else 0]):
            wrong.setdefault(each.partition(":")[0], []).append(f"{width} px: {each}")
    return wrong
