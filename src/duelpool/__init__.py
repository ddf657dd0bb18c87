"""Duelpool finds the best answers in a pool with as few human preferences as possible."""

from importlib.metadata import version

__version__ = version("duelpool")
