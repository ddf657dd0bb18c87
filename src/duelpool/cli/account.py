"""`duelpool account`, `duelpool token` and `duelpool key`: who may come in, people and programs alike."""

import sys
from collections.abc import Callable
from typing import Annotated, TypeVar

import typer
from rich.table import Table
from sqlalchemy import Connection

from duelpool.access import ROLES, accounts, audit_log, keys, tokens
from duelpool.access.accounts import EVERYWHERE, Account
from duelpool.access.roles import FOR_TOKENS
from duelpool.cli.frame import print_json, print_table, tell
from duelpool.cli.opening import CampaignOption, JsonOption, StoreArgument
from duelpool.errors import BadParameter
from duelpool.store import holdings, log, open_store

T = TypeVar("T")


def _group(text: str) -> typer.Typer:
    return typer.Typer(
        no_args_is_help=True,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
        help=text,
    )


account = _group(
    "Accounts of people: who may manage, look or judge.\n\n"
    "Examples:\n\n"
    "  duelpool account add campaign.db anna --role manager\n\n"
    "  duelpool account add campaign.db ben --role viewer --campaign letters\n\n"
    "  duelpool account list campaign.db"
)
token = _group(
    "Tokens of programs: shown once, for some scopes, until a day.\n\n"
    "Examples:\n\n"
    "  duelpool token new campaign.db --label nightly --scope export --days 30\n\n"
    "  duelpool token revoke campaign.db 1f0c9a4e7b21"
)
key = _group(
    "The key that signs links, cookies and forms.\n\n"
    "Examples:\n\n"
    "  duelpool key rotate campaign.db\n\n"
    "  duelpool key rotate campaign.db --grace-days 0"
)

NameArgument = Annotated[str, typer.Argument(help="The account's name.")]
PasswordOption = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password from standard input, one line.")
]


def _changed(store: str, campaign: str | None, action: str, work: Callable[[Connection, float, str], T]) -> T:
    """Run work(connection, now, campaign's id) and note who did it, in one transaction."""
    with open_store(store) as opened:

        def whole(connection: Connection, now: float) -> T:
            of = EVERYWHERE
            if campaign is not None:
                of = holdings.find_campaign(connection, campaign).id
            found = work(connection, now, of)
            about = getattr(found, "name", "") or getattr(found, "id", "")
            audit_log.record(connection, now, audit_log.shell_user(), action, str(about), campaign=of or None)
            return found

        return opened.write(whole)


def _password(from_stdin: bool) -> str:
    if from_stdin:
        return sys.stdin.readline().rstrip("\n")
    if not sys.stdin.isatty():
        raise BadParameter("Nobody is here to type a password.", remedy="Give it with --password-stdin.")
    return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True))


def _told(found: Account, what: str) -> None:
    typer.echo(f"{found.name}: {what}.")


@account.command()
def add(
    store: StoreArgument,
    name: NameArgument,
    role: Annotated[str, typer.Option(help=f"One of {', '.join(ROLES)}.")],
    password_stdin: PasswordOption = False,
    campaign: CampaignOption = None,
) -> None:
    """Make an account, for one campaign or for all of the store.

    Examples:

      duelpool account add campaign.db anna --role manager
    """
    password = _password(password_stdin)
    made = _changed(
        store,
        campaign,
        f"made an account ({role})",
        lambda connection, now, of: accounts.add(connection, name, password, role, now, campaign=of),
    )
    _told(made, f"made, as {role} of {campaign or 'every campaign'}")


@account.command("list")
def list_accounts(store: StoreArgument, as_json: JsonOption = False) -> None:
    """List the accounts with their roles.

    Examples:

      duelpool account list campaign.db
    """
    with open_store(store, writable=False) as opened:
        found = opened.read(accounts.all_accounts)
        names = {row.id: row.name for row in opened.read(holdings.campaigns)}
    rows = [
        {
            "name": each.name,
            "state": each.state,
            "created": log.iso_time(each.created),
            "roles": {names.get(of, of) or "every campaign": role for of, role in each.roles.items()},
        }
        for each in found
    ]
    if as_json:
        print_json(rows)
        return
    table = Table("name", "state", "roles", "made")
    for row in rows:
        roles = row["roles"]
        said = ", ".join(f"{role} of {of}" for of, role in roles.items()) if isinstance(roles, dict) else ""
        table.add_row(str(row["name"]), str(row["state"]), said, str(row["created"])[:10])
    if rows:
        print_table(table)
    else:
        typer.echo("There is no account yet. The manager's link makes the first, or `duelpool account add`.")


@account.command()
def role(
    store: StoreArgument,
    name: NameArgument,
    role: Annotated[str, typer.Argument(help=f"One of {', '.join(ROLES)}, or none.")],
    campaign: CampaignOption = None,
) -> None:
    """Give somebody a role in a campaign or in all, or take it away with `none`.

    Examples:

      duelpool account role campaign.db ben viewer --campaign letters
    """
    chosen = None if role == "none" else role
    found = _changed(
        store,
        campaign,
        f"set a role ({role})",
        lambda connection, now, of: accounts.set_role(connection, name, chosen, of),
    )
    _told(found, f"{role} of {campaign or 'every campaign'}")


