"""The table of routes of the application."""

from typing import Any

from fastapi import FastAPI


def routes_of(app: FastAPI) -> list[str]:
    """Return every route of the application, as method and path."""
    paths: list[str] = []

    def collect(routes: Any) -> None:
        for route in routes:
            inner = getattr(route, "original_router", None) or getattr(route, "app", None)
            if not hasattr(route, "path") or not hasattr(route, "methods"):
                collect(getattr(inner, "routes", ()))
                continue
            paths.extend(
                f"{method} {route.path}" for method in sorted(route.methods or ()) if method != "HEAD"
            )

    collect(app.routes)
    return paths
