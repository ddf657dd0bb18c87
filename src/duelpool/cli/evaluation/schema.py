"""`duelpool schema`: the JSON Schemas of the files that Duelpool writes."""

from typing import Annotated

import typer

from duelpool.schemas import SCHEMAS, schema_text


def schema(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help=f"One of {', '.join(SCHEMAS)}; a list without it.")
    ] = None,
) -> None:
    """Print the JSON Schema (2020-12) of a kind of file, for validators and editors.

    Examples:

    duelpool schema

    duelpool schema judgment > judgment.schema.json
    """
    if name is not None:
        typer.echo(schema_text(name), nl=False)
        return
    width = max(map(len, SCHEMAS))
    for each, about in SCHEMAS.items():
        typer.echo(f"{each:{width}}  {about}")