@account.command()
def password(store: StoreArgument, name: NameArgument, password_stdin: PasswordOption = False) -> None:
    """Set another password; every session of the account ends.

    Examples:

      duelpool account password campaign.db anna
    """
    given = _password(password_stdin)
    found = _changed(
        store,
        None,
        "set a password",
        lambda connection, now, of: accounts.set_password(connection, name, given),
    )
    _told(found, "the password is changed, and every session has ended")


@account.command()
def logout(store: StoreArgument, name: NameArgument) -> None:
    """End every session of an account.

    Examples:

      duelpool account logout campaign.db anna
    """
    found = _changed(
        store,
        None,
        "ended all sessions of",
        lambda connection, now, of: accounts.end_sessions(connection, name),
    )
    _told(found, "every session has ended")


@account.command()
def lock(
    store: StoreArgument,
    name: NameArgument,
    undo: Annotated[bool, typer.Option("--undo", help="Let them in again.")] = False,
) -> None:
    """Lock somebody out: no session, no signing in.

    Examples:

      duelpool account lock campaign.db ben
    """
    state = "in" if undo else "out"
    found = _changed(
        store,
        None,
        "let in again" if undo else "locked out",
        lambda connection, now, of: accounts.set_state(connection, name, state),
    )
    _told(found, "let in again" if undo else "locked out")


@token.command("new")
def new_token(
    store: StoreArgument,
    label: Annotated[str, typer.Option(help="Which program it is for.")],
    scope: Annotated[list[str], typer.Option(help=f"May be repeated: {', '.join(FOR_TOKENS)}.")],
    days: Annotated[float, typer.Option(help="How long it is good.")] = tokens.DAYS,
    campaign: CampaignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a token for a program; it is shown now and never again.

    Examples:

      duelpool token new campaign.db --label nightly --scope read --scope export
    """
    text = ""

    def work(connection: Connection, now: float, of: str) -> tokens.Token:
        nonlocal text
        made, text = tokens.make(
            connection, label, scope, now, campaign=of, days=days, made_by=audit_log.shell_user()
        )
        return made

    made = _changed(store, campaign, f"made a token ({' '.join(scope)})", work)
    if as_json:
        print_json(
            {"id": made.id, "token": text, "scopes": made.scopes, "expires": log.iso_time(made.expires)}
        )
        return
    typer.echo(text)
    tell(f"Good until {log.iso_time(made.expires)[:10]}. Keep it: it isn't shown again.")


@token.command("list")
def list_tokens(store: StoreArgument, as_json: JsonOption = False) -> None:
    """List the tokens, without their secrets.

    Examples:

      duelpool token list campaign.db
    """
    with open_store(store, writable=False) as opened:
        found = opened.read(tokens.all_tokens)
        now = opened.read(opened.database.now)
        names = {row.id: row.name for row in opened.read(holdings.campaigns)}
    rows = [
        {
            "id": each.id,
            "label": each.label,
            "campaign": names.get(each.campaign, "") or None,
            "scopes": list(each.scopes),
            "made_by": each.made_by,
            "expires": log.iso_time(each.expires),
            "good": each.is_valid(now),
        }
        for each in found
    ]
    if as_json:
        print_json(rows)
        return
    table = Table("id", "label", "campaign", "scopes", "until", "good")
    for each in found:
        campaign = names.get(each.campaign, "") or "every campaign"
        until, good = log.iso_time(each.expires)[:10], "yes" if each.is_valid(now) else "no"
        table.add_row(each.id, each.label, campaign, " ".join(each.scopes), until, good)
    if found:
        print_table(table)
    else:
        typer.echo("There is no token. `duelpool token new` makes one.")


@token.command()
def revoke(store: StoreArgument, id: Annotated[str, typer.Argument(help="The token's id.")]) -> None:  # noqa: A002
    """End a token at once.

    Examples:

      duelpool token revoke campaign.db 1f0c9a4e7b21
    """
    found = _changed(
        store, None, "revoked a token", lambda connection, now, of: tokens.revoke(connection, id, now)
    )
    typer.echo(f"{found.id} ({found.label}) opens nothing any more.")


@key.command()
def rotate(
    store: StoreArgument,
    grace_days: Annotated[
        float, typer.Option(min=0, help="How long what the old key signed is still taken; 0 ends all of it.")
    ] = keys.GRACE_DAYS,
) -> None:
    """Sign with a new key from now on; running servers take it up by themselves.

    Examples:

      duelpool key rotate campaign.db
    """
    until = _changed(
        store,
        None,
        f"replaced the signing key, {grace_days:g} days of grace",
        lambda connection, now, of: keys.rotate(connection, now, grace_days),
    )
    if grace_days:
        typer.echo(
            f"Links and sessions of the old key work until {log.iso_time(until)[:16].replace('T', ' ')}."
        )
    else:
        typer.echo("Every link, visit and session of before has ended. Print new links with `duelpool link`.")
