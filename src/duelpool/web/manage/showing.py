"""How every page of the dashboard is shown: with the campaign's line, the menu, and links that keep their query."""

from typing import Any
from urllib.parse import urlencode

from starlette.responses import HTMLResponse

from duelpool.access.accounts import has_manager
from duelpool.web.access.links import ForgedLink
from duelpool.web.i18n import catalogue
from duelpool.web.manage.callers import ManageCaller
from duelpool.web.manage.schemas import Head, head_of
from duelpool.web.templating import render

ROWS = 50
PAGES = (
    ("overview", "Overview"),
    ("leaderboard", "Leaderboard"),
    ("topics", "Topics"),
    ("pairs", "Pairs"),
    ("assessors", "Assessors"),
    ("agreement", "Agreement"),
    ("money", "Money"),
    ("llm", "LLM judges"),
    ("log", "Log"),
    ("export", "Export"),
    ("settings", "Settings"),
)


def show(caller: ManageCaller, template: str, here: str, title: str, **context: Any) -> HTMLResponse:
    """Return a page of the dashboard, with what all of its pages show."""
    head = head_of(caller.id, caller.dashboard.watch.look())
    notice = ""
    if given := caller.request.query_params.get("notice", ""):
        try:
            notice = str(caller.links.read("notice", given))
        except ForgedLink:
            notice = ""
    return render(
        f"manage/{template}.html",
        catalogue("en"),
        {
            "base": caller.base,
            "api": f"/api/v1/campaigns/{caller.id}",
            "here": here,
            "title": title,
            "pages": [
                page for page in PAGES if page[0] != "money" or here == "money" or _is_paid(caller, head)
            ],
            "head": head,
            "form_key": caller.form_key,
            "step_key": caller.form_key if caller.may_manage else "",
            "who": caller.access.who,
            "first": caller.access.who == "link" and not caller.dashboard.campaign.store.read(has_manager),
            "blind": caller.blind,
            "notice": notice,
            "money": lambda amount: amount_of(amount, head.money.currency),
            "link": _link(caller),
            "when": _when,
            "store": caller.dashboard.campaign.store.name,
            "state": "manage",
            "judge_here": lambda: caller.judge_here,
            **context,
        },
    )


def _is_paid(caller: ManageCaller, head: Head) -> bool:
    """Return whether anybody is paid, or was: without pay the page of the money has nothing to show."""
    settings, money = caller.dashboard.campaign.settings, head.money
    return settings.judges == "crowd" or money.budget is not None or bool(money.spent or money.committed)


def _link(caller: ManageCaller) -> Any:
    """Return a function that makes addresses of the dashboard from a page and its query."""

    def made(page: str, **query: Any) -> str:
        kept = {name: value for name, value in query.items() if value not in {None, ""}}
        return f"{caller.base}/{page}" + (f"?{urlencode(kept)}" if kept else "")

    return made


def amount_of(amount: float | None, currency: str) -> str:
    """Return an amount in minor units with its currency."""
    return "–" if amount is None else f"{amount / 100:,.2f} {currency}"


def _when(time: str) -> str:
    return time[:16].replace("T", " ")


def asked_for(caller: ManageCaller, name: str, other: str = "") -> str:
    """Return a value of the query."""
    return caller.request.query_params.get(name, other)[:2000]
