"""Runs as bytes, for storage in a database."""

import io
from hashlib import blake2b
from pathlib import Path

import polars as pl

from duelpool.errors import BadRecord
from duelpool.files.runs import Run

_HEAD = (
    b"duelpool run 1\n"  # then a digest of the rest, which is Parquet; earlier releases kept Parquet alone
)
_DIGEST = 16


def pack_run(run: Run, depth: int | None = None) -> bytes:
    """Return a run as bytes, its first `depth` documents of each topic, for `unpack_run`."""
    frame = run.frame if depth is None else run.top(depth).select(run.frame.columns)
    packed = io.BytesIO()
    called = {"tag": run.tag, "file": Path(run.file).name}
    frame.write_parquet(packed, compression="zstd", metadata=called)
    data = packed.getvalue()
    return _HEAD + _digest(data) + data


def unpack_run(name: str, data: bytes) -> Run:
    """Return the run that `pack_run` packed; refuse damaged bytes, which Parquet alone may read as another run."""
    damaged = BadRecord(f"The stored run '{name}' is damaged.", remedy="Restore a backup of the store.")
    if data.startswith(_HEAD):
        digest, data = data[len(_HEAD) :][:_DIGEST], data[len(_HEAD) + _DIGEST :]
        if digest != _digest(data):
            raise damaged
    elif not data.startswith(b"PAR1"):
        raise damaged
    try:
        called = pl.read_parquet_metadata(io.BytesIO(data))  # the runs of earlier releases have no tag there
        frame = pl.read_parquet(io.BytesIO(data))
        frame.select("topic", "docno", "score")
        return Run(name, frame, called.get("tag", name), file=called.get("file", ""))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError):
        raise damaged from None


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST).digest()
