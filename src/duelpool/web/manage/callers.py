"""Who manages here, and what they brought: every request of dashboard and API begins here."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from starlette.responses import RedirectResponse

from duelpool.access import audit_log
from duelpool.campaign.campaign import Also
from duelpool.web.access.links import Links
from duelpool.web.access.passes import need, pass_of
from duelpool.web.judging.callers import halls_of, links_of, sent
from duelpool.web.manage.dashboard import Desk, Desks
from duelpool.web.manage.keys import Pass, form_key, is_form_key
from duelpool.web.server.guard import TooLarge, refuse_other_sites

BLIND = "duelpool_blind"

_BEARER = HTTPBearer(auto_error=False, description="A manager's key: `duelpool link STORE --manage --json`.")


@dataclass(frozen=True, slots=True)
class Managing:
    """A request of somebody who may manage a campaign."""

    request: Request
    desk: Desk
    links: Links
    shown: Pass
    values: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The campaign's id."""
        return self.desk.campaign.id

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
        return "manage" in self.shown.scopes

    def audit_entry(self, action: str, about: str = "") -> Also:
        """Return the entry of the audit log for what this person is about to do."""
        return audit_log.entry(self.shown.who, action, about, campaign=self.id)

    def back(self, path: str) -> RedirectResponse:
        """Return the way to another page of the dashboard."""
        return RedirectResponse(f"{self.base}/{path}", 303)


def desks_of(request: Request) -> Desks:
    """Return the desks of the server."""
    found: Desks = request.app.state.desks
    return found


def _known(request: Request, campaign: str) -> Managing:
    """Say who this is, whatever they may do."""
    halls = halls_of(request)
    halls.flow(campaign)
    links = links_of(request)
    shown = pass_of(request, links, halls.store, campaign)
    return Managing(request, desks_of(request).of(campaign), links, shown, {})


def managing(request: Request, campaign: str) -> Managing:
    """Say who wants to look, or refuse."""
    found = _known(request, campaign)
    need(found.shown, "read")
    return found


def _documented(request: Request, campaign: str, bearer: Annotated[object, Depends(_BEARER)]) -> Managing:
    """Say who wants to look, with the door named in the API's description."""
    return managing(request, campaign)


def _stepping(found: Annotated[Managing, Depends(_documented)]) -> Managing:
    """Say what program wants to change something; a browser must come from our own pages."""
    if found.request.scope.get("too_large"):
        raise TooLarge("The request is too large.", remedy="Send less at once.")
    need(found.shown, "manage")
    if found.shown.door == "cookie":
        refuse_other_sites(found.request.headers, lambda: False)  # JSON carries no form's key
    return found


def _changing(
    found: Annotated[Managing, Depends(managing)], values: Annotated[Mapping[str, Any], Depends(sent)]
) -> Managing:
    """Say who changes something by a form, and refuse what comes from another site."""
    need(found.shown, "manage")
    given = str(values.get("form_key", ""))
    refuse_other_sites(found.request.headers, lambda: is_form_key(found.links, found.id, given))
    return Managing(found.request, found.desk, found.links, found.shown, values)


def _looking_by_form(
    found: Annotated[Managing, Depends(managing)], values: Annotated[Mapping[str, Any], Depends(sent)]
) -> Managing:
    """Say who changes something for their own eyes alone; every role may."""
    given = str(values.get("form_key", ""))
    refuse_other_sites(found.request.headers, lambda: is_form_key(found.links, found.id, given))
    return Managing(found.request, found.desk, found.links, found.shown, values)


def _exporting(request: Request, campaign: str, bearer: Annotated[object, Depends(_BEARER)]) -> Managing:
    """Say who wants to take judgments away."""
    found = _known(request, campaign)
    need(found.shown, "export")
    return found


Looking = Annotated[Managing, Depends(_documented)]
Exporting = Annotated[Managing, Depends(_exporting)]
Choosing = Annotated[Managing, Depends(_looking_by_form)]
Stepping = Annotated[Managing, Depends(_stepping)]
Viewing = Annotated[Managing, Depends(managing)]
Changing = Annotated[Managing, Depends(_changing)]
