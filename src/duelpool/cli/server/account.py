"""`duelpool account`, `duelpool token` and `duelpool key`: access for people and programs."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.table import Table

from duelpool.access import ROLES, accounts, audit_log, keys, sessions, single_sign_on, tokens
from duelpool.access.accounts import Account
from duelpool.access.administration import Administration
from duelpool.access.roles import FOR_TOKENS
from duelpool.cli.helptext import command_group
from duelpool.cli.options import CampaignOption, JsonOption, StoreArgument
from duelpool.cli.output import print_json, print_table, tell
from duelpool.errors import BadParameter
from duelpool.store import holdings, log, open_store

account = command_group(
    "Manage the accounts of people: who may manage, view or judge.",
    "duelpool account add campaign.db anna --role manager",
    "duelpool account add campaign.db ben --role viewer --campaign letters",
    "duelpool account list campaign.db",
)
token = command_group(
    "Manage the tokens of programs: shown once, limited to scopes, valid until a date.",
    "duelpool token new campaign.db --label nightly --scope export --days 30",
    "duelpool token revoke campaign.db 1f0c9a4e7b21",
)
key = command_group(
    "Manage the key that signs links, cookies and forms.",
    "duelpool key rotate campaign.db",
    "duelpool key rotate campaign.db --grace-days 0",
)

NameArgument = Annotated[str, typer.Argument(help="The account's name.")]
PasswordOption = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password from standard input, one line.")
]


@contextmanager
def _administration(store: str) -> Iterator[Administration]:
    """Open a store to change its accounts, tokens and keys in the name of the shell's user."""
    with open_store(store) as opened:
        yield Administration(opened, audit_log.shell_user())


def _password(from_stdin: bool) -> str:
    if from_stdin:
        return sys.stdin.readline().rstrip("\n")
    if not sys.stdin.isatty():
        raise BadParameter(
            "There is no terminal to type a password at.", remedy="Give it with --password-stdin."
        )
    return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True))


def _print_change(changed: Account, what: str) -> None:
    typer.echo(f"{changed.name}: {what}.")


@account.command()
def add(
    store: StoreArgument,
    name: NameArgument,
    role: Annotated[str, typer.Option(help=f"One of {', '.join(ROLES)}.")],
    password_stdin: PasswordOption = False,
    campaign: CampaignOption = None,
) -> None:
    """Add an account, for one campaign or for every campaign of the store.

    Examples:

      duelpool account add campaign.db anna --role manager
    """
    password = _password(password_stdin)
    with _administration(store) as administration:
        added = administration.add_account(name, password, role, campaign)
    _print_change(added, f"added, as {role} of {campaign or 'every campaign'}")


@account.command("list")
def list_accounts(store: StoreArgument, as_json: JsonOption = False) -> None:
    """List the accounts with their roles.

    Examples:

      duelpool account list campaign.db
    """
    with open_store(store, writable=False) as opened:
        listed = opened.read(accounts.all_accounts)
        links = opened.read(single_sign_on.links)
        campaigns = {row.id: row.name for row in opened.read(holdings.campaigns)}
    roles = {
        each.name: {campaigns.get(of, of) or "every campaign": role for of, role in each.roles.items()}
        for each in listed
    }
    if as_json:
        print_json(
            [
                {
                    "name": each.name,
                    "state": each.state,
                    "created": log.iso_time(each.created),
                    "roles": roles[each.name],
                    "password": each.has_password,
                    "links": [
                        {"issuer": link.issuer, "subject": link.subject}
                        for link in links
                        if link.account == each.name
                    ],
                }
                for each in listed
            ]
        )
        return
    if not listed:
        typer.echo("There is no account yet. Make one by the manager's link, or with `duelpool account add`.")
        return
    linked = {link.account for link in links}
    table = Table("name", "state", "roles", *(("single sign-on",) if linked else ()), "created")
    for each in listed:
        shown = ", ".join(f"{role} of {of}" for of, role in roles[each.name].items())
        by_provider = ("yes" if each.name in linked else "no",) if linked else ()
        table.add_row(each.name, each.state, shown, *by_provider, _day(each.created))
    print_table(table)


@account.command()
def role(
    store: StoreArgument,
    name: NameArgument,
    role: Annotated[str, typer.Argument(help=f"One of {', '.join(ROLES)}, or none.")],
    campaign: CampaignOption = None,
) -> None:
    """Give an account a role in one campaign or in all of them; `none` takes the role away.

    Examples:

      duelpool account role campaign.db ben viewer --campaign letters
    """
    with _administration(store) as administration:
        changed = administration.set_role(name, None if role == "none" else role, campaign)
    _print_change(changed, f"{role} of {campaign or 'every campaign'}")


@account.command()
def password(store: StoreArgument, name: NameArgument, password_stdin: PasswordOption = False) -> None:
    """Set a new password and end every session of the account.

    Examples:

      duelpool account password campaign.db anna
    """
    new_password = _password(password_stdin)
    with _administration(store) as administration:
        changed = administration.set_password(name, new_password)
    _print_change(changed, "password changed, every session ended")


