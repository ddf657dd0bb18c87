"""`duelpool serve` and `duelpool link`: the web server, and links to its pages."""

import logging
import tempfile
from typing import Annotated

import typer

from duelpool.access.accounts import has_manager
from duelpool.campaign import Campaign
from duelpool.cli.options import CampaignOption, JsonOption, StoreArgument, is_store
from duelpool.cli.output import print_json, tell
from duelpool.errors import BadParameter
from duelpool.net.addresses import checked_root
from duelpool.store import holdings, open_store
from duelpool.store.maintenance import rights_notice
from duelpool.web.access.links import DAYS, LinkKind, address, link_keys
from duelpool.web.manage.keys import manager_address, manager_key
from duelpool.web.setup.keys import setup_address, setup_key

_ALL_INTERFACES = ("0.0.0.0", "::")


def serve(
    store: StoreArgument,
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
) -> None:
    """Serve the judging page, the dashboard and the API, and print their links.

    Examples:

      duelpool serve campaign.db

      duelpool serve campaign.db --host 0.0.0.0 --port 8080 --workers 2 --url https://judge.example.org
    """
    from duelpool.web.server import worker
    from duelpool.web.server.connections import ServerConfig, limits_within
    from duelpool.web.server.listening import raise_file_limit
    from duelpool.web.server.supervisor import serve_processes

    root = (
        checked_root(url) if url else f"http://{host if host not in _ALL_INTERFACES else 'localhost'}:{port}"
    )
    with open_store(store, create=is_store(store)) as opened:
        if notice := rights_notice(opened):
            tell(f"Notice: {notice}")
        keys = link_keys(opened)
        rows = opened.read(holdings.campaigns)
        if campaign is not None:
            rows = [opened.read(lambda connection: holdings.find_campaign(connection, campaign))]
        now = opened.read(opened.database.now)
        if campaign is None:
            typer.echo(f"To set up {'another' if rows else 'a'} campaign:")
            typer.echo(f"  {setup_address(root, setup_key(keys, now, days))}")
        for row in rows:
            refused = Campaign(
                opened, row
            ).refused_settings  # unreadable settings are an error, before the start
            typer.echo(f"Campaign {row.name}")
            for setting in refused:
                tell(f"  Notice: {setting}")
            typer.echo(f"  for assessors: {address(root, row.id, keys.key(row.id, 'open', now, days=days))}")
            preview = keys.key(row.id, "manager", now, days=days)
            typer.echo(f"  to preview:    {address(root, row.id, preview, preview='1')}")
            if opened.read(has_manager):
                typer.echo(f"  to manage:     {root.rstrip('/')}/login?next=/manage/{row.id}")
            else:
                key = manager_key(keys, row.id, now, days)
                typer.echo(f"  to manage:     {manager_address(root, row.id, key)}")
    tell("Stop with Ctrl+C.")
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    with tempfile.TemporaryDirectory(prefix="duelpool-counts-") as counts:
        # Nobody can guess under which name others reach a server that listens on all interfaces.
        known = bool(url) or (host not in _ALL_INTERFACES and port != 0)
        worker.leave(store, campaign, counts, uploads, root if known else "")
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
    url: Annotated[str, typer.Option(help="The public URL of the server.")] = "http://127.0.0.1:8000",
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
    url = checked_root(url)
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
        now = opened.read(opened.database.now)
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


def _print_setup_link(store: str, url: str, days: float, as_json: bool) -> None:
    with open_store(store, create=is_store(store)) as opened:
        key = setup_key(link_keys(opened), opened.read(opened.database.now), days)
    whole = setup_address(url, key)
    if as_json:
        print_json({"kind": "setup", "key": key, "link": whole})
    else:
        typer.echo(whole)
