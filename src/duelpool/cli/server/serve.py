"""`duelpool serve` and `duelpool link`: the web server, and links to its pages."""

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from duelpool.access.accounts import has_manager
from duelpool.access.keys import remember_address, served_at
from duelpool.access.openid import ProviderTrouble
from duelpool.access.sign_on_settings import CLAIM, EVERYONE, SCOPES, SignOnSettings, read_settings
from duelpool.campaign import Campaign
from duelpool.campaign.settings.changes import UnreadableSettings
from duelpool.cli.opening import tell_held
from duelpool.cli.options import CampaignOption, JsonOption, StoreArgument, is_store
from duelpool.cli.output import print_json, tell
from duelpool.errors import BadParameter
from duelpool.net.addresses import checked_root
from duelpool.store import Store, holdings, open_store
from duelpool.store.errors import StoreError
from duelpool.store.maintenance import rights_notice
from duelpool.web.access.links import DAYS, LinkKind, Links, address, link_keys
from duelpool.web.access.sign_on import CALLBACK, make_sign_on
from duelpool.web.manage.keys import manager_address, manager_key
from duelpool.web.setup.keys import setup_address, setup_key

USUAL_STORE = "duelpool.db"
"""The store of `duelpool serve` without one."""
_ALL_INTERFACES = ("0.0.0.0", "::")
_LOCAL = "http://127.0.0.1:8000"
_SSO = "Single sign-on"


def _sso(variable: str, told: str, *names: str) -> Any:
    """Return an option of single sign-on, which a variable of the environment may give as well."""
    return typer.Option(*names, help=told, envvar=f"DUELPOOL_SSO_{variable}", rich_help_panel=_SSO)


