"""The setup API: upload files, read the dry run, create the campaign."""

import tempfile
from collections.abc import Collection
from typing import IO, Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from duelpool.access import audit_log
from duelpool.campaign.views.watch import NotFound
from duelpool.errors import DuelpoolError, UnknownName
from duelpool.setup.reading import check_uploads
from duelpool.setup.recognition import recognise
from duelpool.setup.uploads import ARCHIVE, KINDS
from duelpool.web.access.links import address
from duelpool.web.manage.keys import manager_address, manager_key
from duelpool.web.manage.schemas import Problem
from duelpool.web.setup.drafts import SavedDraft
from duelpool.web.setup.keys import Reading, SetupCaller, Writing
from duelpool.web.setup.options import Line, Options
from duelpool.web.setup.schemas import CreatedCampaign, DraftBrief, DraftDetail, DraftList, draft_detail

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


class Make(BaseModel):
    """Create the campaign: its name, and whether it starts paused."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[Line, Field(min_length=1, pattern=r"\S")]
    paused: bool = False


ANY = "any"
"""In place of a kind: it is recognised by the file's name and beginning."""


def receive(draft: SavedDraft, kind: str, name: str, data: IO[bytes]) -> str:
    """Store a file of a draft as it is, and return its kind."""
    kind = recognise(name, data) if kind == ANY else kind
    with draft.uploads.receiving(kind, name) as write:
        while piece := data.read(PIECE):
            write(piece)
    return kind


def take_in(draft: SavedDraft, kind: str, name: str, data: IO[bytes]) -> str:
    """Take a file into a draft, and return its kind; a file that can't be read is removed."""
    kind = receive(draft, kind, name, data)
    files = [(each, path) for each in KINDS for path in draft.uploads.of(each)]
    for file_kind, path in files:
        if kind == ARCHIVE or (file_kind == kind and path.name == name):
            try:
                check_file(draft, file_kind, path.name)
            except DuelpoolError:
                path.unlink(missing_ok=True)
                raise
    return kind


def check_file(draft: SavedDraft, kind: str, name: str, to: str = "") -> None:
    """Read a file of a draft, perhaps as one of another kind; raise what is wrong with it."""
    if kind not in KINDS or (to or kind) not in KINDS:
        raise UnknownName("kind of file", kind if kind not in KINDS else to, KINDS)
    with draft.uploads.without_folder():
        check_uploads([(to or kind, str(path)) for path in draft.uploads.of(kind) if path.name == name])


def check_files(draft: SavedDraft, received: Collection[tuple[str, str]]) -> None:
    """Read files of a draft, by kind and name, all in one go; raise what is wrong with the first that can't be read."""
    with draft.uploads.without_folder():
        check_uploads(
            [
                (kind, str(path))
                for kind in dict.fromkeys(kind for kind, _ in received)
                for path in draft.uploads.of(kind)  # of most kinds a later file replaces an earlier one
                if (kind, path.name) in received
            ]
        )


@router.get("")
def drafts(caller: Reading) -> DraftList:
    """The drafts."""
    rows = [
        DraftBrief(each.id, each.options.name, len(each.uploads.listed())) for each in caller.drafts.all()
    ]
    return DraftList(rows)


@router.post("")
def begin(caller: Writing) -> DraftDetail:
    """Start a draft."""
    return draft_detail(caller.drafts.new())


@router.get("/{draft}")
def look(
    caller: Reading,
    draft: str,
    simulate: Annotated[bool, Query(description="Also simulate every strategy.")] = True,
) -> DraftDetail:
    """The dry run: the pools, and what every strategy would cost and find."""
    return draft_detail(caller.drafts.of(draft), simulate)


@router.delete("/{draft}", status_code=204)
def leave(caller: Writing, draft: str) -> Response:
    """Discard a draft."""
    caller.drafts.of(draft).clear()
    return Response(status_code=204)


@router.put(
    "/{draft}/files/{kind}",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
async def put_file(
    caller: Writing, draft: str, kind: str, name: Annotated[str, Query(min_length=1, max_length=300)]
) -> DraftDetail:
    """Upload a file, plain or gzip: answers and runs (several), qrels, prefs, topics, texts, tests, groups; or a zip.

    The zip's kind is `archive`; of `any` the kind is recognised.
    """
    target = await run_in_threadpool(caller.drafts.of, draft)
    with tempfile.TemporaryFile() as held:
        async for piece in caller.request.stream():
            held.write(piece)
        held.seek(0)
        await run_in_threadpool(take_in, target, kind, name, held)
    return await run_in_threadpool(draft_detail, target, False)


@router.delete("/{draft}/files/{kind}")
def remove_file(
    caller: Writing, draft: str, kind: str, name: Annotated[str, Query(min_length=1, max_length=300)]
) -> DraftDetail:
    """Remove a file."""
    target = caller.drafts.of(draft)
    if not target.uploads.remove(kind, name):
        raise NotFound(f"There is no file '{name}' of {kind}.", remedy="Check the name.")
    return draft_detail(target, False)


@router.put("/{draft}/options")
def set_options(caller: Writing, draft: str, options: Options) -> DraftDetail:
    """Set all options; options left out get their default."""
    target = caller.drafts.of(draft)
    target.save(options)
    return draft_detail(target, False)


@router.post("/{draft}/campaign")
def make(caller: Writing, draft: str, asked: Make) -> CreatedCampaign:
    """Create the campaign, completely or not at all; the draft is discarded."""
    return create_campaign(caller, caller.drafts.of(draft), asked.name.strip(), asked.paused)


def create_campaign(caller: SetupCaller, draft: SavedDraft, name: str, paused: bool) -> CreatedCampaign:
    """Create a draft's campaign, and return its keys and addresses."""
    store, options = draft.store, draft.options
    campaign, sentence = draft.create(name, paused)
    campaign.write(audit_log.entry("setup link", "created the campaign", campaign.name, campaign=campaign.id))
    now = store.now()
    key = manager_key(caller.links, campaign.id, now)
    return CreatedCampaign(
        id=campaign.id,
        name=campaign.name,
        sentence=sentence,
        key=key,
        manage=manager_address("", campaign.id, key),
        assessors=address("", campaign.id, caller.links.key(campaign.id, "open", now)),
        model_command=options.model_command(store.name, campaign.name),
    )
