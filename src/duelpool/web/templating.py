"""Templates and static files."""

import hashlib
import mimetypes
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, TemplateNotFound
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from duelpool.background import give_way
from duelpool.errors import DuelpoolError
from duelpool.frames import counted
from duelpool.labels import phase_said
from duelpool.report import charts
from duelpool.web.i18n import FIRST, Catalogue, catalogue, choose, languages
from duelpool.web.judging import passages
from duelpool.web.server.guard import status_of

TEMPLATES = Path(__file__).parent / "templates"
STATIC = Path(__file__).parent / "static"
CARD_WIDTHS = (30, 40, 60)
"""Widths in rem below which the rows of a table become cards: its class is `fit-` and the width."""
LONG_CACHE = "public, max-age=31536000, immutable"
SHORT_CACHE = "no-cache"

TEMPLATE_OF = {
    "consent": "consent.html",
    "guide": "guide.html",
    "check": "check.html",
    "check-failed": "check.html",
    "practice": "practice.html",
    "judging": "judge.html",
    "waiting": "judge.html",
    "feedback": "feedback.html",
    "complete": "complete.html",
    "no-work": "no_work.html",
    "paused": "paused.html",
    "ended": "ended.html",
    "excluded": "excluded.html",
}
"""The template of each state of a visitor."""


@cache
def _environment() -> Environment:
    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True)
    environment.filters["counted"] = counted
    environment.filters["phase_said"] = phase_said
    return environment


def _static_files() -> dict[str, bytes]:
    files = {
        path.relative_to(STATIC).as_posix(): path.read_bytes()
        for path in sorted(STATIC.rglob("*"))
        if path.is_file()
    }
    files["cards.css"] = _for_every_width(files["cards.css"].decode()).encode()
    return {**files, "charts.css": charts.style().encode()}  # the report has the same


def _for_every_width(rules: str) -> str:
    """Return the rules of cards for every width: they are written for 60 rem, and a query takes no variable."""
    return "".join(
        rules.replace("60rem", f"{width}rem").replace("fit-60", f"fit-{width}") for width in CARD_WIDTHS
    )


@cache
def static_files() -> dict[str, bytes]:
    """Return the static files by name; they are read once."""
    return _static_files()


@cache
def static_hash() -> str:
    """Return a hash of all static files."""
    digest = hashlib.blake2b(digest_size=8)
    for name, data in static_files().items():
        digest.update(f"{name} {len(data)} ".encode())
        digest.update(data)
    return digest.hexdigest()


def warm() -> None:
    """Read templates, files and catalogues, so that the first visitor doesn't wait."""
    static_hash()
    for lang in languages():
        catalogue(lang)
    for name in {*TEMPLATE_OF.values(), "error.html", "lease_lost.html"}:
        _environment().get_template(name)


def warm_dashboard() -> None:
    """Compile the templates of the dashboard one by one, in a thread: each takes a twentieth of a second."""
    for name in _environment().list_templates(filter_func=lambda name: name.startswith("manage/")):
        give_way()
        _environment().get_template(name)


def asset(name: str) -> str:
    """Return the address of a static file, which browsers may cache for ever."""
    return f"/static/{static_hash()}/{name}"


def static_response(name: str) -> Response | None:
    """Return a static file, None if there is no such file."""
    first, _, rest = name.partition("/")
    lasting = first == static_hash() and rest in static_files()
    data = static_files().get(rest if lasting else name)
    if data is None:
        return None
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    if name.endswith((".js", ".mjs")):
        kind = "text/javascript"
    return Response(data, media_type=kind, headers={"Cache-Control": LONG_CACHE if lasting else SHORT_CACHE})


def language_of(request: Request, chosen: str = "", offered: tuple[str, ...] = ()) -> Catalogue:
    """Return the catalogue in the language of a request."""
    lang = choose(
        request.query_params.get("lang", "") or chosen, request.headers.get("accept-language", ""), offered
    )
    return catalogue(lang)


def render(template: str, texts: Catalogue, context: dict[str, Any], status: int = 200) -> HTMLResponse:
    """Return a page."""
    whole: dict[str, Any] = {
        "words": texts,
        "lang": texts.lang,
        "dir": texts.dir,
        "asset": asset,
        "preview": False,
        "campaign": "",
        "base": "",
        "form_key": "",
        "state": "",
        "visitor": "",
        **context,
    }
    return HTMLResponse(_environment().get_template(template).render(whole), status_code=status)


def markdown_or(text: str, key: str, texts: Catalogue) -> str:
    """Return the campaign's own text as safe HTML, or the catalogue's."""
    return passages.markdown(text or texts(key), links=True)


def error_page(
    error: DuelpoolError,
    texts: Catalogue,
    reference: str,
    context: dict[str, Any],
    template: str = "error.html",
) -> HTMLResponse:
    """Return the page of an error."""
    status, name = status_of(error)
    problem_texts = error_json(error, texts, reference, name)
    try:
        return render(template, texts, {**context, **problem_texts, "status": status, "name": name}, status)
    except TemplateNotFound:  # pragma: no cover (the templates are part of the package)
        return HTMLResponse("<!doctype html><title>Error</title>", status)


def error_json(error: DuelpoolError, texts: Catalogue, reference: str, name: str) -> dict[str, str]:
    """Return an error as JSON: the problem, the remedy, and its reference in the server's log.

    Invalid input is described by the error itself in English; all else by the catalogue's texts.
    """
    own = texts.lang == FIRST and name == "invalid"
    problem, remedy = f"problem_{name}", f"remedy_{name}"
    return {
        "problem": texts(problem) if texts.has(problem) and not own else error.problem,
        "remedy": texts(remedy) if texts.has(remedy) and not own else error.remedy,
        "reference": reference,
    }
