"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

StoreArgument: TypeAlias = Annotated[str, typer.Argument(help="The campaign's file, or a PostgreSQL URL.")]
CampaignOption: TypeAlias = Annotated[
    str | None, typer.Option("--campaign", help="The campaign's name, if the store holds several.")
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
YesOption: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask for confirmation.")]
ReasonOption: TypeAlias = Annotated[str, typer.Option(help="The reason, for the log.")]
STORE_ENDINGS = (".db", ".sqlite", ".sqlite3")


def is_store(output: str) -> bool:
    """Say whether a name is that of a store, not of another file."""
    return "://" in output or Path(output).suffix in STORE_ENDINGS
