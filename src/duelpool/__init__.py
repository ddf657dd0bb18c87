"""Duelpool finds the best answers in a pool with as few human preferences as possible."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duelpool.evaluation import evaluate

    __version__: str

__all__ = ["__version__", "evaluate"]


def __getattr__(name: str) -> object:
    """Import what takes long only when it is asked for."""
    if name == "__version__":
        from importlib.metadata import version

        globals()[name] = version("duelpool")
        return globals()[name]
    if name == "evaluate":
        from duelpool.evaluation import evaluate

        return evaluate
    raise AttributeError(f"module 'duelpool' has no attribute '{name}'")
