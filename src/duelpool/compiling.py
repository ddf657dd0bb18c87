"""Loops that Numba compiles where the extra `fast` is installed."""

from collections.abc import Callable
from functools import cache
from typing import ParamSpec, TypeVar, cast

Given = ParamSpec("Given")
Result = TypeVar("Result")


@cache
def compiled(loop: Callable[Given, Result]) -> Callable[Given, Result] | None:
    """Return the compiled form of a function of numbers and arrays, or None where the extra isn't installed.

    What is compiled is kept on disk. While it runs, other threads run, too. Sums and products keep their order, so
    that results are those of Python to the last bit.
    """
    try:
        import numba
    except ImportError:
        return None
    try:
        made = numba.njit(nogil=True, cache=True)(loop)
    except RuntimeError:  # nowhere to keep it: neither beside the file nor in the user's cache
        made = numba.njit(nogil=True)(loop)
    return cast(Callable[Given, Result], made)
