"""Single sign-on as the operator of a server sets it up: the provider, the client, and which claims give which role."""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from duelpool.access.roles import check_role
from duelpool.errors import BadFile, BadParameter
from duelpool.net.addresses import Address, is_loopback, parse_address

SCOPES = "openid profile email"
CLAIM = "groups"
EVERYONE = "*"
SECRET, SECRET_FILE = "DUELPOOL_SSO_SECRET", "DUELPOOL_SSO_SECRET_FILE"
ALLOW_WITH = "--sso-allow-host "


@dataclass(frozen=True, slots=True)
class RoleRule:
    """A value of the claim that gives a role, in the campaign of this name or in every campaign."""

    value: str
    role: str
    campaign: str = ""


@dataclass(frozen=True, slots=True)
class SignOnSettings:
    """The provider and what its claims mean here; `passwords` says whether names and passwords work as well."""

    issuer: str
    client: str
    name: str
    rules: tuple[RoleRule, ...]
    scopes: str = SCOPES
    claim: str = CLAIM
    domains: tuple[str, ...] = ()
    passwords: bool = True
    allow: tuple[str, ...] = ()
    secret_file: str = ""
    secret: str = field(default="", repr=False)

    def may_be_private(self, scheme: str) -> Collection[str]:
        """Return the hosts that may be in a private network: those that the operator named, and the issuer's own.

        A provider that is reached by https isn't called by http, which would show the client's secret on the way.
        """
        issuer = urlsplit(self.issuer)
        own = (issuer.hostname or "",) if scheme in ("https", issuer.scheme) else ()
        return (*self.allow, *own)


def read_settings(
    *,
    issuer: str,
    client: str,
    rules: Sequence[str],
    name: str = "",
    scopes: str = SCOPES,
    claim: str = CLAIM,
    domains: Sequence[str] = (),
    passwords: bool = True,
    allow: Sequence[str] = (),
    secret_file: str = "",
    environment: Mapping[str, str] = os.environ,
) -> SignOnSettings:
    """Check the settings as they are given on the command line, and read the client's secret."""
    if not client:
        raise BadParameter(
            "Single sign-on needs the id that the provider gave this server.",
            remedy="Give it with --sso-client.",
        )
    if not rules:
        raise BadParameter(
            "Single sign-on has no role to give: no value of a claim is named.",
            remedy="Give at least one, such as: --sso-role judges=assessor",
        )
    if "openid" not in scopes.split():
        raise BadParameter(
            "The scopes of single sign-on include 'openid'.", remedy=f"Write: --sso-scopes '{SCOPES}'"
        )
    if not claim:
        raise BadParameter("The claim that gives the roles has a name.", remedy=f"Write: --sso-claim {CLAIM}")
    address = _issuer_address(issuer, allow)
    return with_secret(
        SignOnSettings(
            issuer=issuer,
            client=client,
            name=name or address.host,
            rules=tuple(parse_rule(each) for each in rules),
            scopes=" ".join(scopes.split()),
            claim=claim,
            domains=tuple(_domain(each) for each in domains),
            passwords=passwords,
            allow=tuple(allow),
            secret_file=secret_file,
        ),
        environment,
    )


def with_secret(settings: SignOnSettings, environment: Mapping[str, str] = os.environ) -> SignOnSettings:
    """Return the settings with the client's secret, from its file or the environment; a public client has none."""
    if not settings.secret_file:
        return replace(settings, secret=environment.get(SECRET, "").strip())
    try:
        secret = Path(settings.secret_file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile.at(
            settings.secret_file,
            None,
            f"The client's secret can't be read ({error}).",
            "Check --sso-secret-file.",
        ) from None
    if not secret:
        raise BadFile.at(
            settings.secret_file,
            None,
            "The file of the client's secret is empty.",
            "Write the secret into it.",
        )
    return replace(settings, secret=secret)


def parse_rule(text: str) -> RoleRule:
    """Read a rule as it is written: VALUE=ROLE, or VALUE=ROLE:CAMPAIGN for one campaign."""
    value, equals, right = text.rpartition("=")
    role, _, campaign = right.partition(":")
    if not equals or not value:
        raise BadParameter(
            f"{text!r} doesn't say which value of the claim gives which role.",
            remedy="Write VALUE=ROLE, such as judges=assessor, or VALUE=ROLE:CAMPAIGN.",
        )
    return RoleRule(value, check_role(role), campaign)


def _issuer_address(issuer: str, allow: Sequence[str]) -> Address:
    try:
        host = urlsplit(issuer).hostname or ""
    except ValueError:
        host = ""
    here = (host,) if is_loopback(host) or host == "localhost" else ()
    try:
        return parse_address(issuer, (*allow, *here), allow_with=ALLOW_WITH)
    except BadParameter as error:
        raise type(error)(f"{issuer!a}: {error.problem}", remedy=error.remedy) from None


def _domain(text: str) -> str:
    domain = text.strip().lower().removeprefix("@")
    if not domain or "@" in domain or any(each.isspace() for each in domain):
        raise BadParameter(
            f"{text!a} is not the domain of e-mail addresses.", remedy="Write it as example.org."
        )
    return domain
