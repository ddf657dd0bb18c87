"""The settings page: links to send, what may change with what that does, and what stays and why."""

import json
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from duelpool.campaign.settings.changes import EFFECTS, FIXED
from duelpool.campaign.settings.welcome import STEPS
from duelpool.errors import BadParameter, DuelpoolError
from duelpool.panels import PANELS
from duelpool.store import StoreError
from duelpool.web.access.links import address
from duelpool.web.i18n import words
from duelpool.web.manage import actions
from duelpool.web.manage.callers import Changing, Managing, Viewing
from duelpool.web.manage.pages import show
from duelpool.web.manage.schemas import ChangeSettings
from duelpool.web.server.guard import status_of

router = APIRouter(include_in_schema=False)

TEXTS = ("consent", "guidelines")
LINES = (
    *("completion_code", "completion_url", "identity_parameter", "currency"),
    *("panel_study", "failed_code", "stopped_code", "no_work_code"),
)
CHOICES = ("panel", "flips")
NUMBERS = ("reward", "fee_percent", "budget", "assignments_each", "lease_seconds")
TICKED = ("feedback", "context", "ties", "same")
WRITTEN = ("check", "practice")  # lists of records, as JSON


@router.get("/manage/{campaign}/settings")
def settings(found: Viewing) -> Response:
    """Show the settings."""
    return _page(found)


def _page(
    found: Managing, trouble: DuelpoolError | None = None, typed: dict[str, Any] | None = None
) -> HTMLResponse:
    campaign = found.desk.campaign
    now = campaign.read(lambda tx: tx.now)
    root = str(found.request.base_url).rstrip("/")
    own = words("en")
    kept = json.loads(json.dumps(campaign.settings.as_json()))
    values = {**kept, **(typed or {})}
    page = show(
        found,
        "settings",
        "settings",
        "Settings",
        settings=values,
        fixed={name: (kept[name], why) for name, why in FIXED.items() if name in kept},
        effects=EFFECTS,
        steps=STEPS,
        panels=[("", "none"), *((name, _panel_name(name)) for name in PANELS)],
        panel=kept["panel"],
        root=root,
        texts={
            "consent": values["consent"] or own("consent_text"),
            "guidelines": values["guidelines"] or own("guide_text"),
        },
        written={
            name: values[name]
            if isinstance(values[name], str)
            else json.dumps(values[name], ensure_ascii=False, indent=1)
            for name in WRITTEN
        },
        runs=sorted(found.desk.aliases().values()) if found.blind else found.desk.leaderboard.runs,
        preview=address("", found.id, found.links.key(found.id, "manager", now, days=1), preview="1")
        if found.may_manage
        else "",
        assessors=address(root, found.id, found.links.key(found.id, "open", now)) if found.may_manage else "",
        may_manage=found.may_manage,
        trouble=trouble,
    )
    if trouble is not None:
        page.status_code = status_of(trouble)[0]
    return page


def _panel_name(name: str) -> str:
    return f"{name}, closed: for old data" if PANELS[name].frozen else name


@router.post("/manage/{campaign}/settings")
def change(found: Changing) -> Response:
    """Say what a change of settings does, and after a second click make it."""
    sure = found.values.get("sure") == "yes"
    try:
        wanted = _sent_before(found) if sure else _differing(found, _wanted(found.values))
        if not wanted:
            raise BadParameter("No setting has changed.", remedy="Change a setting, then review it.")
        told = actions.change_settings(
            found.desk, ChangeSettings(settings=wanted, preview=not sure), found.audit_entry
        )
    except StoreError:
        raise
    except DuelpoolError as error:
        return _page(found, error, {} if sure else _typed(found.values))
    if sure:
        names = ", ".join(each.name for each in told.changes) or "nothing"
        notice = found.links.sign("notice", f"Changed: {names}.")
        return found.back(f"settings?{urlencode({'notice': notice})}")
    return show(found, "change", "settings", "Change?", told=told, values=json.dumps(wanted))


def _sent_before(found: Changing) -> dict[str, Any]:
    try:
        values = json.loads(str(found.values.get("values", "")))
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise BadParameter("The request can't be read.", remedy="Use the buttons of the page.")
    return values


def _differing(found: Managing, wanted: dict[str, Any]) -> dict[str, Any]:
    """Return what differs from the settings as they are; texts that are the page's own are left to the page."""
    present = json.loads(json.dumps(found.desk.campaign.settings.as_json()))
    for name, own in (("consent", "consent_text"), ("guidelines", "guide_text")):
        if name in wanted and wanted[name].split() == words("en")(own).split():
            wanted[name] = ""
    return {name: value for name, value in wanted.items() if value != present[name]}


def _typed(values: Any) -> dict[str, Any]:
    """Return what somebody typed, as it was typed: a form that is refused shows it again."""
    found: dict[str, Any] = {
        name: _writable(values[name])
        for name in (*TEXTS, *LINES, *CHOICES, *NUMBERS, *WRITTEN)
        if name in values
    }
    if "languages" in values:
        found["languages"] = _writable(values["languages"]).replace(",", " ").split()
    return found | _boxes(values)


def _writable(value: Any) -> str:
    return str(value).encode(errors="replace").decode()


def _boxes(values: Any) -> dict[str, Any]:
    """Return what is ticked; a box that isn't ticked isn't sent."""
    if "boxes" not in values:
        return {}
    ticked: dict[str, Any] = {name: values.get(name) == "yes" for name in TICKED}
    return {**ticked, "steps": [step for step in STEPS if values.get(f"step-{step}") == "yes"]}


def _wanted(values: Any) -> dict[str, Any]:
    """Return what the form sent as settings."""
    found: dict[str, Any] = {}
    for name in (*TEXTS, *LINES, *CHOICES):
        if name in values:
            text = str(values[name]).replace("\r\n", "\n")
            found[name] = text if name in TEXTS else text.strip()
    for name in NUMBERS:
        if name in values:
            found[name] = _number(name, str(values[name]).strip())
    if "languages" in values:
        found["languages"] = [each for each in str(values["languages"]).replace(",", " ").split() if each]
    for name in WRITTEN:
        if name in values:
            try:
                found[name] = json.loads(str(values[name]).strip() or "[]")
            except (ValueError, RecursionError) as error:
                raise BadParameter(
                    f"'{name}' is not valid JSON: {error}.", remedy="Correct it, or leave it empty."
                ) from None
    return found | _boxes(values)


def _number(name: str, text: str) -> float | int | None:
    if not text and name == "budget":
        return None
    try:
        return float(text) if name == "lease_seconds" else int(text)
    except ValueError:
        raise BadParameter(f"'{name}' is a number, not '{text[:40]}'.", remedy="Enter a number.") from None
