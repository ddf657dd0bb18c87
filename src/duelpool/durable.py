"""Files that get their name when they are complete, and keep both when the power is cut."""

import errno
import os
import shutil
from contextlib import suppress
from pathlib import Path

NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system says where a disk, a quota or a file is full."""


def give_name(partial: Path, target: Path) -> None:
    """Give a complete file or folder its name, in place of a file that has it.

    Its content is brought to the disk first, then its name: otherwise a power cut may leave an empty file, or none. A
    device or a pipe of this name, such as /dev/null, is written to, and stays what it is.
    """
    if is_device(target):
        with partial.open("rb") as written, target.open("wb") as there:
            shutil.copyfileobj(written, there)
        partial.unlink()
        return
    if partial.is_dir():
        _sync_folder(partial)
        partial.rename(target)
    else:
        with partial.open("rb+" if os.name == "nt" else "rb") as written:
            os.fsync(written.fileno())
        partial.replace(target)
    _sync_folder(target.absolute().parent)


def is_device(path: Path) -> bool:
    """Whether a path is that of a device, a pipe or a socket: something that is there, and neither file nor folder."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _sync_folder(folder: Path) -> None:
    """Bring the names of a folder to the disk; some systems (Windows) can't, or do so themselves."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
