"""Uploaded files: stored under their own names in one folder, bounded, and never outside of it.

An `UploadFolder` checks files while it receives them: names without a path, a maximum size, packed files that don't
unpack beyond a limit, and archives of plain files with plain names.
"""

import errno
import gzip
import lzma
import os
import secrets
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from duelpool.durable import give_name
from duelpool.errors import BadFile, BadRecord, DuelpoolError, UnknownName
from duelpool.setup.inputs import Files

KINDS = ("answers", "runs", "qrels", "prefs", "topics", "texts", "tests", "groups")
"""What an uploaded file can be."""

SEVERAL = ("answers", "runs")
"""The kinds of which there may be several files, and not one alone."""

ARCHIVE = "archive"
"""A zip of a folder: the kinds of its files go by their names."""

_STARTS = {
    "answers": ("answer", "response"),
    "qrels": ("qrel", "grades"),
    "prefs": ("pref",),
    "topics": ("topic", "queries", "questions"),
    "texts": ("text", "passage", "doc", "corpus"),
    "tests": ("test",),
    "groups": ("group",),
}
_NAME_BYTES = 180
_PIECE = 1 << 20
_GZIP_MAGIC = b"\x1f\x8b"


_NO_ZIP = (
    *(zipfile.BadZipFile, zlib.error, struct.error, lzma.LZMAError),
    *(EOFError, NotImplementedError, RuntimeError, ValueError, OSError),
)  # what Python raises for a damaged zip


class TooMuch(DuelpoolError):
    """A file, or all files together, beyond the limits of an upload."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of an upload, in bytes unpacked; `ratio` is how many times larger a packed file may become."""

    file: int = 512 << 20
    whole: int = 2 << 30
    files: int = 1000
    ratio: int = 200


def checked_name(name: str) -> str:
    """Return a file's name, or refuse one that is a path, hidden, or not printable."""
    sound = (
        name.strip()
        and name not in {".", ".."}
        and not name.startswith(".")
        and "/" not in name
        and "\\" not in name
        and name.isprintable()
        and len(name.encode(errors="surrogatepass")) <= _NAME_BYTES
    )
    try:
        name.encode()
    except UnicodeEncodeError:
        sound = False
    if not sound:
        raise BadRecord(
            f"A file can't be called {name[:80]!r}.",
            remedy="A name has no path in it, doesn't begin with a dot, and is plain text.",
        )
    return name


def kind_by_name(path: PurePosixPath) -> str | None:
    """Return the kind of a file by its folder or the beginning of its name; None where these don't say."""
    name = path.name.lower()
    if "runs" in path.parts[:-1]:
        return "runs"
    if "queries" in name or "questions" in name:  # test-queries.tsv has no test pairs
        return "topics"
    for kind, starts in _STARTS.items():
        if name.startswith(starts) or kind in path.parts[:-1]:
            return kind
    return "runs" if name.removesuffix(".gz").endswith((".run", ".res")) else None


def unpacked_size(path: Path) -> int:
    """Return a file's size, of gzip unpacked, as its last bytes say; it was checked when it was received."""
    with path.open("rb") as data:
        size = data.seek(0, 2)
        data.seek(0)
        if size < 18 or data.read(2) != _GZIP_MAGIC:
            return size
        data.seek(-4, 2)
        return max(size, int.from_bytes(data.read(4), "little"))


