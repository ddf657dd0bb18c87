"""Arguments and options that several commands share."""

from typing import Annotated, TypeAlias

import typer

from duelpool.files.paths import is_store

__all__ = [
    "AllowMissingQuestions",
    "AllowMissingTexts",
    "CampaignOption",
    "JsonOption",
    "ReasonOption",
    "StoreArgument",
    "YesOption",
    "is_store",
]

StoreArgument: TypeAlias = Annotated[str, typer.Argument(help="The campaign's file, or a PostgreSQL URL.")]
CampaignOption: TypeAlias = Annotated[
    str | None, typer.Option("--campaign", help="The campaign's name, if the store holds several.")
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
YesOption: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask for confirmation.")]
AllowMissingTexts: TypeAlias = Annotated[
    bool, typer.Option("--allow-missing-texts", help="Let people judge items without text: empty passages.")
]
AllowMissingQuestions: TypeAlias = Annotated[
    bool,
    typer.Option("--allow-missing-questions", help="Let people judge topics without question: by their ids."),
]
ReasonOption: TypeAlias = Annotated[str, typer.Option(help="The reason, for the log.")]
