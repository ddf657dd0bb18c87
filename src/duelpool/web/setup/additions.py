"""What a manager adds to a running campaign: links for single assessors, and missing texts and questions."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlencode

from fastapi import APIRouter
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException
from starlette.responses import Response

from duelpool.errors import BadParameter, BadRecord, DuelpoolError
from duelpool.files import read_passages, read_topics
from duelpool.setup.completing import complete
from duelpool.setup.reading import check_uploads
from duelpool.setup.uploads import Limits, UploadFolder
from duelpool.store import StoreError
from duelpool.web.access.links import address
from duelpool.web.access.passes import need
from duelpool.web.judging.callers import FIELDS_AT_MOST
from duelpool.web.manage.callers import Changing, ManageCaller, Viewing
from duelpool.web.manage.keys import is_form_key
from duelpool.web.manage.schemas import Invite, Invited, TextsAdded
from duelpool.web.manage.settings import settings_page
from duelpool.web.manage.showing import show
from duelpool.web.server.guard import refuse_other_sites

router = APIRouter(include_in_schema=False)

KINDS = ("topics", "texts")
LIMITS = Limits(file=128 << 20, whole=256 << 20, files=2)
_PIECE = 1 << 20


# ---- links


def invite(caller: ManageCaller, asked: Invite) -> Invited:
    """Return a link for one assessor, with the server's address where it is known."""
    campaign = caller.dashboard.campaign
    root = str(caller.request.app.state.url).rstrip("/")
    campaign.write(caller.audit_entry("invite", asked.assessor))
    now = campaign.read(lambda tx: tx.now)
    key = caller.links.key(caller.id, "personal", now, assessor=asked.assessor, once=asked.once)
    return Invited(asked.assessor, address(root, caller.id, key))


@router.post("/manage/{campaign}/invite")
def invite_by_form(caller: Changing) -> Response:
    """Show a link for one assessor."""
    try:
        asked = Invite(
            assessor=str(caller.values.get("assessor", "")).strip(), once=caller.values.get("once") == "yes"
        )
    except ValidationError:
        raise BadRecord(
            "An assessor's name has 1 to 200 characters.", remedy="Go back and enter one."
        ) from None
    return show(caller, "invited", "assessors", "Link", invited=invite(caller, asked), once=asked.once)


# ---- texts


def _add(caller: ManageCaller, files: Mapping[str, tuple[str, IO[bytes]]]) -> TextsAdded:
    """Add the texts and questions of files, by kind; a file that can't be read is refused, and nothing is added."""
    if not files:
        raise BadParameter("No file was chosen.", remedy="Choose a file of questions or of texts.")
    with tempfile.TemporaryDirectory(prefix="duelpool-texts-") as place:
        folder = UploadFolder(Path(place), LIMITS)
        for kind, (name, data) in files.items():
            with folder.receiving(kind, name) as write:
                while piece := data.read(_PIECE):
                    write(piece)
        paths = {kind: str(folder.of(kind)[0]) for kind in files}
        with folder.without_folder():
            check_uploads([*paths.items()])
            topics = read_topics(paths["topics"]) if "topics" in paths else ()
            texts = read_passages(paths["texts"]) if "texts" in paths else ()
    names = ", ".join(name for name, _ in files.values())
    done = complete(caller.dashboard.campaign, texts, topics, also=caller.audit_entry("texts", names))
    return TextsAdded(done.texts, done.questions, done.released, len(done.held.topics))


@router.post("/manage/{campaign}/texts")
async def add_by_form(caller: Viewing) -> Response:
    """Add texts and questions from files, and say what they released."""
    need(caller.access, "manage")
    kind = caller.request.headers.get("content-type", "")
    try:
        if not kind.startswith("multipart/form-data"):
            raise ValueError
        form = await caller.request.form(max_files=len(KINDS), max_fields=FIELDS_AT_MOST)
    except (MultiPartException, ValueError, LookupError):
        raise BadRecord("The request can't be read.", remedy="Use the buttons of the page.") from None
    try:
        key = str(form.get("form_key", ""))
        refuse_other_sites(caller.request.headers, lambda: is_form_key(caller.links, caller.id, key))
        files = {
            kind: (each.filename, each.file)
            for kind in KINDS
            if isinstance(each := form.get(kind), UploadFile) and each.filename
        }
        return await run_in_threadpool(_added, caller, files)
    finally:
        await form.close()


def _added(caller: ManageCaller, files: Mapping[str, tuple[str, IO[bytes]]]) -> Response:
    try:
        done = _add(caller, files)
    except StoreError:
        raise
    except DuelpoolError as error:
        return settings_page(caller, error)
    notice = caller.links.sign("notice", done.sentence)
    return caller.back(f"settings?{urlencode({'notice': notice})}")


FILE: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


async def add_from_body(caller: ManageCaller, kind: str) -> TextsAdded:
    """Add the texts or questions of the file that a request's body is."""
    with tempfile.TemporaryFile() as held:
        async for piece in caller.request.stream():
            held.write(piece)
        held.seek(0)
        return await run_in_threadpool(_add, caller, {kind: (kind, held)})
