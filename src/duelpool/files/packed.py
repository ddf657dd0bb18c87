"""Runs as bytes, for storage in a database."""

import io

import polars as pl

from duelpool.files.runs import Run


def pack_run(run: Run, depth: int | None = None) -> bytes:
    """Return a run as bytes, its first `depth` documents of each topic, for `unpack_run`."""
    frame = run.frame if depth is None else run.top(depth).select(run.frame.columns)
    packed = io.BytesIO()
    frame.write_parquet(packed, compression="zstd")
    return packed.getvalue()


def unpack_run(name: str, data: bytes) -> Run:
    """Return the run that `pack_run` packed."""
    return Run(name, pl.read_parquet(io.BytesIO(data)), name)
