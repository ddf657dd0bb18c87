"""Bytes in, bytes out: a path or standard input, plain or gzip; files written whole or not at all."""

import gzip
import io
import os
import shutil
import stat
import sys
import tempfile
import weakref
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeAlias, cast

from duelpool.durable import NO_SPACE, give_name, is_device
from duelpool.errors import BadFile

STANDARD_INPUT = "-"

BLOCK = 1 << 20
"""Bytes that are read at once."""

_START = 4096
_DATASETS = ("irds:", "hf:")  # read by `duelpool.files.collections`, for some kinds of files
_OPEN_FILES = ("/dev/fd/", "/dev/std", "/proc/self/fd/")  # open files of this process, by name
_GZIP_MAGIC = b"\x1f\x8b"
_UTF8_MARK = b"\xef\xbb\xbf"
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")
PARQUET, ZIP = b"PAR1", b"PK\x03\x04"
_KNOWN_ENDINGS = (
    ".gz",
    ".run",
    ".txt",
    ".trec",
    ".res",
    ".tsv",
    ".qrels",
    ".qrel",
    ".jsonl",
    ".ndjson",
    ".json",
)


@dataclass(frozen=True, slots=True)
class Source:
    """A file's name, for messages, and its unpacked bytes."""

    name: str
    data: bytes
    marked: bool = False  # it began with a UTF-8 byte order mark, which is no longer in `data`

    def lines(self) -> list[bytes]:
        """Return the lines without their ends; the last one may lack its newline."""
        lines = self.data.split(b"\n")
        if lines and not lines[-1]:
            lines.pop()
        return lines


Readable: TypeAlias = str | os.PathLike[str] | Source
"""What a reader takes: a path, "-" for standard input, or a source that was read before."""

_already_read: "weakref.WeakSet[object]" = weakref.WeakSet()  # standard inputs: a pipe can be read once


@dataclass(slots=True)
class OpenSource:
    """A file that is read as it is needed: its name, for messages, its first bytes, and the file that has the rest."""

    name: str
    start: bytes
    file: BinaryIO
    marked: bool = False
    plain: BinaryIO | None = (
        None  # the file itself, where it isn't packed and can be read again from its start
    )

    def blocks(self) -> Iterator[bytes]:
        """Yield the unpacked bytes, a block at a time; once only."""
        block, self.start = self.start, b""
        while block:
            yield block
            block = _read_block(self.name, self.file)

    def lines(self, visit: Callable[[bytes], None] = lambda _: None) -> Iterator[bytes]:
        """Yield the lines without their ends; `visit` gets every block before its lines are yielded. Once only."""
        rest = b""
        for block in self.blocks():
            visit(block)
            lines = (rest + block if rest else block).split(b"\n")
            rest = lines.pop()
            yield from lines
        if rest:
            yield rest

    def whole(self) -> Source:
        """Read the rest, and return all of it."""
        if self.plain is None:
            data = b"".join(self.blocks())
        else:  # all at once: joining blocks takes twice the time
            self.plain.seek(0)
            data = _read_block(self.name, self.plain, -1)
            data = data[len(_UTF8_MARK) :] if self.marked else data
        if not (data[:_START].strip() or data.strip()):
            raise _empty_file(self.name)
        return Source(self.name, data, marked=self.marked)


def read_source(path: Readable, *, binary: bool = False) -> Source:
    """Read a whole file, or standard input for "-", unpacking gzip by its first bytes, not by its name.

    A source is returned as it is: who looks at a file before reading it reads the source, not the path again. Bytes
    that are no text are refused unless the reader takes `binary` forms such as Parquet.
    """
    if isinstance(path, Source):
        return path
    with open_source(path, binary=binary) as opened:
        return opened.whole()


@contextmanager
def open_source(path: Readable, *, binary: bool = False) -> Iterator[OpenSource]:
    """Open a file, or standard input for "-", as `read_source` does, to be read a block at a time."""
    if isinstance(path, Source):
        yield OpenSource(path.name, path.data, io.BytesIO(), path.marked)
        return
    name = shown_name(path)
    with _opened(os.fspath(path), name) as file:
        magic = _first_bytes(name, file, len(_GZIP_MAGIC))
        packed = magic == _GZIP_MAGIC
        joined = cast("BinaryIO", _Rejoined(magic, file))
        unpacked = cast("BinaryIO", gzip.GzipFile(fileobj=joined)) if packed else joined
        start = _first_bytes(name, unpacked, BLOCK)
        marked = start.startswith(_UTF8_MARK)
        if marked:
            start = start[len(_UTF8_MARK) :]
        if not start:
            raise _empty_file(name)
        known = binary and start.startswith((PARQUET, ZIP))
        if not known and (start.startswith(_WIDE_MARKS) or b"\0" in start[:_START]):
            raise not_text(name)
        again = not packed and _is_file(os.fspath(path), file)
        yield OpenSource(name, start, unpacked, marked, file if again else None)


def not_text(name: str) -> BadFile:
    """Return the error for a file that isn't text."""
    problem = "The file is binary, or text in UTF-16."
    return BadFile.at(name, None, problem, "Save it as plain UTF-8 text (or gzip of that).")


def _is_file(path: str, file: BinaryIO) -> bool:
    """Whether this is an ordinary file by its own name: standard input and pipes can't be read again."""
    named = path != STANDARD_INPUT and not path.startswith(_OPEN_FILES)
    return named and stat.S_ISREG(os.fstat(file.fileno()).st_mode)


def _empty_file(name: str) -> BadFile:
    return BadFile.at(name, None, "The file is empty.", "Check that the step which wrote it has finished.")


