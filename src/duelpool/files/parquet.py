"""Parquet out: tables that pandas, polars and `datasets` read."""

import os
from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from duelpool.files.source import written_whole


def is_parquet_name(path: str | os.PathLike[str]) -> bool:
    """Whether a file's name asks for Parquet."""
    return os.fspath(path).lower().endswith(".parquet")


def write_parquet(
    path: str | os.PathLike[str],
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    numbers: Sequence[str] = (),
    private: bool = False,
) -> None:
    """Write rows as a table; columns are text unless they are among `numbers`."""
    kinds = {name: pl.Float64 if name in numbers else pl.String for name in columns}

    def cell(name: str, value: Any) -> str | float | None:
        return None if value is None else float(value) if name in numbers else str(value)

    listed = [[cell(name, value) for name, value in zip(columns, row, strict=True)] for row in rows]
    with written_whole(path, private=private) as partial:
        pl.DataFrame(listed, schema=kinds, orient="row").write_parquet(partial)
