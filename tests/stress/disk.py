"""A disk that forgets: what is left of a folder when the power is cut, or fails when the disk is full.

`disk.c` notes each change of a folder while processes write there; `after_the_cut` works out what a disk may keep.
What was synced is kept. Of the rest, each file keeps nothing, everything, the first changes or any of its sectors; and
each folder the first of its new, renamed and removed names. A file that is synced in a folder that isn't may be gone.
"""

import ctypes
import mmap
import os
import random
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

SOURCE = Path(__file__).with_name("disk.c")
SECTOR = 512
HEAD = struct.Struct("<4sc3xQQQII")
MAGIC = b"DISK"
FIELDS = ("changes", "cut_at", "group", "full_from", "full_kind", "refused")


def unavailable() -> str:
    """Return why changes of a folder can't be noted here; empty where they can."""
    if not sys.platform.startswith("linux"):
        return "LD_PRELOAD, and so a disk that forgets, is Linux's alone"
    return "" if shutil.which("cc") else "there is no C compiler (cc)"


def library(folder: Path) -> Path:
    """Compile the library."""
    made = folder / "disk.so"
    command = ["cc", "-O1", "-Wall", "-shared", "-fPIC", "-o", str(made), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True)
    return made


def is_loaded() -> bool:
    """Return whether this process runs with the library."""
    return os.environ.get("LD_PRELOAD", "").endswith("disk.so")


