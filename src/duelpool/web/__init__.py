"""The judging page: people judge side by side in a browser, and nothing that they answer is lost."""

from duelpool.web.app import make_app
from duelpool.web.links import Links, link_keys

__all__ = ["Links", "link_keys", "make_app"]
