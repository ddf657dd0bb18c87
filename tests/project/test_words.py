"""The words that users read: pages, documentation, help and errors use plain sentences and the glossary's terms."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from duelpool.web.i18n import FOLDER
from duelpool.web.templating import STATIC, TEMPLATES

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "duelpool"
DOCS = ROOT / "docs"

BANNED = {
    # pronouns and phrases that leave open who does what
    r"\b(some|no|any|every)body\b": "name them: an assessor, a worker, no assessor, everyone",
    r"\bwho(m)?ever\b": "name them: an assessor who ..., users who ...",
    r"\bso (many|much|often)\b(?! (as|that)\b)": "the number: 'at most n', 'this many'",
    r"\b(is|are) so\b(?=[.?!]|$)": "'matches'",
    r"\bwhat (came|comes|became) of\b": "'result', 'state'",
    r"\bwhat (it|they|that) comes? to\b": "'summary', 'result'",
    r"\bin the same breath\b": "'in one transaction', 'at once'",
    r"\bleave it as it is\b": "'Cancel'",
    # verbs in a private sense
    r"\b(stands?|stood)\b(?! (out|for)\b)": "'is', 'appears', 'has'",
    r"\b(is|are|was|were|be|been|being) told\b(?! (apart|from)\b)": "'is shown', 'is reported', 'the output says'",
    r"\b(hears?|heard)\b": "'receives', 'reads'",
    r"\bmend(s|ed|ing)?\b": "'correct', 'fix'",
    r"\b(looks?|look) (anew|again)\b": "'check again', 'reload'",
    r"\blet (them|people|somebody|others) in\b": "'admit', 'open to'",
    r"\bunder way\b": "'in progress'",
    r"\b(go|goes|going|went) on\b": "'continue'",
    r"\bby (it|them)sel(f|ves)\b": "'automatically'",
    r"\banew\b": "'again'",
    r"\bdear(er)?\b": "'expensive'",
    r"\bbeside the point\b": "'irrelevant'",
    r"\bthrow (it|this|the \w+) away\b": "'discard'",
    # words with a term in docs/glossary.md
    r"\b(near-)?twins?\b": "'duplicate'",
    r"\bknown pairs?\b": "'test pair'",
    r"\bvoid(s|ed|ing)?\b": "'retract'",
    r"\bre-(instat|open)\w*": "'reinstate', 'reopen'",
    r"\bdeeds?\b|\bwho did what\b": "'action', 'activity log'",
    r"\bsketch(es)?\b": "'draft'",
}
"""What must not appear, as a regular expression, and what to write instead."""

GERMAN = {
    r"\bZwilling\w*": "'Duplikat'",
    r"\b(jemand|niemand)\w*\b": "nennen, wer gemeint ist",
    r"\b(wer|wen|was) auch immer\b": "nennen, wer oder was gemeint ist",
    r"\bvon (selbst|allein)\b": "'automatisch'",
    r"\bwann immer\b": "'jederzeit'",
    r"\bso (viele?|oft)\b(?! wie\b)": "die Zahl nennen",
    r"\b(aufs Neue|von neuem)\b": "'erneut', 'noch einmal'",
    r"\bin einem Atemzug\b": "'zugleich'",
    r"\bbekannte[ns]? Paare?\b": "'Testpaar'",
    r"\bTaten?\b": "'Aktion'",
    r"\bteuer\w*": "der Preis",
}
FRENCH = {
    r"\bjumea?ux?\b|\bjumelles?\b": "'doublon'",
    r"\bquelqu'un\b|\bpersonne ne\b|\bquiconque\b": "nommer qui",
    r"\bd'(elle|lui)-même\b|\btoute? seule?\b": "'automatiquement'",
    r"\bn'importe quand\b": "'à tout moment'",
}
"""In each language the same rules, as far as its words have them: name who is meant, the glossary's terms."""

TERMS = (
    *(
        "topic",
        "item",
        "pool",
        "pair",
        "question",
        "judgment",
        "assessor",
        "assignment",
        "test pair",
        "lease",
        "slot",
    ),
    *(
        "cap",
        "phase",
        "level",
        "strategy",
        "judge",
        "campaign",
        "store",
        "log",
        "activity log",
        "duplicate",
        "panel",
    ),
    *(
        "submission",
        "ledger",
        "measure",
        "propensity",
        "leaderboard",
        "exclusion",
        "retraction",
        "draft",
        "dry run",
    ),
    *("pilot", "preview", "report", "budget", "plan", "run", "system", "passage", "grade", "qrels", "worker"),
)

WRITTEN_ELSEWHERE = {
    "docs/results.md": "written by `duelpool reproduce page`",
    "docs/licences.md": "written by `make licences`",
}
VALUES = {"going on"}
"""Values of forms and addresses that templates name; users read another word for them."""


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def blanked(pattern: str, text: str) -> str:
    """Return the text without what matches; lines keep their numbers."""
    return re.sub(
        pattern, lambda match: "\n" * match[0].count("\n") or " ", text, flags=re.MULTILINE | re.DOTALL
    )


def prose_of_page(path: Path) -> str:
    """The sentences of a Markdown page: no code, no addresses of links."""
    text = blanked(r"^```.*?^```$|^ {4,}\S[^\n]*$|`[^`\n]*`", path.read_text(encoding="utf-8"))
    return blanked(r"(?<=\])\([^)]*\)", text)


