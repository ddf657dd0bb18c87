"""The caller of the dashboard and the API: campaign, access and what was sent."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from starlette.responses import RedirectResponse

from duelpool.access import audit_log
from duelpool.campaign.campaign import Also
from duelpool.web.access.links import Links, address
from duelpool.web.access.passes import need, pass_of
from duelpool.web.judging.callers import campaigns_of, links_of, sent
from duelpool.web.manage.dashboard import Dashboard, Dashboards
from duelpool.web.manage.keys import Pass, form_key, is_form_key
from duelpool.web.server.guard import refuse_other_sites

BLIND = "duelpool_blind"

_BEARER = HTTPBearer(auto_error=False, description="A manager's key: `duelpool link STORE --manage --json`.")


@dataclass(frozen=True, slots=True)
class ManageCaller:
    """A request to the dashboard or the API of a campaign."""

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
        """The path of the campaign's dashboard."""
        return f"/manage/{self.id}"

    @property
    def form_key(self) -> str:
        """The key that the dashboard's forms carry."""
        return form_key(self.links, self.id)

    @property
    def blind(self) -> bool:
        """Whether the names of systems are hidden in this browser."""
        return self.request.cookies.get(BLIND) == "1"

    @property
    def may_manage(self) -> bool:
        """Whether the caller has the scope "manage"."""
        return "manage" in self.access.scopes

    @property
    def judge_here(self) -> str:
        """The address of the judging page for this manager, empty for a viewer; a dedicated campaign names them."""
        if not self.may_manage:
            return ""
        campaign = self.dashboard.campaign
        now = campaign.read(lambda tx: tx.now)
        if campaign.settings.judges != "dedicated":
            return address("", self.id, self.links.key(self.id, "open", now))
        who = self.access.who
        sign = blake2b(f"{self.id} {who}".encode(), digest_size=3).hexdigest()  # the log names no account
        name = "manager" if who == "link" else f"manager-{sign}"
        return address("", self.id, self.links.key(self.id, "personal", now, assessor=name))

    def audit_entry(self, action: str, about: str = "") -> Also:
        """Return the audit log's entry for an action of this caller."""
        return audit_log.entry(self.access.who, action, about, campaign=self.id)

    def back(self, path: str) -> RedirectResponse:
        """Return a redirect to a page of the dashboard."""
        return RedirectResponse(f"{self.base}/{path}", 303)


def dashboards_of(request: Request) -> Dashboards:
    """Return the dashboards of the server."""
    dashboards: Dashboards = request.app.state.dashboards
    return dashboards


def _caller(request: Request, campaign: str) -> ManageCaller:
    """Return the caller, with any scopes."""
    campaigns = campaigns_of(request)
    campaigns.flow(campaign)
    links = links_of(request)
    access = pass_of(request, links, campaigns.store, campaign)
    return ManageCaller(request, dashboards_of(request).of(campaign), links, access, {})


def managing(request: Request, campaign: str) -> ManageCaller:
    """Return a caller who may read, or refuse."""
    caller = _caller(request, campaign)
    need(caller.access, "read")
    return caller


def _documented(request: Request, campaign: str, bearer: Annotated[object, Depends(_BEARER)]) -> ManageCaller:
    """Return a caller who may read; the API's description names the bearer key."""
    return managing(request, campaign)


def _stepping(caller: Annotated[ManageCaller, Depends(_documented)]) -> ManageCaller:
    """Return a caller who may change the campaign by JSON; a browser must send it from our own pages."""
    need(caller.access, "manage")
    if caller.access.door == "cookie":
        refuse_other_sites(caller.request.headers, lambda: False)  # JSON carries no form key
    return caller


def _changing(
    caller: Annotated[ManageCaller, Depends(managing)], values: Annotated[Mapping[str, Any], Depends(sent)]
) -> ManageCaller:
    """Return a caller who may change the campaign by a form; refuse forms from other sites."""
    need(caller.access, "manage")
    key = str(values.get("form_key", ""))
    refuse_other_sites(caller.request.headers, lambda: is_form_key(caller.links, caller.id, key))
    return replace(caller, values=values)


def _looking_by_form(
    caller: Annotated[ManageCaller, Depends(managing)], values: Annotated[Mapping[str, Any], Depends(sent)]
) -> ManageCaller:
    """Return a caller who changes their own view by a form; any role may."""
    key = str(values.get("form_key", ""))
    refuse_other_sites(caller.request.headers, lambda: is_form_key(caller.links, caller.id, key))
    return replace(caller, values=values)


def _exporting(request: Request, campaign: str, bearer: Annotated[object, Depends(_BEARER)]) -> ManageCaller:
    """Return a caller who may export."""
    caller = _caller(request, campaign)
    need(caller.access, "export")
    return caller


Looking = Annotated[ManageCaller, Depends(_documented)]
Exporting = Annotated[ManageCaller, Depends(_exporting)]
Choosing = Annotated[ManageCaller, Depends(_looking_by_form)]
Stepping = Annotated[ManageCaller, Depends(_stepping)]
Viewing = Annotated[ManageCaller, Depends(managing)]
Changing = Annotated[ManageCaller, Depends(_changing)]