class Control:
    """The page that a test shares with the library: counts of changes, and the change at which something fails."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file, self.journal = folder / "control", folder / "journal"
        self.file.write_bytes(bytes(4096))
        self.journal.write_bytes(b"")
        with self.file.open("r+b") as page:
            self._page = mmap.mmap(page.fileno(), 4096)

    def __getitem__(self, name: str) -> int:
        return int(struct.unpack_from("<q", self._page, 8 * FIELDS.index(name))[0])

    def __setitem__(self, name: str, value: int) -> None:
        struct.pack_into("<q", self._page, 8 * FIELDS.index(name), value)

    def watch(self, place: Path) -> None:
        """Note the changes of a folder that this process makes from now on; the library must be loaded."""
        names = (str(each).encode() for each in (place, self.file, self.journal))
        if ctypes.CDLL(None).disk_begin(*names) != 0:
            raise RuntimeError("the library can't note changes")

    def environment(self, library_: Path, place: Path) -> dict[str, str]:
        """Return the environment in which a new process notes changes of a folder."""
        return {
            "LD_PRELOAD": str(library_),
            "STRESS_DISK_FOLDER": str(place),
            "STRESS_DISK_CONTROL": str(self.file),
            "STRESS_DISK_JOURNAL": str(self.journal),
        }

    def close(self) -> None:
        """Give the page back."""
        self._page.close()


# ---- what a disk keeps


@dataclass
class _File:
    synced: bytes = b""
    changes: list[tuple[int, bytes | None]] = field(default_factory=list)  # offset and data, or size and None

    def sync(self) -> None:
        if self.changes:
            self.synced = _changed(self.synced, self.changes)
            self.changes = []


@dataclass
class _Folder:
    synced: dict[str, int] = field(default_factory=dict)  # names and what has them
    changes: list[dict[str, int | None]] = field(default_factory=list)  # each whole or not at all

    def sync(self) -> None:
        self.synced = self.names(len(self.changes))
        self.changes = []

    def names(self, kept: int) -> dict[str, int]:
        now: dict[str, int | None] = dict(self.synced)
        for change in self.changes[:kept]:
            now |= change
        return {name: number for name, number in now.items() if number is not None}


def _changed(content: bytes, changes: list[tuple[int, bytes | None]]) -> bytes:
    now = bytearray(content)
    for offset, data in changes:
        if data is None:
            now = now[:offset] + bytes(max(0, offset - len(now)))
        else:
            if offset > len(now):
                now += bytes(offset - len(now))
            now[offset : offset + len(data)] = data
    return bytes(now)


class Disk:
    """The files of a folder as a disk has them: what was synced, and what happened since."""

    def __init__(self, place: Path) -> None:
        self._numbers: dict[
            int, int
        ] = {}  # a file's inode may be used again: each file has a number of its own
        self._things: dict[int, _File | _Folder] = {}
        self.root = self._take(place)

    def _take(self, path: Path) -> int:
        if path.is_dir():
            names = {each.name: self._take(each) for each in path.iterdir()}
            return self._new(path.stat().st_ino, _Folder(names))
        return self._new(path.stat().st_ino, _File(path.read_bytes()))

    def _new(self, inode: int, thing: _File | _Folder) -> int:
        number = self._numbers[inode] = len(self._things)
        self._things[number] = thing
        return number

    def _file(self, inode: int) -> _File:
        found = self._things[self._numbers[inode]]
        assert isinstance(found, _File)
        return found

    def _folder(self, inode: int) -> _Folder:
        found = self._things[self._numbers[inode]]
        assert isinstance(found, _Folder)
        return found

    def replay(self, journal: bytes) -> int:
        """Carry out what a journal tells; return how many changes it has."""
        count = 0
        for kind, file, folder, offset, names, data in _records(journal):
            count += 1
            if kind == b"W":
                self._file(file).changes.append((offset, data))
            elif kind == b"T":
                self._file(file).changes.append((offset, None))
            elif kind == b"S":
                self._things[self._numbers[file]].sync()
            elif kind in {b"C", b"M"}:
                new = self._new(file, _File() if kind == b"C" else _Folder())
                self._folder(folder).changes.append({names[0]: new})
            elif kind == b"L":
                self._folder(folder).changes.append({names[0]: self._numbers[file]})
            elif kind == b"U":
                self._folder(folder).changes.append({names[0]: None})
            elif kind == b"R":
                old, new_name = names
                moved = self._numbers[offset]
                if file == folder:
                    self._folder(folder).changes.append({old: None, new_name: moved})
                else:
                    self._folder(folder).changes.append({old: None})
                    self._folder(file).changes.append({new_name: moved})
        return count

    def keep(self, place: Path, rng: random.Random | None) -> None:
        """Write what the disk has after a power cut into a new folder; without chance, everything that happened."""
        self._keep(self.root, place, rng)

    def _keep(self, number: int, place: Path, rng: random.Random | None) -> None:
        thing = self._things[number]
        if isinstance(thing, _File):
            place.write_bytes(
                _changed(thing.synced, thing.changes) if rng is None else _survivors(thing, rng)
            )
            place.chmod(0o600)
            return
        place.mkdir()
        size = len(thing.changes)
        kept = size if rng is None else rng.choice((0, 0, size, rng.randint(0, size)))
        for name, inner in sorted(thing.names(kept).items()):
            self._keep(inner, place / name, rng)


def _survivors(file: _File, rng: random.Random) -> bytes:
    how = rng.choices(("nothing", "all", "first", "sectors"), (3, 1, 2, 4))[0]
    if how == "nothing":
        return file.synced
    if how == "all":
        return _changed(file.synced, file.changes)
    if how == "first":
        count = rng.randint(0, len(file.changes))
        kept = file.changes[:count]
        if count < len(file.changes) and file.changes[count][1]:  # a write that was under way
            offset, data = file.changes[count]
            assert data is not None
            kept = [*kept, (offset, data[: SECTOR * rng.randint(0, len(data) // SECTOR)])]
        return _changed(file.synced, kept)
    share, grown = rng.choice((0.1, 0.5, 0.9)), rng.choice((None, b"\0", b"\xa5"))
    pieces: list[tuple[int, bytes | None]] = []
    for offset, data in file.changes:
        if data is None:
            if rng.random() < share:
                pieces.append((offset, None))
            continue
        for at in _sectors(offset, len(data)):
            if rng.random() < share:
                pieces.append((offset + at.start, data[at.start : at.stop]))
            elif grown is not None and offset + at.start >= len(file.synced):
                pieces.append(
                    (offset + at.start, grown * len(at))
                )  # the length is kept, what was there isn't
    return _changed(file.synced, pieces)


def _sectors(offset: int, size: int) -> Iterator[range]:
    at = 0
    while at < size:
        end = min(size, at + SECTOR - (offset + at) % SECTOR)
        yield range(at, end)
        at = end


def _records(journal: bytes) -> Iterator[tuple[bytes, int, int, int, list[str], bytes]]:
    at = 0
    while at + HEAD.size <= len(journal):
        magic, kind, file, folder, offset, names, data = HEAD.unpack_from(journal, at)
        body = at + HEAD.size
        end = body + names + data
        if magic != MAGIC or end > len(journal):  # cut off by a kill: on with the next one
            found = journal.find(MAGIC, at + 1)
            if found < 0:
                return
            at = found
            continue
        words = journal[body : body + names].decode().split("\0")
        yield kind, file, folder, offset, words, journal[body + names : end]
        at = end


def after_the_cut(before: Disk, control: Control, place: Path, rng: random.Random) -> Mapping[str, int]:
    """Write what a disk has kept into a new folder; return figures."""
    changes = before.replay(control.journal.read_bytes())
    before.keep(place, rng)
    return {"changes": changes}