def prose_of_template(path: Path) -> str:
    """What a template shows: text, and the strings in its expressions, without tags, names and code."""
    text = blanked(r"\{#.*?#\}|<code>.*?</code>|<script.*?</script>", path.read_text(encoding="utf-8"))
    labels = re.findall(r'(?:aria-label|title|alt|placeholder)="([^"]*)"', text)
    inside = "".join(re.findall(r"\{[{%].*?[%}]\}", text))
    strings = [each for each in re.findall(r'"([^"\n]*)"', inside) if " " in each and each not in VALUES]
    return "\n".join([*labels, *strings, blanked(r"<[^>]*>", blanked(r"\{[{%].*?[%}]\}", text))])


def texts_of(value: Any) -> Iterator[str]:
    """All texts of a catalogue."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from texts_of(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts_of(each)


def prose_of_script(path: Path) -> str:
    """The texts that a script shows: strings of two words or more."""
    code = blanked(r"//[^\n]*", path.read_text(encoding="utf-8"))
    return "\n".join(each for each in re.findall(r'"([A-Z][^"\n]* [^"\n]*)"', code))


PAGES = [
    page for page in sorted([ROOT / "README.md", *DOCS.rglob("*.md")]) if named(page) not in WRITTEN_ELSEWHERE
]


def complaints(text: str, banned: dict[str, str]) -> list[str]:
    return [
        f"{match[0]!r} in {line.strip()[:90]!r}: write {instead}"
        for line in text.splitlines()
        for pattern, instead in banned.items()
        for match in re.finditer(pattern, line, re.IGNORECASE)
    ]


def test_a_banned_word_is_noticed() -> None:
    assert complaints("Twins merged. Nobody is told.", BANNED) != []
    assert complaints("These runs can be told apart, and one stands out.", BANNED) == []
    assert complaints("Answers that can't be told from chance state no number.", BANNED) == []
    assert complaints("Die Seite sieht von selbst nach.", GERMAN) != []
    assert complaints("Demandez à quelqu'un.", FRENCH) != []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_documentation_uses_plain_words(page: Path) -> None:
    if page == DOCS / "glossary.md":  # it names the options' old word once, in code
        assert "`twin`" in page.read_text(encoding="utf-8")
    assert complaints(prose_of_page(page), BANNED) == []


@pytest.mark.parametrize("template", sorted(TEMPLATES.rglob("*.html")), ids=lambda path: path.name)
def test_pages_use_plain_words(template: Path) -> None:
    assert complaints(prose_of_template(template), BANNED) == []


@pytest.mark.parametrize("script", sorted((STATIC / "js").glob("*.js")), ids=lambda path: path.name)
def test_scripts_use_plain_words(script: Path) -> None:
    assert complaints(prose_of_script(script), BANNED) == []


def test_catalogues_use_plain_words() -> None:
    for lang, banned in (("en", BANNED), ("de", GERMAN), ("fr", FRENCH)):
        catalogue = json.loads((FOLDER / f"{lang}.json").read_text(encoding="utf-8"))
        assert complaints("\n".join(texts_of(catalogue)), banned) == [], lang


def test_the_glossary_explains_every_term_in_one_sentence() -> None:
    entries = dict(
        re.findall(
            r"^- \*\*(.+?)\*\*(?:, \*\*.+?\*\*)?: (.*(?:\n  .*)*)",
            (DOCS / "glossary.md").read_text(),
            re.MULTILINE,
        )
    )
    assert {term for term in TERMS if term not in {name.lower() for name in entries}} == set()
    for name, text in entries.items():
        assert text.rstrip().endswith("."), name


# ---- texts in the code: help of commands, and messages of errors


def docstrings(tree: ast.AST) -> set[int]:
    """The docstrings' nodes, by identity."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    bodies = (node.body for node in ast.walk(tree) if isinstance(node, kinds))
    return {id(body[0].value) for body in bodies if body and isinstance(body[0], ast.Expr)}


def strings_in(node: ast.AST) -> Iterator[str]:
    """The texts below a node, with `{}` for what is filled in."""
    if isinstance(node, ast.JoinedStr):
        yield "".join(str(each.value) if isinstance(each, ast.Constant) else "{}" for each in node.values)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    else:
        for child in ast.iter_child_nodes(node):
            yield from strings_in(child)


def without_code(text: str) -> str:
    """A help text without its examples and names in backticks."""
    return re.sub(r"`[^`]*`|--[\w-]+|\"\w+\"|\b\w+=|^ {4,}.*$", " ", text, flags=re.MULTILINE)


def messages_of(path: Path) -> list[str]:
    """What a module says to users: all texts of the command line; elsewhere what it raises and warns of."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if path.is_relative_to(SOURCE / "cli"):
        inner = docstrings(tree) - {
            id(node.body[0].value)
            for node in tree.body
            if isinstance(node, ast.FunctionDef) and isinstance(node.body[0], ast.Expr) and is_command(node)
        }
        nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in inner)
        return [text for node in nodes for text in strings_in(node) if " " in text]
    raised = (node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc is not None)
    return [text for node in raised for text in strings_in(node) if " " in text]


def is_command(node: ast.FunctionDef) -> bool:
    """Say whether typer shows a function's docstring: it isn't private."""
    return not node.name.startswith("_")


NOT_YET: set[str] = set()
"""Modules whose texts are still to be rewritten; the list may only get shorter."""


@pytest.mark.parametrize(
    "path", [each for each in sorted(SOURCE.rglob("*.py")) if named(each) not in NOT_YET], ids=named
)
def test_help_and_error_messages_use_plain_words(path: Path) -> None:
    assert complaints("\n".join(without_code(each) for each in messages_of(path)), BANNED) == []
