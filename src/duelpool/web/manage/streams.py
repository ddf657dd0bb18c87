"""Streamed exports: a thread reads the store, and the response sends it piece by piece."""

import queue
import threading
from collections.abc import Iterator
from contextlib import suppress

from duelpool.campaign import Campaign
from duelpool.campaign.exports.files import export_lines
from duelpool.campaign.exports.forms import OF_RESULTS
from duelpool.campaign.views.summaries import work_out
from duelpool.files.source import closed_after
from duelpool.store import Reading
from duelpool.web.server.guard import logger

PIECE = 64 * 1024
AHEAD = 8
_WAIT_SECONDS = 0.5


class _GoneAway(Exception):
    """The client has closed the connection."""


def stream(campaign: Campaign, form: str) -> Iterator[bytes]:
    """Yield an export in pieces; the first line is read before this returns, so that errors are reported."""
    pieces: queue.Queue[bytes | BaseException | None] = queue.Queue(AHEAD)
    gone = threading.Event()

    def put(piece: bytes | BaseException | None) -> None:
        while not gone.is_set():
            with suppress(queue.Full):
                pieces.put(piece, timeout=_WAIT_SECONDS)
                return
        raise _GoneAway

    def work(tx: Reading) -> None:
        held: list[str] = []
        size = 0
        first = True
        lines = export_lines(tx, campaign, form)
        with closed_after(lines):
            for line in lines:
                held.append(line)
                size += len(line)
                if size >= PIECE or first:
                    put(("\n".join(held) + "\n").encode())
                    held, size, first = [], 0, False
        if held:
            put(("\n".join(held) + "\n").encode())

    def read() -> None:
        try:
            if form in OF_RESULTS:
                work_out(campaign)
            campaign.read(work, once=True)  # pieces that were sent can't be sent again
            put(None)
        except _GoneAway:
            pass
        except BaseException as error:  # raised by the reader of the pieces
            with suppress(_GoneAway):
                put(error)

    threading.Thread(target=read, daemon=True).start()
    first = pieces.get()
    if isinstance(first, BaseException):
        raise first

    def rest() -> Iterator[bytes]:
        piece: bytes | BaseException | None = first
        try:
            while piece is not None:
                if isinstance(piece, BaseException):
                    logger.error("an export broke off: %s", piece)
                    raise piece
                yield piece
                piece = pieces.get()
        finally:
            gone.set()

    return rest()
