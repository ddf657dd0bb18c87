"""Visitors: who is behind a request, by a signed cookie that is sent to this campaign's pages only."""

import secrets
import time
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self

from starlette.requests import Request
from starlette.responses import Response

from duelpool.store.holdings import UnknownCampaign
from duelpool.web.access.links import ForgedLink, Link, Links

COOKIE_SECONDS = 60 * 86400
EXTERNAL_AT_MOST = 256
PANEL = "link"  # the panel of outside identities that are a parameter of the link
ACCOUNT = "account"  # the panel of outside identities of assessors with an account


@dataclass(frozen=True, slots=True)
class Visitor:
    """A visitor of the judging page: pseudonym, outside identity, chosen language.

    An outside identity, a submission or a link for one use is here only until it is stored, after the consent. For a
    manager in the preview, `preview` is the position in it.
    """

    campaign: str
    assessor: str
    kind: Literal["", "open", "personal", "manager"] = "open"
    external: str = ""
    lang: str = ""
    preview: str = ""
    panel: str = ""  # that the visitor comes from
    submission: str = ""  # the panel's id of this stay
    study: str = ""
    once: str = ""  # the id of a link for one use
    browser: str = ""  # that a link for one use was opened in
    identified: bool = False  # has an outside identity, which is stored
    until: float = 0.0  # when the visit ends; 0 in cookies of earlier releases
    session: str = ""  # of the account, with which the visit ends

    @property
    def waits(self) -> bool:
        """Whether something about this visitor is stored only when they agree."""
        return bool(self.external or self.once)

    @property
    def source(self) -> str:
        """The panel of the outside identity; links with a parameter and accounts count as panels of their own."""
        return ACCOUNT if self.kind == "personal" else self.panel or PANEL

    @property
    def named_by_link(self) -> str:
        """The name that a personal link gives its visitor; empty for those who have a pseudonym or an account."""
        return self.assessor if self.kind == "personal" and not (self.external or self.identified) else ""

    def admitted(self, assessor: str) -> Self:
        """Return the visitor under the pseudonym that is stored; the cookie need not name them any more."""
        identified = self.identified or bool(self.external)
        return replace(
            self, assessor=assessor, external="", submission="", study="", once="", identified=identified
        )

    @property
    def previews(self) -> bool:
        """Whether this is a preview, of which nothing is stored."""
        return self.kind == "manager"

    @classmethod
    def of(cls, link: Link, *, external: str = "", lang: str = "") -> Self:
        """Return the visitor who enters by a link."""
        name = link.assessor or f"v-{secrets.token_hex(6)}"
        start = "0" if link.kind == "manager" else ""
        visitor = cls(
            link.campaign, name, link.kind, external[:EXTERNAL_AT_MOST], lang, start, until=link.expires
        )
        return replace(visitor, once=link.once, browser=secrets.token_hex(6)) if link.once else visitor

    def speaking(self, lang: str) -> Self:
        """Return the same visitor with another language."""
        return replace(self, lang=lang)

    def at(self, preview: str) -> Self:
        """Return the same visitor at another position of the preview."""
        return replace(self, preview=preview)


def cookie_name(campaign: str) -> str:
    """Return the name of a campaign's cookie."""
    return f"duelpool_{campaign}"


def read_cookie(request: Request, links: Links, campaign: str) -> Visitor | None:
    """Return the visitor whom the cookie names, None without a cookie."""
    signed = request.cookies.get(cookie_name(campaign))
    if not signed:
        return None
    values: Any = links.read("visit", signed)
    try:
        visitor = Visitor(**values)
    except TypeError:
        raise ForgedLink(
            "This visit is not valid here.", remedy="Open the link exactly as you received it."
        ) from None
    if visitor.campaign != campaign:
        raise UnknownCampaign(
            "This campaign doesn't exist here.", remedy="Open the link exactly as you received it."
        )
    return visitor


def write_cookie(response: Response, request: Request, links: Links, visitor: Visitor) -> None:
    """Set the cookie that names the visitor, for this campaign's pages only."""
    response.set_cookie(
        cookie_name(visitor.campaign),
        links.sign("visit", asdict(visitor)),
        max_age=max(0, round(visitor.until - time.time())) if visitor.until else COOKIE_SECONDS,
        path=f"/j/{visitor.campaign}",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )


def form_key(links: Links, visitor: Visitor) -> str:
    """Return the key that forms carry against requests from other sites."""
    return links.sign("form", [visitor.campaign, visitor.assessor])


def is_form_key(links: Links, visitor: Visitor, key: str) -> bool:
    """Return whether a form carries the visitor's key."""
    try:
        return bool(links.read("form", key) == [visitor.campaign, visitor.assessor])
    except ForgedLink:
        return False
