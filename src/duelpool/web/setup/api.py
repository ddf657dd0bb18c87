"""Setting up, for programs: send files, look at the dry run, make the campaign."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from duelpool.campaign.views.watch import NotFound
from duelpool.errors import DuelpoolError
from duelpool.files import read_passages, read_preferences, read_qrels, read_run, read_topics
from duelpool.setup.inputs import read_groups
from duelpool.setup.uploads import ARCHIVE, KINDS
from duelpool.web.access.links import address
from duelpool.web.manage.keys import manager_address, manager_key
from duelpool.web.manage.schemas import Problem
from duelpool.web.server.guard import TooLarge
from duelpool.web.setup.drafts import Sketch
from duelpool.web.setup.keys import Reading, SettingUp, Writing
from duelpool.web.setup.options import Line, Options
from duelpool.web.setup.schemas import Founded, SketchBrief, SketchList, SketchShown, sketch_shown

_REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "An unknown name, or a file that can't be read."},
    403: {"model": Problem, "description": "No key, an invalid key, or another site."},
    404: {"model": Problem, "description": "There is no such draft."},
    410: {"model": Problem, "description": "The key has expired."},
    413: {"model": Problem, "description": "The request is too large."},
    422: {"model": Problem, "description": "An invalid value."},
    503: {"model": Problem, "description": "The store doesn't respond; try again."},
}

PIECE = 1 << 20

router = APIRouter(prefix="/api/v1/setups", responses=_REFUSALS, tags=["set-up"])

_READERS: dict[str, Callable[[Path], object]] = {
    "runs": read_run,
    "qrels": read_qrels,
    "prefs": read_preferences,
    "topics": read_topics,
    "texts": read_passages,
    "tests": read_preferences,
    "groups": lambda path: read_groups(str(path)),
}


class Make(BaseModel):
    """Make the campaign: its name, and whether it begins paused."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[Line, Field(min_length=1, pattern=r"\S")]
    paused: bool = False


def take_in(sketch: Sketch, kind: str, name: str, data: IO[bytes]) -> None:
    """Take a file; one that can't be read doesn't stay."""
    with sketch.uploads.receiving(kind, name) as write:
        while piece := data.read(PIECE):
            write(piece)
    came = [(each, path) for each in KINDS for path in sketch.uploads.of(each)]
    for is_a, path in came:
        if kind == ARCHIVE or (is_a == kind and path.name == name):
            try:
                with sketch.uploads.without_folder():
                    _READERS[is_a](path)
            except DuelpoolError:
                path.unlink(missing_ok=True)
                raise


@router.get("")
def sketches(found: Reading) -> SketchList:
    """The campaigns that are being set up."""
    rows = [
        SketchBrief(each.id, each.options.name, len(each.uploads.listed())) for each in found.sketches.all()
    ]
    return SketchList(rows)


@router.post("")
def begin(found: Writing) -> SketchShown:
    """Begin to set a campaign up."""
    return sketch_shown(found.sketches.new())


@router.get("/{sketch}")
def look(
    found: Reading,
    sketch: str,
    simulate: Annotated[bool, Query(description="Also simulate every strategy.")] = True,
) -> SketchShown:
    """The dry run: what the files come to, and what every strategy would take and find."""
    return sketch_shown(found.sketches.of(sketch), simulate)


@router.delete("/{sketch}", status_code=204)
def leave(found: Writing, sketch: str) -> Response:
    """Throw a draft away."""
    found.sketches.of(sketch).clear()
    return Response(status_code=204)


@router.put(
    "/{sketch}/files/{kind}",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
async def put_file(
    found: Writing, sketch: str, kind: str, name: Annotated[str, Query(min_length=1, max_length=300)]
) -> SketchShown:
    """Send a file, plain or gzip: runs (several), qrels, prefs, topics, texts, tests, groups; or archive, a zip."""
    if found.request.scope.get("too_large"):
        raise TooLarge("The request is too large.", remedy="Send less at once.")
    target = await run_in_threadpool(found.sketches.of, sketch)
    with tempfile.TemporaryFile() as held:
        async for piece in found.request.stream():
            held.write(piece)
        held.seek(0)
        await run_in_threadpool(take_in, target, kind, name, held)
    return await run_in_threadpool(sketch_shown, target, False)


@router.delete("/{sketch}/files/{kind}")
def remove_file(
    found: Writing, sketch: str, kind: str, name: Annotated[str, Query(min_length=1, max_length=300)]
) -> SketchShown:
    """Take a file away again."""
    target = found.sketches.of(sketch)
    if not target.uploads.remove(kind, name):
        raise NotFound(f"There is no file '{name}' of {kind}.", remedy="Check the name.")
    return sketch_shown(target, False)


@router.put("/{sketch}/options")
def set_options(found: Writing, sketch: str, options: Options) -> SketchShown:
    """Set all options; those left out get their default."""
    target = found.sketches.of(sketch)
    target.save(options)
    return sketch_shown(target, False)


@router.post("/{sketch}/campaign")
def make(found: Writing, sketch: str, asked: Make) -> Founded:
    """Make the campaign, whole or not at all; the draft is done with then."""
    return founded(found, found.sketches.of(sketch), asked.name.strip(), asked.paused)


def founded(found: SettingUp, sketch: Sketch, name: str, paused: bool) -> Founded:
    """Make a sketch's campaign, and return the way into it."""
    store = sketch.store
    campaign, sentence = sketch.found(name, paused)
    now = store.read(store.database.now)
    key = manager_key(found.links, campaign.id, now)
    return Founded(
        id=campaign.id,
        name=campaign.name,
        sentence=sentence,
        key=key,
        manage=manager_address("", campaign.id, key),
        assessors=address("", campaign.id, found.links.key(campaign.id, "open", now)),
    )
