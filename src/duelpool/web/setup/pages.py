"""The setup pages, in steps: upload files, say who judges, look at the plan, review it and create the campaign."""

import hashlib
import sys
from collections.abc import Collection
from contextlib import suppress
from pathlib import PurePath
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException
from starlette.responses import HTMLResponse, RedirectResponse, Response

from duelpool.access.accounts import has_manager
from duelpool.campaign.settings import SETTINGS, Settings
from duelpool.campaign.settings.settings import default_strategy
from duelpool.campaign.views.watch import NotFound
from duelpool.errors import BadParameter, BadRecord, DuelpoolError
from duelpool.report.charts import columns_chart
from duelpool.setup import choices
from duelpool.setup.recognition import recognise
from duelpool.setup.uploads import ARCHIVE, KINDS
from duelpool.simulation.cost import SECONDS_EACH, hours
from duelpool.store import StoreError
from duelpool.web.access.links import DAYS, ForgedLink
from duelpool.web.access.passes import may_open
from duelpool.web.access.sessions import session_of
from duelpool.web.i18n import catalogue
from duelpool.web.judging.callers import FIELDS_AT_MOST, campaigns_of, links_of, sent
from duelpool.web.manage.keys import write_cookie as write_manager
from duelpool.web.server.guard import CrossSite, status_of
from duelpool.web.server.inputs import refuse_unstorable
from duelpool.web.setup.api import ANY, check_file, check_files, create_campaign, receive, take_in
from duelpool.web.setup.drafts import SavedDraft
from duelpool.web.setup.keys import Entered, SetupCaller, open_setup_key, setting_up, write_cookie
from duelpool.web.setup.options import STEPS, Options, from_form
from duelpool.web.setup.schemas import CreatedCampaign, draft_detail, trouble_of
from duelpool.web.templating import render

router = APIRouter(include_in_schema=False)

FILES_AT_MOST = 1000
UNNAMED = "duelpool"  # the store of `duelpool serve` where none was named
SENT = (
    (
        "answers",
        "Answers of systems",
        "question, system and answer: JSON lines, CSV, TSV, Parquet, TREC RAG, promptfoo, Inspect; several",
        True,
    ),
    ("runs", "Runs", "topic Q0 docno rank score tag; several", True),
    ("qrels", "Grades", "topic 0 docno grade", False),
    ("topics", "Questions", "id<tab>text, JSON lines, or TREC topics", False),
    ("texts", "Texts", "id<tab>text, or JSON lines with id and text", False),
    (
        "tests",
        "Test pairs",
        "topic better worse; for answers, rows with question_id, better and worse",
        False,
    ),
    ("prefs", "Earlier preferences", "their items form the pools", False),
    ("groups", "Groups of runs", "run group", False),
    (
        ARCHIVE,
        "All files in one archive",
        "a zip of a folder with runs/, qrels..., topics..., passages...",
        False,
    ),
)
"""The files that can be uploaded: kind, name, format, and whether there may be several."""


NAMES = {kind: name for kind, name, _, _ in SENT}
LABELS = {"files": "Files", "judges": "Who judges", "plan": "Plan and cost", "review": "Review"}
"""The screens of set-up, each with its title."""


# ---- entering


@router.get("/")
def front(request: Request) -> Response:
    """Lead a manager to the dashboard, or to set-up; show others how to start where there is no campaign yet."""
    campaigns, links = campaigns_of(request), links_of(request)
    rows = campaigns.all()
    known = [row.id for row in rows if may_open(request, links, campaigns.store, row.id)]
    if known:
        several = len(known) > 1 and session_of(request, links, campaigns.store) is not None
        return RedirectResponse("/account" if several else f"/manage/{known[-1]}/overview", 303)
    with suppress(DuelpoolError):
        setting_up(request)
        return RedirectResponse("/setup", 303)
    if rows:
        raise NotFound("This page doesn't exist.", remedy="Open the link exactly as you received it.")
    return _render(request, "front", "No campaign yet")


