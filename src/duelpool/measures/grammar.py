"""The grammar that names with parameters share: `nDCG@10`, `Compat(p=0.8)`, `P(rel=2)@5`."""

import ast
from contextlib import suppress
from functools import lru_cache

from duelpool.errors import BadParameter

_TRIES = 9


def name_and_parameters(text: str, what: str = "measure") -> tuple[str, dict[str, object]]:
    """Return the name that a text begins with, and its parameters; a number after '@' is the cutoff."""
    try:
        return _parts(_tree(text.strip()), text, what)
    except SyntaxError:
        raise _unreadable(text, what) from None


@lru_cache(maxsize=1024)
def _tree(text: str) -> ast.expr:
    """Return the tree of an expression.

    Python 3.11 counts the depth of trees for all threads together, and raises SystemError where two are made at once.
    """
    for _ in range(_TRIES):
        with suppress(SystemError):
            return ast.parse(text, mode="eval").body
    return ast.parse(text, mode="eval").body


def _parts(node: ast.expr, text: str, what: str) -> tuple[str, dict[str, object]]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        name, parameters = _parts(node.left, text, what)
        return name, {**parameters, "cutoff": _value(node.right, text, what)}
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.args:
        parameters = {
            part.arg: _value(part.value, text, what) for part in node.keywords if part.arg is not None
        }
        if len(parameters) == len(node.keywords):
            return node.func.id, parameters
    if isinstance(node, ast.Name):
        return node.id, {}
    raise _unreadable(text, what)


def _value(node: ast.expr, text: str, what: str) -> object:
    if isinstance(node, ast.Name):
        return node.id  # a word without quotes
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise _unreadable(text, what) from None


def _unreadable(text: str, what: str) -> BadParameter:
    return BadParameter(
        f"'{text}' doesn't read as a {what}.",
        remedy="Write a name, parameters and a cutoff, such as nDCG@10, Compat(p=0.8) or P(rel=2)@5.",
    )