class _Rejoined:
    """A file whose first bytes were read already; it needn't be able to go back, as a pipe can't."""

    def __init__(self, start: bytes, file: BinaryIO) -> None:
        self._start = start
        self._file = file

    def read(self, size: int = -1) -> bytes:
        start, self._start = self._start, b""
        return start + self._file.read(size - len(start) if size >= len(start) else size)


@contextmanager
def _opened(path: str, name: str) -> Iterator[BinaryIO]:
    if path == STANDARD_INPUT:
        yield _standard_input()
        return
    try:
        file = Path(path).open("rb")  # noqa: SIM115 (closed below)
    except FileNotFoundError:
        remedy = (
            "This can't come from a dataset: name a file."
            if path.startswith(_DATASETS)
            else "Check the path."
        )
        raise BadFile.at(name, None, "There is no such file.", remedy) from None
    except IsADirectoryError:
        raise BadFile.at(name, None, "This is a folder, not a file.", "Name the files in it.") from None
    except OSError as error:
        raise BadFile.at(name, None, f"The file can't be read ({error.strerror}).") from None
    with file:
        yield file


def shown_name(path: str | os.PathLike[str]) -> str:
    """Return a path as messages name it."""
    return "standard input" if os.fspath(path) == STANDARD_INPUT else os.fspath(path)


def _standard_input() -> BinaryIO:
    if sys.stdin in _already_read and not sys.stdin.isatty():
        raise BadFile.at(
            "standard input",
            None,
            "It can be read only once, and '-' is given twice.",
            "Name a file for one.",
        )
    _already_read.add(sys.stdin)
    return cast("BinaryIO", sys.stdin.buffer)


def _first_bytes(name: str, file: BinaryIO, size: int) -> bytes:
    """Return the first `size` bytes, fewer only where the file has no more: a pipe gives them in parts."""
    parts: list[bytes] = []
    missing = size
    while missing and (part := _read_block(name, file, missing)):
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def _read_block(name: str, file: BinaryIO, size: int = 0) -> bytes:
    try:
        return file.read(size or BLOCK)
    except EOFError:
        raise BadFile.at(
            name, None, "The gzip file is cut off: its end is missing.", "Fetch or write it again."
        ) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise BadFile.at(
            name, None, f"The gzip file is damaged ({error}).", "Fetch or write it again."
        ) from None
    except OSError as error:
        raise BadFile.at(name, None, f"The file can't be read ({error.strerror}).") from None


def stem(path: str | os.PathLike[str]) -> str:
    """Return a file's name without folder and without the usual endings (`bm25.run.gz` is `bm25`)."""
    name = Path(path).name
    trimmed = True
    while trimmed:
        trimmed = False
        for ending in _KNOWN_ENDINGS:
            if name.lower().endswith(ending) and len(name) > len(ending):
                name, trimmed = name[: -len(ending)], True
    return name


def write_lines(path: str | os.PathLike[str], lines: Iterable[str], *, private: bool = False) -> None:
    """Write text lines to a path (gzip when it ends in .gz) or to standard output for "-".

    The file appears under its name only when it is complete; a failure leaves the old file as it was. A `private` file
    is for its owner alone. A generator of lines is closed at once, with what it holds open.
    """
    with closed_after(lines):
        _write_to(os.fspath(path), lines, private)


@contextmanager
def closed_after(lines: Iterable[str]) -> Iterator[None]:
    """Close a generator of lines at the end, and with it the source that it reads."""
    try:
        yield
    finally:
        if isinstance(lines, Generator):
            lines.close()


def _write_to(name: str, lines: Iterable[str], private: bool) -> None:
    if name == STANDARD_INPUT:
        for line in lines:
            sys.stdout.write(line + "\n")
        sys.stdout.flush()  # a full disk is noticed here, not when the process ends
        return
    with written_whole(name, private=private) as partial, partial.open("wb") as raw:
        if name.endswith(".gz"):  # no time stamp: the same lines give the same bytes
            with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
                _write(cast("BinaryIO", packed), lines)
        else:
            _write(raw, lines)


@contextmanager
def written_whole(path: str | os.PathLike[str], *, private: bool = False) -> Iterator[Path]:
    """Yield the path of a file to write; it gets its name when it is complete and on the disk, or is deleted.

    The file is for its owner alone while it is written, and afterwards where it is `private`. A device or a pipe, such
    as /dev/null and /dev/stdout, is written to and never replaced.
    """
    target = Path(path)
    device = is_device(target) or os.fspath(path).startswith(_OPEN_FILES)
    try:
        handle, name = tempfile.mkstemp(dir=None if device else target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise unwritable(os.fspath(path), error) from None
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
        if device:
            with partial.open("rb") as complete, target.open("ab") as out:
                shutil.copyfileobj(complete, out)
            return
        if not private:
            partial.chmod(0o666 & ~_umask())
        give_name(partial, target)
    except OSError as error:
        if error.strerror is None or error.filename not in (None, name):
            raise  # about another file
        raise unwritable(os.fspath(path), error) from None
    finally:
        with suppress(FileNotFoundError):
            partial.unlink()


def unwritable(name: str, error: OSError) -> BadFile:
    """Return the error for a file that couldn't be written; nothing is left of it."""
    remedy = "Check the folder and its permissions."
    if error.errno in NO_SPACE:
        remedy = "Free some space, or write to another disk; nothing was written."
    return BadFile.at(name, None, f"The file can't be written ({error.strerror}).", remedy)


def _write(file: BinaryIO, lines: Iterable[str]) -> None:
    for line in lines:
        file.write(line.encode("utf-8") + b"\n")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