@router.get("/setup")
def begin(request: Request, key: str = "") -> Response:
    """Enter by the setup link, and show the drafts."""
    if key:
        seconds = open_setup_key(links_of(request), key, campaigns_of(request).store)
        response = RedirectResponse("/setup", 303)
        write_cookie(response, request, key, seconds)
        return response
    caller = setting_up(request)
    under_way = [(each.id, each.options.name, len(each.uploads.listed())) for each in caller.drafts.all()]
    return _render(request, "start", "New campaign", caller, under_way=under_way, kinds=SENT)


# ---- showing


def _render(
    request: Request,
    template: str,
    title: str,
    caller: SetupCaller | None = None,
    status: int = 200,
    **context: Any,
) -> HTMLResponse:
    notice = ""
    if caller is not None and (given := request.query_params.get("notice", "")):
        try:
            notice = str(caller.links.read("notice", given))
        except ForgedLink:
            notice = ""
    whole = {
        "title": title,
        "store": campaigns_of(request).store.name,
        "form_key": caller.form_key if caller is not None else "",
        "notice": notice,
        "state": "setup",
        **context,
    }
    return render(f"setup/{template}.html", catalogue("en"), whole, status)


def _show(
    caller: SetupCaller, draft: SavedDraft, trouble: DuelpoolError | None = None, **more: Any
) -> HTMLResponse:
    shown = draft_detail(draft)
    pools, simulated = shown.pools, shown.simulated
    own = catalogue("en")
    campaigns = campaigns_of(caller.request).all()
    options = more.pop("options", None) or shown.options
    step = more.pop("step", "") or caller.request.query_params.get("step", "")
    sizes = [(each.size, each.topics) for each in pools.sizes] if pools else []
    by_name = {each.strategy: each for each in simulated.forecasts} if simulated else {}
    advice = simulated.recommendation.strategy if simulated and simulated.recommendation else None
    return _render(
        caller.request,
        "draft",
        "New campaign",
        caller,
        200 if trouble is None else status_of(trouble)[0],
        base=f"/setup/{draft.id}",
        step=step if step in STEPS else "files",
        steps=LABELS,
        names=NAMES,
        seen=_digest(shown.options),
        model_command=options.model_command(draft.store.name, options.name or "NAME"),
        draft=shown,
        options=options,
        consent=options.consent or own("consent_text"),
        guidelines=options.guidelines or own("guide_text"),
        **_choices(options, pools.goal if pools else options.goal or Settings().goal),
        campaigns=[(row.id, row.name) for row in campaigns],
        kinds=SENT,
        settings=SETTINGS,
        alarm=None if trouble is None else trouble_of(trouble),
        going=simulated is not None and simulated.state in {"waiting", "running"},
        forecasts=sorted(simulated.forecasts, key=lambda each: (-each.found, each.cost)) if simulated else [],
        chosen=by_name.get(pools.strategy) if pools else None,
        advised=by_name.get(advice) if pools and advice and advice != pools.strategy else None,
        chart=columns_chart("Number of topics by pool size", sizes, "topic", "items"),
        money=lambda amount: f"{amount / 100:,.2f} {Settings().currency}",
        hours=hours,
        seconds=SECONDS_EACH,
        usual_name=_usual_name(draft.store.name, [row.name for row in campaigns]),
        **more,
    )


def _choices(options: Options, goal: str) -> dict[str, Any]:
    """Return the choices of the plan, and what is chosen."""
    chosen, of_goal = choices.parts_of(options.goal)
    strategy, parameters = choices.parts_of(options.strategy)
    spend, of_spend = choices.parts_of(options.spend)
    return {
        "goals": choices.GOALS,
        "goal": chosen,
        "strategies": choices.strategies_of(goal, options.cap),
        "strategy": strategy,
        "parameters": parameters,
        "usual_strategy": default_strategy(goal),
        "spends": choices.SPENDS,
        "spend": spend,
        "compared": of_goal or of_spend,
    }


