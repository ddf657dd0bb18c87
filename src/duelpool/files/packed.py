"""Runs as bytes, for storage in a database."""

import io
from pathlib import Path

import polars as pl

from duelpool.files.runs import Run


def pack_run(run: Run, depth: int | None = None) -> bytes:
    """Return a run as bytes, its first `depth` documents of each topic, for `unpack_run`."""
    frame = run.frame if depth is None else run.top(depth).select(run.frame.columns)
    packed = io.BytesIO()
    called = {"tag": run.tag, "file": Path(run.file).name}
    frame.write_parquet(packed, compression="zstd", metadata=called)
    return packed.getvalue()


def unpack_run(name: str, data: bytes) -> Run:
    """Return the run that `pack_run` packed."""
    called = pl.read_parquet_metadata(io.BytesIO(data))  # a run that an earlier release kept has no tag there
    frame = pl.read_parquet(io.BytesIO(data))
    return Run(name, frame, called.get("tag", name), file=called.get("file", ""))
