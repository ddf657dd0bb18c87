"""The page of headers and cookies: it has what the application sends, for every class of routes."""

from pathlib import Path

from headers_page import PAGE, class_of, page
from support.routes import routes_of
from support.visitors import new_store, served


def test_the_page_of_headers_and_cookies_is_current(tmp_path: Path) -> None:
    """If it isn't, run `python tests/headers_page.py` and read what has changed."""
    assert PAGE.read_text(encoding="utf-8") == page(tmp_path)


def test_every_route_is_in_a_class_of_the_page(tmp_path: Path) -> None:
    new_store(tmp_path / "c.db").close()
    with served(tmp_path / "c.db", uploads=tmp_path / "uploads") as app:
        assert [route for route in routes_of(app) if class_of(route.split()[1]) is None] == []