@account.command("sessions")
def list_sessions(
    store: StoreArgument,
    name: Annotated[str | None, typer.Argument(help="The account's name; without it, all accounts.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the open sessions: who signed in when, with which browser and from which network.

    Examples:

      duelpool account sessions campaign.db

      duelpool account sessions campaign.db anna
    """
    with open_store(store, writable=False) as opened:
        of = (
            None if name is None else opened.read(lambda connection: accounts.existing(connection, name)).name
        )
        now = opened.now()
        listed = opened.read(lambda connection: sessions.listed(connection, now, of))
    if as_json:
        print_json(
            [
                {
                    "id": each.id,
                    "account": each.account,
                    "began": log.iso_time(each.created),
                    "ends": log.iso_time(each.expires),
                    "network": each.network,
                    "browser": each.browser,
                }
                for each in listed
            ]
        )
        return
    if not listed:
        typer.echo("No session is open.")
        return
    table = Table("session", "account", "began", "ends", "network", "browser")
    for each in listed:
        times = (log.iso_time(at)[:16] for at in (each.created, each.expires))
        table.add_row(each.id, each.account, *times, each.network, each.browser)
    print_table(table)


@account.command()
def logout(
    store: StoreArgument,
    name: NameArgument,
    session: Annotated[
        str | None, typer.Option(help="End this session only; `duelpool account sessions` lists them.")
    ] = None,
) -> None:
    """End every session of an account, or one of them.

    Examples:

      duelpool account logout campaign.db anna
    """
    with _administration(store) as administration:
        changed = administration.end_session(name, session) if session else administration.end_sessions(name)
    _print_change(changed, "session ended" if session else "every session ended")


@account.command("link")
def link_account(
    store: StoreArgument,
    name: NameArgument,
    issuer: Annotated[str, typer.Option(help="The provider's issuer, exactly as --sso-issuer has it.")],
    subject: Annotated[str, typer.Option(help="The person's id at the provider: the claim `sub`.")],
) -> None:
    """Let a person sign in to an account by single sign-on; their next sign-in sets the account's roles.

    Examples:

      duelpool account link campaign.db anna --issuer https://id.example.org --subject 248289761001
    """
    with _administration(store) as administration:
        changed = administration.link_account(name, issuer, subject)
    _print_change(changed, f"linked to {subject} of {issuer}")


@account.command("unlink")
def unlink_account(store: StoreArgument, name: NameArgument) -> None:
    """End single sign-on to an account, and every session of it.

    Examples:

      duelpool account unlink campaign.db anna
    """
    with _administration(store) as administration:
        changed = administration.unlink_account(name)
    _print_change(changed, "unlinked, every session ended")


@account.command()
def lock(
    store: StoreArgument,
    name: NameArgument,
    undo: Annotated[bool, typer.Option("--undo", help="Unlock the account.")] = False,
) -> None:
    """Lock an account: its sessions end, and it can't sign in.

    Examples:

      duelpool account lock campaign.db ben
    """
    with _administration(store) as administration:
        changed = administration.unlock(name) if undo else administration.lock(name)
    _print_change(changed, "unlocked" if undo else "locked")


@token.command("new")
def new_token(
    store: StoreArgument,
    label: Annotated[str, typer.Option(help="Which program it is for.")],
    scope: Annotated[list[str], typer.Option(help=f"May be repeated: {', '.join(FOR_TOKENS)}.")],
    days: Annotated[float, typer.Option(help="How many days it is valid.")] = tokens.DAYS,
    campaign: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a token for a program; it is shown now and never again.

    Examples:

      duelpool token new campaign.db --label nightly --scope read --scope export
    """
    with _administration(store) as administration:
        made, text = administration.make_token(label, scope, campaign, days=days)
    if as_json:
        print_json(
            {"id": made.id, "token": text, "scopes": made.scopes, "expires": log.iso_time(made.expires)}
        )
        return
    typer.echo(text)
    tell(f"Valid until {_day(made.expires)}. Keep it safe: it isn't shown again.")


@token.command("list")
def list_tokens(store: StoreArgument, as_json: JsonOption = False) -> None:
    """List the tokens, without their secrets.

    Examples:

      duelpool token list campaign.db
    """
    with open_store(store, writable=False) as opened:
        listed = opened.read(tokens.all_tokens)
        now = opened.now()
        campaigns = {row.id: row.name for row in opened.read(holdings.campaigns)}
    if as_json:
        print_json(
            [
                {
                    "id": each.id,
                    "label": each.label,
                    "campaign": campaigns.get(each.campaign, "") or None,
                    "scopes": list(each.scopes),
                    "made_by": each.made_by,
                    "expires": log.iso_time(each.expires),
                    "good": each.is_valid(now),
                }
                for each in listed
            ]
        )
        return
    if not listed:
        typer.echo("There is no token. Make one with `duelpool token new`.")
        return
    table = Table("id", "label", "campaign", "scopes", "expires", "valid")
    for each in listed:
        campaign = campaigns.get(each.campaign, "") or "every campaign"
        valid = "yes" if each.is_valid(now) else "no"
        table.add_row(each.id, each.label, campaign, " ".join(each.scopes), _day(each.expires), valid)
    print_table(table)


@token.command()
def revoke(store: StoreArgument, id: Annotated[str, typer.Argument(help="The token's id.")]) -> None:  # noqa: A002
    """Revoke a token at once.

    Examples:

      duelpool token revoke campaign.db 1f0c9a4e7b21
    """
    with _administration(store) as administration:
        revoked = administration.revoke_token(id)
    typer.echo(f"Revoked token {revoked.id} ({revoked.label}).")


@key.command()
def rotate(
    store: StoreArgument,
    grace_days: Annotated[
        float, typer.Option(min=0, help="How many days the old key's signatures stay valid; 0: not at all.")
    ] = keys.GRACE_DAYS,
) -> None:
    """Sign with a new key from now on; running servers pick it up automatically.

    Examples:

      duelpool key rotate campaign.db
    """
    with _administration(store) as administration:
        until = administration.rotate_keys(grace_days)
    if grace_days:
        end = log.iso_time(until)[:16].replace("T", " ")
        typer.echo(f"Links and sessions signed with the old key work until {end}.")
    else:
        typer.echo("Every earlier link and session has ended. Print new links with `duelpool link`.")


def _day(time: float) -> str:
    return log.iso_time(time)[:10]
