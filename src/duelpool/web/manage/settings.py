"""The settings page: links to send, what may change with what that does, and what stays and why."""

import json
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from duelpool.campaign.events import EVENTS
from duelpool.campaign.settings import CHANGEABLE, FIXED, SETTINGS
from duelpool.campaign.settings.declaration import SettingField
from duelpool.errors import BadParameter, DuelpoolError
from duelpool.store import StoreError
from duelpool.web.access.links import address
from duelpool.web.i18n import catalogue
from duelpool.web.manage import actions
from duelpool.web.manage.callers import Changing, ManageCaller, Viewing
from duelpool.web.manage.schemas import ChangeSettings
from duelpool.web.manage.showing import show
from duelpool.web.server.guard import status_of
from duelpool.web.server.inputs import refuse_unstorable
from duelpool.webhooks.setting_up import Added, undelivered, webhooks

router = APIRouter(include_in_schema=False)

DEFAULT_TEXTS = {"consent": "consent_text", "guidelines": "guide_text"}  # by their keys in the catalogue


@router.get("/manage/{campaign}/settings")
def settings(caller: Viewing) -> Response:
    """Show the settings."""
    return settings_page(caller)


def settings_page(
    caller: ManageCaller,
    trouble: DuelpoolError | None = None,
    typed: dict[str, Any] | None = None,
    added: Added | None = None,
) -> HTMLResponse:
    """Return the page, with what was refused and what was typed, or with the webhook that was added."""
    campaign = caller.dashboard.campaign
    now = campaign.read(lambda tx: tx.now)
    root = str(caller.request.app.state.url).rstrip("/")  # never the Host header: anyone may send any
    present = campaign.settings.as_json()
    page = show(
        caller,
        "settings",
        "settings",
        "Settings",
        sections=form_sections({**present, **(typed or {})}),
        fixed=[(SETTINGS[name], shown_number(present[name])) for name in FIXED],
        panel=present["panel"],
        root=root,
        runs=sorted(caller.dashboard.aliases().values())
        if caller.blind
        else caller.dashboard.leaderboard.runs,
        preview=address("", caller.id, caller.links.key(caller.id, "manager", now, days=1), preview="1")
        if caller.may_manage
        else "",
        assessors=address(root, caller.id, caller.links.key(caller.id, "open", now))
        if caller.may_manage
        else "",
        may_manage=caller.may_manage,
        trouble=trouble,
        refused=campaign.refused_settings,
        held=campaign.held_back(),
        webhooks=campaign.read(webhooks),
        undelivered=campaign.read(undelivered),
        events=EVENTS,
        added=added,
    )
    if trouble is not None:
        page.status_code = status_of(trouble)[0]
    return page


def form_sections(values: dict[str, Any]) -> dict[str, list[tuple[SettingField, Any]]]:
    """Return the form's sections: the changeable settings, each with the value that its input shows."""
    sections: dict[str, list[tuple[SettingField, Any]]] = {}
    for name in CHANGEABLE:
        field = SETTINGS[name]
        sections.setdefault(field.about.section, []).append((field, _input_value(field, values[name])))
    return sections


def _input_value(field: SettingField, value: Any) -> Any:
    if field.name in DEFAULT_TEXTS:
        return value or catalogue("en")(DEFAULT_TEXTS[field.name])
    if field.input == "records" and not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, indent=1)
    if field.input == "list" and not isinstance(value, str):
        return ", ".join(value)
    return "" if value is None else shown_number(value)


def shown_number(value: Any) -> Any:
    """Return a setting's value as it is typed: 1800, not 1800.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


@router.post("/manage/{campaign}/settings")
def change(caller: Changing) -> Response:
    """Say what a change of settings does, and after a second click make it."""
    sure = caller.values.get("sure") == "yes"
    try:
        wanted = _sent_before(caller) if sure else _differing(caller, _wanted(caller.values))
        if not wanted:
            raise BadParameter("No setting has changed.", remedy="Change a setting, then review it.")
        told = actions.change_settings(
            caller.dashboard, ChangeSettings(settings=wanted, preview=not sure), caller.audit_entry
        )
    except StoreError:
        raise
    except DuelpoolError as error:
        return settings_page(caller, error, {} if sure else _typed(caller.values))
    if sure:
        names = ", ".join(each.name for each in told.changes) or "nothing"
        notice = caller.links.sign("notice", f"Changed: {names}.")
        return caller.back(f"settings?{urlencode({'notice': notice})}")
    return show(
        caller, "change", "settings", "Change?", told=told, values=json.dumps(wanted), settings=SETTINGS
    )


def _sent_before(caller: Changing) -> dict[str, Any]:
    try:
        values = json.loads(str(caller.values.get("values", "")))
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise BadParameter("The request can't be read.", remedy="Use the buttons of the page.")
    refuse_unstorable(values, "")
    return values


def _differing(caller: ManageCaller, wanted: dict[str, Any]) -> dict[str, Any]:
    """Return the values that differ from the present settings; an unchanged default text stays the default."""
    present = caller.dashboard.campaign.settings.as_json()
    for name, key in DEFAULT_TEXTS.items():
        if name in wanted and wanted[name].split() == catalogue("en")(key).split():
            wanted[name] = ""
    return {name: value for name, value in wanted.items() if value != present[name]}


def _typed(values: Any) -> dict[str, Any]:
    """Return the inputs as they were typed: a form that is refused shows them again."""
    typed: dict[str, Any] = {
        name: str(values[name]).encode(errors="replace").decode() for name in _without_boxes(values)
    }
    return typed | _ticks(values)


def _without_boxes(values: Any) -> list[str]:
    """Return the settings that a form sent by inputs other than boxes to tick."""
    return [name for name in CHANGEABLE if name in values and SETTINGS[name].input not in {"tick", "ticks"}]


def _ticks(values: Any) -> dict[str, Any]:
    """Return the settings that are ticked; a browser doesn't send a box without a tick."""
    if "boxes" not in values:
        return {}
    ticks: dict[str, Any] = {}
    for name in CHANGEABLE:
        field = SETTINGS[name]
        if field.input == "tick":
            ticks[name] = values.get(name) == "yes"
        elif field.input == "ticks":
            ticks[name] = [each for each in field.choices if values.get(f"{name}-{each}") == "yes"]
    return ticks


def _wanted(values: Any) -> dict[str, Any]:
    """Return what the form sent as settings."""
    sent = {
        name: _read(SETTINGS[name], str(values[name]).replace("\r\n", "\n"))
        for name in _without_boxes(values)
    }
    return sent | _ticks(values)


def _read(field: SettingField, text: str) -> Any:
    """Return the value of an input; a text that is no number is left as it is, for the settings to refuse."""
    if field.input == "text":
        return text
    text = text.strip()
    if field.optional and not text:
        return None
    if field.input == "number":
        try:
            return int(text) if field.whole else float(text)
        except ValueError:
            return text
    if field.input == "list":
        return text.replace(",", " ").split()
    if field.input == "records":
        try:
            records = json.loads(text or "[]")
        except (ValueError, RecursionError) as error:
            raise BadParameter(
                f"'{field.name}' is not valid JSON: {error}.", remedy="Correct it, or leave it empty."
            ) from None
        refuse_unstorable(records, field.name)
        return records
    return text
