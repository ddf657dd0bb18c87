"""Server-sent events: a page learns that the campaign has changed, and loads itself again."""

import asyncio
import time
from collections.abc import AsyncIterator

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from duelpool.store import StoreError
from duelpool.web.manage.dashboard import Dashboard

EVERY_SECONDS = 1.0
COMMENT_AFTER = 15  # checks without a change before a comment keeps the connection alive


def events_of(dashboard: Dashboard, seconds: float) -> StreamingResponse:
    """Return a stream that sends the pulse now and after every change.

    It ends after some time and the browser reconnects, so that a stopping server doesn't wait.
    """

    async def events() -> AsyncIterator[str]:
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
        events(),
        media_type="text/event-stream",
        headers={"X-Accel-Buffering": "no", "Cache-Control": "no-store"},
    )
