"""Webhooks on the settings page: adding, testing and removing them, and sending again what has failed."""

from urllib.parse import urlencode

from fastapi import APIRouter
from starlette.responses import Response

from duelpool.campaign.events import EVENTS
from duelpool.errors import BadParameter, DuelpoolError
from duelpool.store import StoreError
from duelpool.web.manage.callers import Changing, ManageCaller
from duelpool.web.manage.settings import settings_page
from duelpool.webhooks import setting_up

router = APIRouter(include_in_schema=False)


@router.post("/manage/{campaign}/webhooks")
def add(caller: Changing) -> Response:
    """Add a webhook, and show its secret, this once."""
    values = caller.values
    only = [each for each in EVENTS if values.get(f"event-{each}") == "yes"]
    try:
        if not only:
            raise BadParameter("No event is chosen.", remedy="Choose at least one.")
        about = ", ".join(only)
        added = setting_up.add(
            caller.dashboard.campaign,
            str(values.get("url", "")).strip(),
            only=() if len(only) == len(EVENTS) else only,
            body=str(values.get("body", "json")),
            also=caller.audit_entry("add a webhook", f"events: {about}"),
        )
    except StoreError:
        raise
    except DuelpoolError as error:
        return settings_page(caller, error)
    return settings_page(caller, added=added)


@router.post("/manage/{campaign}/webhooks/{webhook}/{step}")
def change(caller: Changing, webhook: str, step: str) -> Response:
    """Test or remove a webhook, or send again what has failed."""
    try:
        notice = _done(caller, webhook, step)
    except StoreError:
        raise
    except DuelpoolError as error:
        return settings_page(caller, error)
    return caller.back(f"settings?{urlencode({'notice': caller.links.sign('notice', notice)})}")


def _done(caller: ManageCaller, webhook: str, step: str) -> str:
    campaign = caller.dashboard.campaign
    if step == "test":
        outcome = setting_up.send_test(campaign, webhook)
        return (
            f"The test arrived: {outcome.status}."
            if outcome.arrived
            else f"The test didn't arrive. {outcome.said}"
        )
    if step == "resend":
        entry = caller.audit_entry("send failed events again", f"webhook: {webhook}")
        number = setting_up.resend(campaign, webhook, also=entry)
        return f"Events that are sent again: {number}."
    if step == "remove":
        entry = caller.audit_entry("remove a webhook", f"webhook: {webhook}")
        return f"Removed: {setting_up.remove(campaign, webhook, also=entry)}."
    raise BadParameter("There is no such step.", remedy="Use the buttons of the page.")