def _usual_name(store: str, taken: Collection[str]) -> str:
    """Return the name that `duelpool pool` would give a campaign; empty where the store has one of this name.

    That of the usual store says nothing to the assessors, who see it.
    """
    name = "" if "://" in store else PurePath(store).stem
    return "" if name in {*taken, UNNAMED} else name


def _digest(options: Options) -> str:
    """Return what changes with every option but the name: what a review has shown."""
    text = options.model_dump_json(exclude={"name"})
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


@router.get("/setup/{draft}")
def draft(caller: Entered, draft: str) -> Response:
    """Show a draft: its files, its pools, and what every strategy would cost and find."""
    return _show(caller, caller.drafts.of(draft))


# ---- changing


async def _form(caller: SetupCaller) -> FormData:
    """Return a form with its files; the guard has limited its size."""
    kind = caller.request.headers.get("content-type", "")
    if not kind.startswith("multipart/form-data"):
        raise BadRecord("Files are uploaded with a form.", remedy="Use the buttons of the page.")
    try:
        return await caller.request.form(max_files=FILES_AT_MOST, max_fields=FIELDS_AT_MOST)
    except (MultiPartException, ValueError, LookupError):  # LookupError: an unknown character set
        raise BadRecord("The request can't be read.", remedy="Use the buttons of the page.") from None


@router.post("/setup/{draft}/files")
async def send(caller: Entered, draft: str) -> Response:
    """Take files; if one can't be read, show the error and keep none of them."""
    form = await _form(caller)
    async with _closing(form):
        for name, value in form.multi_items():  # the character set of the form may be any
            refuse_unstorable({name: value if isinstance(value, str) else value.filename or ""}, "")
        await run_in_threadpool(caller.refuse_others, form)
        files = [
            (kind, each)
            for kind in (*KINDS, ARCHIVE, ANY)
            for each in form.getlist(kind)
            if isinstance(each, UploadFile) and each.filename
        ]
        return await run_in_threadpool(_taken, caller, draft, files)


class _closing:  # noqa: N801 (reads as a verb)
    """Closes a form's files at the end."""

    def __init__(self, form: FormData) -> None:
        self._form = form

    async def __aenter__(self) -> FormData:
        return self._form

    async def __aexit__(self, *_: object) -> None:
        await self._form.close()


def _taken(caller: SetupCaller, name: str, files: list[tuple[str, UploadFile]]) -> Response:
    fresh = name == "new"
    draft = caller.drafts.new() if fresh else caller.drafts.of(name)
    taken: list[tuple[str, str]] = []
    try:
        if not files:
            raise BadParameter("No file was chosen.", remedy="Choose answers, runs, grades or an archive.")
        for kind, each in files:
            file = each.filename or ""
            known = recognise(file, each.file) if kind == ANY else kind
            take = take_in if known == ARCHIVE else receive
            taken.append((take(draft, known, file, each.file), file))
        check_files(draft, [(kind, file) for kind, file in taken if kind != ARCHIVE])
    except StoreError:
        raise
    except DuelpoolError as error:
        if fresh:
            draft.clear()
            status = status_of(error)[0]
            return _render(
                caller.request,
                "start",
                "New campaign",
                caller,
                status,
                under_way=[],
                kinds=SENT,
                settings=SETTINGS,
                alarm=trouble_of(error),
            )
        for kind, file in taken:
            draft.uploads.remove(kind, file)
        return _show(caller, draft, error)
    return RedirectResponse(f"/setup/{draft.id}", 303)


async def _values(caller: SetupCaller) -> dict[str, Any]:
    values = dict(await sent(caller.request))
    await run_in_threadpool(caller.refuse_others, values)
    return values


