"""Arguments and options that several commands share."""

from typing import Annotated, TypeAlias

import typer

from duelpool.files.paths import is_store

__all__ = ["CampaignOption", "JsonOption", "ReasonOption", "StoreArgument", "YesOption", "is_store"]

StoreArgument: TypeAlias = Annotated[str, typer.Argument(help="The campaign's file, or a PostgreSQL URL.")]
CampaignOption: TypeAlias = Annotated[
    str | None, typer.Option("--campaign", help="The campaign's name, if the store holds several.")
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
YesOption: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask for confirmation.")]
ReasonOption: TypeAlias = Annotated[str, typer.Option(help="The reason, for the log.")]