class UploadFolder:
    """A folder with the uploaded files of one draft."""

    def __init__(self, folder: Path, limits: Limits | None = None) -> None:
        self.folder = folder
        self.limits = limits or Limits()

    # ---- reading

    def of(self, kind: str) -> list[Path]:
        """Return the files of a kind, by name."""
        try:
            return sorted(each for each in (self.folder / kind).iterdir() if each.is_file())
        except (FileNotFoundError, NotADirectoryError):
            return []

    def files(self, tests: str | None = None, *, fields: str = "", pages: bool = False) -> Files:
        """Return the files for reading; `tests` is the source of test pairs where there is no file of them."""
        one = {kind: str(paths[0]) if (paths := self.of(kind)) else None for kind in KINDS}
        runs = tuple(str(path) for path in self.of("runs"))
        return Files(
            runs,
            one["qrels"],
            one["prefs"],
            one["topics"],
            one["texts"],
            one["tests"] or tests,
            one["groups"],
            tuple(str(path) for path in self.of("answers")),
            fields if self.of("answers") else "",
            pages,
        )

    def listed(self) -> list[tuple[str, str, int]]:
        """Return kind, name and size of every file."""
        return [(path.parent.name, path.name, about.st_size) for path, about in self.found()]

    def found(self) -> list[tuple[Path, os.stat_result]]:
        """Return every file with its size and times; one that another request removes meanwhile is left out."""
        found = []
        for path in (each for kind in KINDS for each in self.of(kind)):
            with suppress(FileNotFoundError):
                found.append((path, path.stat()))
        return found

    def shown(self, place: str) -> str:
        """Return a place in a file without the folder, as the user knows it."""
        return place.replace(f"{self.folder}/", "")

    @contextmanager
    def without_folder(self) -> Iterator[None]:
        """Let errors name files without the folder, as the user knows them."""
        try:
            yield
        except BadFile as error:
            error.place = self.shown(error.place)
            raise

    # ---- receiving

    @contextmanager
    def receiving(self, kind: str, name: str) -> Iterator[Callable[[bytes], None]]:
        """Yield a function that takes a file's bytes; the file appears once it is complete and checked."""
        if kind not in {*KINDS, ARCHIVE}:
            raise UnknownName("kind of file", kind, (*KINDS, ARCHIVE))
        name = checked_name(name)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = self.folder / f".part-{secrets.token_hex(6)}"
        size = 0
        try:
            part.touch(mode=0o600)
            with part.open("wb") as out:

                def write(data: bytes) -> None:
                    nonlocal size
                    size += len(data)
                    self._refuse_too_much(name, size)
                    out.write(data)

                yield write
            if not size:
                raise BadFile.at(name, None, "The file is empty.", "Choose it again.")
            if kind == ARCHIVE:
                self._unpack(part, name)
            else:
                self._keep(part, kind, name)
        finally:
            part.unlink(missing_ok=True)

    def remove(self, kind: str, name: str) -> bool:
        """Delete a file; return whether it was there."""
        for path in self.of(kind) if kind in KINDS else ():
            if path.name == name:
                path.unlink(missing_ok=True)
                return True
        return False

    def move(self, kind: str, name: str, to: str) -> bool:
        """Make a file one of another kind; return whether it was there."""
        if to not in KINDS:
            raise UnknownName("kind of file", to, KINDS)
        for path in self.of(kind) if kind in KINDS else ():
            if path.name == name:
                if to != kind:
                    self._keep(path, to, name)
                return True
        return False

    def clear(self) -> None:
        """Delete the folder with all its files."""
        shutil.rmtree(self.folder, ignore_errors=True)

    # ---- internal

    def _refuse_too_much(self, name: str, size: int) -> None:
        if size > self.limits.file:
            raise TooMuch(
                f"The file is larger than {self.limits.file >> 20:,} MB.",
                place=name,
                remedy="Pack it with gzip, or use the command line: `duelpool pool ... -o STORE`.",
            )

    def _keep(self, part: Path, kind: str, name: str) -> None:
        """Move a complete file into its place, where it replaces one of the same name or kind."""
        with part.open("rb") as data:
            unpacked = self._unpacked_size(data, name)
        others = [path for path in self.of(kind) if kind in SEVERAL and path.name != name]
        if len(others) >= self.limits.files:
            raise TooMuch(f"There are more than {self.limits.files:,} files.", remedy="Send fewer.")
        whole = sum(size for _, _, size in self.listed()) + unpacked
        if whole > self.limits.whole:
            raise TooMuch(
                f"All files together are larger than {self.limits.whole >> 20:,} MB.",
                place=name,
                remedy="Use the command line: `duelpool pool ... -o STORE`.",
            )
        place = self.folder / kind
        place.mkdir(mode=0o700, exist_ok=True)
        if kind not in SEVERAL:
            for other in self.of(kind):
                other.unlink(missing_ok=True)
        give_name(part, place / name)

    def _unpacked_size(self, data: BinaryIO, name: str) -> int:
        """Return a file's size, of gzip unpacked; refuse one that unpacks beyond the limits."""
        packed = data.seek(0, 2)
        data.seek(0)
        if data.read(2) != _GZIP_MAGIC:
            return packed
        data.seek(0)
        size = 0
        try:
            with gzip.GzipFile(fileobj=data) as opened:
                while piece := opened.read(_PIECE):
                    size += len(piece)
                    self._refuse_growth(name, packed, size)
        except (EOFError, gzip.BadGzipFile, zlib.error):
            raise BadFile.at(
                name, None, "The gzip file is damaged or cut off.", "Fetch or write it again."
            ) from None
        return size

    def _refuse_growth(self, name: str, packed: int, size: int) -> None:
        self._refuse_too_much(name, size)
        if size > _PIECE and size > packed * self.limits.ratio:
            raise TooMuch(
                f"The file unpacks to more than {self.limits.ratio} times its size.",
                place=name,
                remedy="Send it unpacked.",
            )

    def _unpack(self, part: Path, archive: str) -> None:
        """Store every file of a zip, or none of them."""
        try:
            with zipfile.ZipFile(part) as opened:
                members = [each for each in opened.infolist() if not each.is_dir()]
                wanted = [(each, *self._placed(each, archive)) for each in members if not _is_litter(each)]
                if not wanted:
                    raise BadFile.at(archive, None, "The archive is empty.", "Zip the folder again.")
                if len(wanted) > self.limits.files:
                    raise TooMuch(
                        f"The archive holds more than {self.limits.files:,} files.",
                        place=archive,
                        remedy="Send fewer.",
                    )
                fresh = UploadFolder(self.folder / f".unpacked-{secrets.token_hex(6)}", self.limits)
                try:
                    self._extract(opened, wanted, fresh, part.stat().st_size)
                    if sum(size for _, _, size in (*self.listed(), *fresh.listed())) > self.limits.whole:
                        raise TooMuch(
                            "With this archive the files together are too large.",
                            place=archive,
                            remedy="Send less.",
                        )
                    for kind, name, _ in fresh.listed():
                        self._keep(fresh.folder / kind / name, kind, name)
                finally:
                    fresh.clear()
        except _NO_ZIP as error:
            if isinstance(error, OSError) and error.errno != errno.EINVAL:  # a seek before the beginning
                raise
            raise BadFile.at(
                archive,
                None,
                "This zip file can't be read.",
                "Zip the folder again, without a password.",
            ) from None

    def _extract(
        self,
        opened: zipfile.ZipFile,
        wanted: list[tuple[zipfile.ZipInfo, str, str]],
        fresh: "UploadFolder",
        packed: int,
    ) -> None:
        whole = 0
        for member, kind, name in wanted:
            if any(path.name == name for path in fresh.of(kind)) or (kind not in SEVERAL and fresh.of(kind)):
                raise BadFile.at(
                    member.filename, None, f"The archive has another file of {kind} already.", "Keep one."
                )
            with opened.open(member) as data, fresh.receiving(kind, name) as write:
                while piece := data.read(_PIECE):
                    whole += len(piece)
                    if whole > self.limits.whole or (whole > _PIECE and whole > packed * self.limits.ratio):
                        raise TooMuch(
                            "The archive unpacks to more than the limit.",
                            place=member.filename,
                            remedy="Send its files.",
                        )
                    write(piece)

    def _placed(self, member: zipfile.ZipInfo, archive: str) -> tuple[str, str]:
        """Return kind and name of an archive's member; refuse a path that leads out of it."""
        path = PurePosixPath(member.filename)
        mode = member.external_attr >> 16
        if (
            not path.parts
            or path.is_absolute()
            or ".." in path.parts
            or "\\" in member.filename
            or ":" in path.parts[0]
            or (mode and not stat.S_ISREG(mode) and stat.S_IFMT(mode))
        ):
            raise BadRecord(
                f"The archive {archive!r} has a member that leads out of it: {member.filename[:80]!r}.",
                remedy="Zip a plain folder of files.",
            )
        name = checked_name(path.name)
        if (kind := kind_by_name(path)) is not None:
            return kind, name
        raise BadRecord(
            f"The kind of '{path}' in the archive isn't clear.",
            remedy="Put runs into a folder 'runs'; begin other names with answers, qrels, prefs, topics, passages, "
            "tests or groups.",
        )


def _is_litter(member: zipfile.ZipInfo) -> bool:
    """Whether a file of an archive was made by an operating system, not by a person."""
    parts = PurePosixPath(member.filename).parts
    return "__MACOSX" in parts or parts[-1:] in {(".DS_Store",), ("Thumbs.db",)}
