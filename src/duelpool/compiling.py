"""Loops that Numba compiles where the extra `fast` is installed."""

import time
from collections.abc import Callable
from functools import cache
from typing import Generic, ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")

LOADING = 0.75  # CPU seconds in which Numba and a loop that is kept on disk are loaded


class CompiledLoop(Generic[Given, Result]):
    """A loop in two forms with the same results: a plain one, and one to be compiled.

    The plain one is used until it has taken as long as it takes to load the other: a process with little to do is
    over sooner without Numba.
    """

    def __init__(self, plain: Callable[Given, Result], to_compile: Callable[Given, Result]) -> None:
        self.plain = plain
        self.to_compile = to_compile
        self.spent = 0.0

    def __call__(self, *args: Given.args, **kwargs: Given.kwargs) -> Result:
        """Run the loop."""
        if self.spent >= LOADING:
            fast: Callable[Given, Result] | None = compiled(self.to_compile)
            if fast is not None:
                return fast(*args, **kwargs)
        began = time.thread_time()
        result = self.plain(*args, **kwargs)
        self.spent += time.thread_time() - began
        return result


@cache
def compiled(loop: Callable[Given, Result]) -> Callable[Given, Result] | None:
    """Return the compiled form of a function of numbers and arrays, or None where the extra isn't installed.

    The function mustn't raise errors. What is compiled is kept on disk, where that can be, and compiled again when the
    function's own file changes. While it runs, other threads run, too. Sums and products keep their order, so that
    results are those of Python to the last bit.
    """
    try:
        import numba
    except ImportError:
        return None
    compiling: Callable[[Callable[Given, Result]], Callable[Given, Result]] = numba.njit(
        nogil=True, error_model="numpy"
    )
    try:
        kept: Callable[Given, Result] = numba.njit(nogil=True, error_model="numpy", cache=True)(loop)
    except RuntimeError:  # nowhere to keep it: neither beside the file nor in the user's cache
        return compiling(loop)
    return _KeptLoop(kept, lambda: compiling(loop))


class _KeptLoop(Generic[Given, Result]):
    """A compiled loop that is kept on disk, and without that where what is kept is damaged or can't be written."""

    def __init__(self, kept: Callable[Given, Result], afresh: Callable[[], Callable[Given, Result]]) -> None:
        self.loop = kept
        self.afresh = afresh
        self.ran = False

    def __call__(self, *args: Given.args, **kwargs: Given.kwargs) -> Result:
        if self.ran:
            return self.loop(*args, **kwargs)
        try:
            result = self.loop(*args, **kwargs)
        except Exception:  # of any kind, for the file is unpickled; the loop itself raises none
            self.loop = self.afresh()
            result = self.loop(*args, **kwargs)
        self.ran = True
        return result