@router.post("/setup/{draft}/remove")
async def remove(caller: Entered, draft: str) -> Response:
    """Remove a file."""
    values = await _values(caller)

    def work() -> Response:
        target = caller.drafts.of(draft)
        target.uploads.remove(str(values.get("kind", "")), str(values.get("name", "")))
        return RedirectResponse(f"/setup/{draft}", 303)

    return await run_in_threadpool(work)


@router.post("/setup/{draft}/kind")
async def change_kind(caller: Entered, draft: str) -> Response:
    """Say that a file is of another kind."""
    values = await _values(caller)

    def work() -> Response:
        target = caller.drafts.of(draft)
        kind, name, to = (str(values.get(key, "")) for key in ("kind", "name", "to"))
        try:
            check_file(target, kind, name, to)  # first: a file that it replaces must not be lost
            target.uploads.move(kind, name, to)
        except StoreError:
            raise
        except DuelpoolError as error:
            return _show(caller, target, error)
        return RedirectResponse(f"/setup/{draft}", 303)

    return await run_in_threadpool(work)


@router.post("/setup/{draft}/leave")
async def leave(caller: Entered, draft: str) -> Response:
    """Discard a draft."""
    await _values(caller)
    await run_in_threadpool(caller.drafts.of(draft).clear)
    return RedirectResponse("/setup", 303)


@router.post("/setup/{draft}/options")
async def options(caller: Entered, draft: str) -> Response:
    """Save the options and show the new dry run; or create the campaign, by the other button."""
    values = await _values(caller)
    return await run_in_threadpool(_decided, caller, draft, values)


def _beside(step: str, go: str) -> str:
    """Return the step that a button leads to."""
    order = list(STEPS)
    at = order.index(step) + {"next": 1, "back": -1}.get(go, 0)
    return order[max(0, min(at, len(order) - 1))]


def _decided(caller: SetupCaller, name: str, values: dict[str, Any]) -> Response:
    draft = caller.drafts.of(name)
    before = draft.options
    given = before
    values = (
        {**values, "strategy": values["choose"], "strategy_parameters": ""}
        if values.get("choose")
        else values
    )
    step = str(values.get("step", ""))
    step, go = step if step in STEPS else "review", str(values.get("go", "here"))
    try:
        try:
            given = Options(**from_form(values, step, before))
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"]))
            raise BadRecord(
                f"{field.replace('_', ' ')}: {first['msg']}.", remedy="Correct it and send it again."
            ) from None
        draft.save(given)
        if go != "make":
            return RedirectResponse(f"/setup/{name}?step={_beside(step, go)}", 303)
        if not given.name:
            raise BadRecord("The campaign has no name yet.", remedy="Enter a name, then create it.")
        if values.get("seen") != _digest(before):
            raise BadParameter(
                "The options have changed since this review, so the campaign was not created.",
                remedy="Check it again, then create it.",
            )
        created = create_campaign(caller, draft, given.name, values.get("paused") == "yes")
    except (StoreError, CrossSite):
        raise
    except DuelpoolError as error:
        return _show(caller, draft, error, options=given, step=step)
    told = [created.sentence]
    told += [f"The language model judges with: {created.model_command}"] if created.model_command else []
    notice = caller.links.sign("notice", " ".join(told))
    _print_link(caller, created)
    response = RedirectResponse(f"/manage/{created.id}/overview?{urlencode({'notice': notice})}", 303)
    write_manager(response, caller.request, created.id, created.key, DAYS * 86400.0)
    return response


def _print_link(caller: SetupCaller, created: CreatedCampaign) -> None:
    """Print the link to a new dashboard, as `duelpool serve` prints those of the campaigns it finds."""
    root = str(caller.request.app.state.url).rstrip("/")
    if not root:
        return
    has_accounts = campaigns_of(caller.request).store.read(has_manager)
    path = f"/login?next=/manage/{created.id}" if has_accounts else created.manage
    with suppress(OSError, ValueError):  # a terminal that has gone
        sys.stdout.write(f"Campaign {created.name}\n  to manage:     {root}{path}\n")
        sys.stdout.flush()
