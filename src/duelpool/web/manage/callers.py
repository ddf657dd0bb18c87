"""Who manages here, and what they brought: every request of dashboard and API begins here."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from starlette.responses import RedirectResponse

from duelpool.access import audit_log
from duelpool.campaign.campaign import Also
from duelpool.web.access.links import Links
from duelpool.web.access.passes import need, pass_of
from duelpool.web.judging.callers import campaigns_of, links_of, sent
from duelpool.web.manage.dashboard import Dashboard, Dashboards
from duelpool.web.manage.keys import Pass, form_key, is_form_key
from duelpool.web.server.guard import TooLarge, refuse_other_sites

BLIND = "duelpool_blind"

_BEARER = HTTPBearer(auto_error=False, description="A manager's key: `duelpool link STORE --manage --json`.")


@dataclass(frozen=True, slots=True)
class ManageCaller:
    """A request of somebody who may manage a campaign."""

    request: Request
    dashboard: Dashboard
    links: Links
    access: Pass
    values: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The campaign's id."""
        return self.dashboard.campaign.id

    @property
    def base(self) -> str:
        """Where the campaign's dashboard is."""
        return f"/manage/{self.id}"

    @property
    def form_key(self) -> str:
        """What the dashboard's forms carry."""
        return form_key(self.links, self.id)

    @property
    def blind(self) -> bool:
        """Whether the names of systems are hidden in this browser."""
        return self.request.cookies.get(BLIND) == "1"

    @property
    def may_manage(self) -> bool:
        """Whether the steps of a manager are this person's."""
        return "manage" in self.access.scopes

    def audit_entry(self, action: str, about: str = "") -> Also:
        """Return the entry of the audit log for what this person is about to do."""
        return audit_log.entry(self.access.who, action, about, campaign=self.id)

    def back(self, path: str) -> RedirectResponse:
        """Return the way to another page of the dashboard."""
        return RedirectResponse(f"{self.base}/{path}", 303)


def dashboards_of(request: Request) -> Dashboards:
    """Return the dashboards of the server."""
    dashboards: Dashboards = request.app.state.dashboards
    return dashboards


def _known(request: Request, campaign: str) -> ManageCaller:
    """Say who this is, whatever they may do."""
    campaigns = campaigns_of(request)
    campaigns.flow(campaign)
    links = links_of(request)
    shown = pass_of(request, links, campaigns.store, campaign)
    return ManageCaller(request, dashboards_of(request).of(campaign), links, shown, {})


def managing(request: Request, campaign: str) -> ManageCaller:
    """Say who wants to look, or refuse."""
    caller = _known(request, campaign)
    need(caller.access, "read")
    return caller


def _documented(request: Request, campaign: str, bearer: Annotated[object, Depends(_BEARER)]) -> ManageCaller:
    """Say who wants to look, with the door named in the API's description."""
    return managing(request, campaign)


def _stepping(caller: Annotated[ManageCaller, Depends(_documented)]) -> ManageCaller:
    """Say what program wants to change something; a browser must come from our own pages."""
    if caller.request.scope.get("too_large"):
        raise TooLarge("The request is too large.", remedy="Send less at once.")
    need(caller.access, "manage")
    if caller.access.door == "cookie":
        refuse_other_sites(caller.request.headers, lambda: False)  # JSON carries no form's key
    return caller


def _changing(
    caller: Annotated[ManageCaller, Depends(managing)], values: Annotated[Mapping[str, Any], Depends(sent)]
) -> ManageCaller:
    """Say who changes something by a form, and refuse what comes from another site."""
    need(caller.access, "manage")
    given = str(values.get("form_key", ""))
    refuse_other_sites(caller.request.headers, lambda: is_form_key(caller.links, caller.id, given))
    return replace(caller, values=values)


def _looking_by_form(
    caller: Annotated[ManageCaller, Depends(managing)], values: Annotated[Mapping[str, Any], Depends(sent)]
) -> ManageCaller:
    """Say who changes something for their own eyes alone; every role may."""
    given = str(values.get("form_key", ""))
    refuse_other_sites(caller.request.headers, lambda: is_form_key(caller.links, caller.id, given))
    return replace(caller, values=values)


def _exporting(request: Request, campaign: str, bearer: Annotated[object, Depends(_BEARER)]) -> ManageCaller:
    """Say who wants to take judgments away."""
    caller = _known(request, campaign)
    need(caller.access, "export")
    return caller


Looking = Annotated[ManageCaller, Depends(_documented)]
Exporting = Annotated[ManageCaller, Depends(_exporting)]
Choosing = Annotated[ManageCaller, Depends(_looking_by_form)]
Stepping = Annotated[ManageCaller, Depends(_stepping)]
Viewing = Annotated[ManageCaller, Depends(managing)]
Changing = Annotated[ManageCaller, Depends(_changing)]