def serve(
    store: Annotated[
        str,
        typer.Argument(
            metavar="[STORE]",
            help="The campaign's file, or a PostgreSQL URL. A file that doesn't exist is made, and its first campaign "
            "is set up in the browser.",
        ),
    ] = USUAL_STORE,
    campaign: CampaignOption = None,
    host: Annotated[
        str, typer.Option(help="The address to listen on; 0.0.0.0: all interfaces.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, help="Number of server processes.")] = 1,
    url: Annotated[str | None, typer.Option(help="The public URL, if the server is behind a proxy.")] = None,
    days: Annotated[float, typer.Option(min=0.001, help="How long the printed links work, in days.")] = DAYS,
    proxy: Annotated[
        str, typer.Option(help="Addresses of trusted proxies, whose forwarding headers are used.")
    ] = "127.0.0.1",
    uploads: Annotated[
        str | None,
        typer.Option(
            help="Folder for uploads while a campaign is set up. Default: the system's temporary folder."
        ),
    ] = None,
    connections: Annotated[
        int | None,
        typer.Option(min=1, help="Open connections of each process. Default: 1000, or what its files allow."),
    ] = None,
    per_address: Annotated[
        int | None,
        typer.Option(
            min=1, help="Connections of each process from one address, except proxies. Default: a quarter."
        ),
    ] = None,
    patience: Annotated[
        float,
        typer.Option(
            min=0.1,
            max=3600,
            help="Seconds until a client is cut off that sends no whole head, or moves less than 500 bytes a second.",
        ),
    ] = 20.0,
    sso_issuer: Annotated[
        str,
        _sso("ISSUER", "The URL of the OpenID provider at which people sign in; turns single sign-on on."),
    ] = "",
    sso_client: Annotated[str, _sso("CLIENT", "The client id that the provider gave this server.")] = "",
    sso_secret_file: Annotated[
        str,
        _sso("SECRET_FILE", "A file with the client's secret. Without it: the variable DUELPOOL_SSO_SECRET."),
    ] = "",
    sso_name: Annotated[
        str, _sso("NAME", "What the button calls the provider. Default: the issuer's host.")
    ] = "",
    sso_role: Annotated[
        list[str] | None,
        _sso(
            "ROLE",
            "VALUE=ROLE or VALUE=ROLE:CAMPAIGN: a value of the claim that gives a role; * is everyone. "
            "May be repeated; the first that fits counts.",
        ),
    ] = None,
    sso_claim: Annotated[
        str, _sso("CLAIM", "The claim with the values, such as groups, email or realm_access.roles.")
    ] = CLAIM,
    sso_scopes: Annotated[str, _sso("SCOPES", "The scopes to ask for.")] = SCOPES,
    sso_domain: Annotated[
        list[str] | None,
        _sso("DOMAIN", "Only verified e-mail addresses of this domain may sign in. May be repeated."),
    ] = None,
    sso_only: Annotated[
        bool, _sso("ONLY", "Take no names and passwords: single sign-on is the only way in.", "--sso-only")
    ] = False,
    sso_allow_host: Annotated[
        list[str] | None,
        _sso("ALLOW_HOST", "Another host of the provider that may be in a private network. May be repeated."),
    ] = None,
) -> None:
    """Serve the judging page, the dashboard and the API, and print their links.

    Each option of single sign-on can be given by the variable that stands beside it. Several values in one variable
    are separated by spaces.

    Examples:

      duelpool serve

      duelpool serve campaign.db

      duelpool serve campaign.db --host 0.0.0.0 --port 8080 --workers 2 --url https://judge.example.org

      duelpool serve campaign.db --url https://judge.example.org --sso-issuer https://id.example.org/realms/search \
        --sso-client duelpool --sso-secret-file secret.txt --sso-role leads=manager --sso-role judges=assessor
    """
    from duelpool.web.server import worker
    from duelpool.web.server.connections import ServerConfig, limits_within
    from duelpool.web.server.listening import raise_file_limit
    from duelpool.web.server.supervisor import serve_processes

    root = (
        checked_root(url) if url else f"http://{host if host not in _ALL_INTERFACES else 'localhost'}:{port}"
    )
    # A server that listens on all interfaces doesn't know by which name others reach it.
    known = bool(url) or (host not in _ALL_INTERFACES and port != 0)
    sign_on = None
    if sso_issuer:
        sign_on = read_settings(
            issuer=sso_issuer,
            client=sso_client,
            rules=sso_role or (),
            name=sso_name,
            scopes=sso_scopes,
            claim=sso_claim,
            domains=sso_domain or (),
            passwords=not sso_only,
            allow=sso_allow_host or (),
            secret_file=sso_secret_file,
        )
        _tell_of_sign_on(sign_on, root if known else "")
    elif sso_client or sso_role or sso_only:
        raise BadParameter(
            "Single sign-on isn't set up: no provider is given.", remedy="Give its URL with --sso-issuer."
        )
    _tell_of_others(store)
    with open_store(store, create=is_store(store)) as opened:
        if notice := rights_notice(opened):
            tell(f"Notice: {notice}")
        keys = _keys_of(opened, root if known else "")
        rows = opened.read(holdings.campaigns)
        if campaign is not None:
            rows = [opened.read(lambda connection: holdings.find_campaign(connection, campaign))]
        now = opened.now()
        if campaign is None:
            typer.echo(f"To set up {'another' if rows else 'a'} campaign:")
            typer.echo(f"  {setup_address(root, setup_key(keys, now, days))}")
        for row in rows:
            try:
                shown = Campaign(opened, row)
                refused, held = shown.refused_settings, shown.held_back()
            except UnreadableSettings as error:
                if len(rows) == 1:
                    raise
                tell(f"Notice: {error}")
                continue
            typer.echo(f"Campaign {row.name}")
            for setting in refused:
                tell(f"  Notice: {setting}")
            tell_held(held, store)
            typer.echo(f"  for assessors: {address(root, row.id, keys.key(row.id, 'open', now, days=days))}")
            preview = keys.key(row.id, "manager", now, days=days)
            typer.echo(f"  to preview:    {address(root, row.id, preview, preview='1')}")
            if opened.read(has_manager):
                typer.echo(f"  to manage:     {root.rstrip('/')}/login?next=/manage/{row.id}")
            else:
                key = manager_key(keys, row.id, now, days)
                typer.echo(f"  to manage:     {manager_address(root, row.id, key)}")
    tell("Stop with Ctrl+C.")
    with tempfile.TemporaryDirectory(prefix="duelpool-counts-") as counts:
        worker.leave(store, campaign, counts, uploads, root if known else "", sign_on=sign_on)
        config = ServerConfig(
            "duelpool.web.server.worker:take_up",
            limits_within(raise_file_limit(), connections, per_address, patience),
            factory=True,
            host=host,
            port=port,
            workers=workers,
            access_log=False,
            log_level="warning",
            server_header=False,
            forwarded_allow_ips=proxy,
            timeout_keep_alive=75,  # people pause to read; proxies keep connections for a minute
            timeout_graceful_shutdown=5,  # pages with open event streams would delay the shutdown
            timeout_worker_healthcheck=60,  # on a busy machine a process starts slowly
        )
        serve_processes(config)


def _tell_of_others(store: str) -> None:
    """Where the usual store is made, name the stores beside it: one of them may be meant."""
    if store != USUAL_STORE or Path(store).exists():
        return
    others = sorted(path.name for path in Path().glob("*.db"))
    tell(f"The campaign will be in {store}.")
    if others:
        tell(f"Notice: there are other stores here. To serve one: duelpool serve {others[0]}")


def _tell_of_sign_on(settings: SignOnSettings, root: str) -> None:
    """Print what the provider must know, and ask it once: a wrong setting shows before anyone signs in."""
    sign_on = make_sign_on(settings, root)
    if sign_on is None:
        return
    typer.echo(f"Single sign-on by {settings.name}: {sign_on.root}/login")
    typer.echo(f"  redirect URI for the provider: {sign_on.root}{CALLBACK}")
    for rule in settings.rules:
        if rule.value == EVERYONE:
            whom = f"everyone of {' or '.join(settings.domains)}" if settings.domains else "everyone"
            tell(f"  Notice: {whom} whom {settings.name} lets in becomes {rule.role}.")
    try:
        sign_on.client.metadata()
    except ProviderTrouble as trouble:
        tell(f"  Notice: {settings.name} can't be used now: {trouble.place}.")


def link(
    store: StoreArgument,
    assessor: Annotated[
        str | None, typer.Option(help="A link for this assessor alone, by pseudonym.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="The link works only once, in one browser.")] = False,
    preview: Annotated[
        bool, typer.Option("--preview", help="A preview link: all pages, and nothing is stored.")
    ] = False,
    manage: Annotated[
        bool, typer.Option("--manage", help="A link to the dashboard. Keep it secret.")
    ] = False,
    setup: Annotated[
        bool, typer.Option("--setup", help="A link to set up campaigns. Keep it secret.")
    ] = False,
    days: Annotated[float, typer.Option(min=0.001, help="How long the link works, in days.")] = DAYS,
    url: Annotated[
        str | None,
        typer.Option(
            help=f"The URL at which the server is reached. Default: that of the last serve, or {_LOCAL}."
        ),
    ] = None,
    campaign: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print a link to the judging page (for all, for one assessor, or a preview), the dashboard or the set-up.

    Examples:

      duelpool link campaign.db --assessor anna --url https://judge.example.org

      duelpool link campaign.db --preview

      duelpool link campaign.db --manage --json

      duelpool link campaign.db --setup
    """
    if once and not assessor:
        raise BadParameter("A link that works once is for one person.", remedy="Name them with --assessor.")
    if preview and assessor:
        raise BadParameter("A preview isn't for one assessor.", remedy="Leave out --assessor or --preview.")
    if manage and (assessor or preview or once):
        raise BadParameter(
            "--manage doesn't go with --assessor, --preview or --once.", remedy="Leave the other options out."
        )
    url = checked_root(url or _last_address(store, quiet=as_json))
    if setup:
        if assessor or preview or once or manage or campaign:
            raise BadParameter(
                "--setup doesn't go with other kinds of links.", remedy="Leave the other options out."
            )
        _print_setup_link(store, url, days, as_json)
        return
    kind: LinkKind = "manager" if preview else "personal" if assessor else "open"
    with open_store(store) as opened:
        row = opened.read(lambda connection: holdings.find_campaign(connection, campaign))
        now = opened.now()
        keys = link_keys(opened)
        managing = manager_key(keys, row.id, now, days)
        key = keys.key(row.id, kind, now, assessor=assessor or "", days=days, once=once)
    whole = address(url, row.id, key, **({"preview": "1"} if preview else {}))
    if manage:
        whole = manager_address(url, row.id, managing)
    if as_json and manage:
        print_json({"campaign": row.name, "id": row.id, "kind": "manage", "key": managing, "link": whole})
    elif as_json:
        print_json({"campaign": row.name, "kind": kind, "assessor": assessor, "link": whole})
    else:
        typer.echo(whole)


def _keys_of(store: Store, root: str) -> Links:
    """Return what signs a store's links, and let the store keep where it is served."""
    if root:
        with suppress(StoreError):  # one that can't be written can be looked at
            remember_address(store, root)
    return link_keys(store)


def _last_address(store: str, *, quiet: bool) -> str:
    """Return where the server was last reached, and say where that is from."""
    last = ""
    if "://" in store or Path(store).exists():
        with open_store(store) as opened:
            last = served_at(opened)
    if not quiet:
        origin = "as the last `duelpool serve` of this store" if last else "which is serve's default"
        tell(f"The address is {last or _LOCAL}, {origin}. For another, give --url.")
    return last or _LOCAL


def _print_setup_link(store: str, url: str, days: float, as_json: bool) -> None:
    with open_store(store, create=is_store(store)) as opened:
        key = setup_key(link_keys(opened), opened.now(), days)
    whole = setup_address(url, key)
    if as_json:
        print_json({"kind": "setup", "key": key, "link": whole})
    else:
        typer.echo(whole)
