"""Where else files come from: ir_datasets (`irds:NAME`), Hugging Face datasets (`hf:OWNER/NAME`), and Parquet.

Readers read by `text_source`. A dataset or a Parquet file becomes a source with the lines that a text file of the same
content would have, so that both give the same records.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, Literal, TypeAlias, cast

from duelpool.errors import BadFile, DuelpoolError
from duelpool.files.collections.lines import Row, lines_of
from duelpool.files.columns import read_parquet
from duelpool.files.source import PARQUET, ZIP, Readable, Source, not_text, read_source

What: TypeAlias = Literal["run", "qrels", "truth", "topics", "passages", "table"]
"""What a reader wants; a truth is qrels, a run or preferences, and a table has named columns."""

IRDS, HF = "irds:", "hf:"
PREFIXES = (IRDS, HF)


def is_dataset(path: Readable) -> bool:
    """Whether a path names a dataset of ir_datasets or of Hugging Face."""
    return not isinstance(path, Source) and os.fspath(path).startswith(PREFIXES)


def text_source(path: Readable, what: What, only: Collection[str] | None = None) -> Source:
    """Read a file whole, once; a dataset or a Parquet file as the lines of a text file with the same content.

    Of the documents of ir_datasets, those with an id of `only` are fetched, where it is given.
    """
    if is_dataset(path):
        return _dataset(os.fspath(cast("str", path)), what, only)
    source = read_source(path, binary=True)
    if source.data.startswith(PARQUET):
        return _source(source.name, read_parquet(source).iter_rows(named=True), what)
    if source.data.startswith(ZIP):
        raise not_text(source.name)
    return source


def table_path(path: Readable) -> Readable:
    """Return what a reader of tables takes: a path as it is, a dataset as JSON lines."""
    return _dataset(os.fspath(cast("str", path)), "table", None) if is_dataset(path) else path


def _dataset(name: str, what: What, only: Collection[str] | None) -> Source:
    if name.startswith(IRDS):
        from duelpool.files.collections.irds import irds_rows

        return _loaded(name, lambda: irds_rows(name.removeprefix(IRDS), what, only), what)
    from duelpool.files.collections.hugging_face import hugging_face_rows

    return _loaded(name, lambda: hugging_face_rows(name.removeprefix(HF)), what)


def _loaded(name: str, rows: Callable[[], Iterable[Row]], what: What) -> Source:
    """Return the lines of a dataset; whatever its library raises becomes an error with the dataset's name."""
    try:
        return _source(name, _named_errors(rows), what)
    except _LoadError as error:
        reason = str(error.__cause__).strip().splitlines() or [type(error.__cause__).__name__]
        raise BadFile.at(
            name,
            None,
            f"The dataset can't be loaded ({reason[0][:200]}).",
            "Check its name. The first use downloads it: that needs the network, and later uses don't.",
        ) from None


class _LoadError(Exception):
    """An error of a dataset's own library."""


def _named_errors(rows: Callable[[], Iterable[Row]]) -> Iterator[dict[str, Any]]:
    try:
        yield from map(dict, rows())
    except DuelpoolError:
        raise
    except Exception as error:
        raise _LoadError from error


def _source(name: str, rows: Iterable[Row], what: What) -> Source:
    data = "".join(f"{line}\n" for line in lines_of(name, rows, what)).encode()
    if not data:
        raise BadFile.at(name, None, "The dataset has no rows.", "Check its name and its split.")
    return Source(name, data)
