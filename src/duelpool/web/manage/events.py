"""Live by server-sent events: a page hears that something has changed, and gets itself anew."""

import asyncio
import time
from collections.abc import AsyncIterator

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from duelpool.store import StoreError
from duelpool.web.manage.dashboard import Dashboard

EVERY_SECONDS = 1.0
COMMENT_AFTER = 15  # looks without news, so that nobody between takes the connection for dead


def events_of(dashboard: Dashboard, seconds: float) -> StreamingResponse:
    """Return a stream that tells the pulse now and whenever it is another one.

    It ends after some time, and a browser comes back: so a server that stops doesn't wait for anybody.
    """

    async def told() -> AsyncIterator[str]:
        ends = time.monotonic() + seconds
        last = ""
        quiet = 0
        yield "retry: 1000\n\n"
        while True:
            try:
                pulse = await run_in_threadpool(dashboard.pulse)
            except StoreError:
                return
            quiet += 1
            if pulse != last:
                yield f"event: pulse\ndata: {pulse}\n\n"
                last, quiet = pulse, 0
            elif quiet >= COMMENT_AFTER:
                yield ": still here\n\n"
                quiet = 0
            left = ends - time.monotonic()
            if left <= 0:
                return
            await asyncio.sleep(min(EVERY_SECONDS, left))

    return StreamingResponse(
        told(),
        media_type="text/event-stream",
        headers={"X-Accel-Buffering": "no", "Cache-Control": "no-store"},
    )
