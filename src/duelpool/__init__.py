"""Duelpool finds the best answers in a pool with as few human preferences as possible."""

from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duelpool.evaluation import evaluate

__all__ = ["__version__", "evaluate"]
__version__ = version("duelpool")


def __getattr__(name: str) -> object:
    """Bring in what needs numpy, scipy and polars only when it is asked for."""
    if name == "evaluate":
        from duelpool.evaluation import evaluate

        return evaluate
    raise AttributeError(f"module 'duelpool' has no attribute '{name}'")
