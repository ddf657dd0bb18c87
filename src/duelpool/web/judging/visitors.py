"""Who is this: the visitor behind a request, by a signed cookie that only this campaign's pages get."""

import secrets
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self

from starlette.requests import Request
from starlette.responses import Response

from duelpool.store.holdings import UnknownCampaign
from duelpool.web.access.links import ForgedLink, Link, Links

COOKIE_SECONDS = 60 * 86400
EXTERNAL_AT_MOST = 256
PANEL = "link"  # of the outside identities that come as a parameter of the link


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody before the page: a pseudonym, who they are outside, the language they chose.

    A manager who looks at the flow without taking part has a `preview`: how far they have come.
    """

    campaign: str
    assessor: str
    kind: Literal["", "open", "personal", "manager"] = "open"
    external: str = ""
    lang: str = ""
    preview: str = ""
    panel: str = ""  # from which they came

    @property
    def previews(self) -> bool:
        """Whether nothing of what they do is kept."""
        return self.kind == "manager"

    @classmethod
    def of(cls, link: Link, *, external: str = "", lang: str = "") -> Self:
        """Return the visitor whom a link lets in."""
        name = link.assessor or f"v-{secrets.token_hex(6)}"
        start = "0" if link.kind == "manager" else ""
        return cls(link.campaign, name, link.kind, external[:EXTERNAL_AT_MOST], lang, start)

    def speaking(self, lang: str) -> Self:
        """Return the same visitor with another language."""
        return replace(self, lang=lang)

    def at(self, preview: str) -> Self:
        """Return the same visitor at another place of the preview."""
        return replace(self, preview=preview)


def cookie_name(campaign: str) -> str:
    """Return the name of a campaign's cookie."""
    return f"duelpool_{campaign}"


def read_cookie(request: Request, links: Links, campaign: str) -> Visitor | None:
    """Return the visitor whom the cookie names, None where there is no cookie."""
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
    """Let the browser remember the visitor, for this campaign's pages alone."""
    response.set_cookie(
        cookie_name(visitor.campaign),
        links.sign("visit", asdict(visitor)),
        max_age=COOKIE_SECONDS,
        path=f"/j/{visitor.campaign}",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )


def form_key(links: Links, visitor: Visitor) -> str:
    """Return what a form carries to show that our page sent it."""
    return links.sign("form", [visitor.campaign, visitor.assessor])


def is_form_key(links: Links, visitor: Visitor, given: str) -> bool:
    """Say whether a form came from our page."""
    try:
        return bool(links.read("form", given) == [visitor.campaign, visitor.assessor])
    except ForgedLink:
        return False
