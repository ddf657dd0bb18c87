"""The catalogue: all that the page says, one file a language."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "catalogues"
FIRST = "en"


class Catalogue:
    """The texts of one language; missing ones are taken from English."""

    def __init__(self, lang: str, own: Mapping[str, Any], english: Mapping[str, Any]) -> None:
        self.lang = lang
        self._texts = {**english, **own}

    def __call__(self, key: str, **values: object) -> str:
        """Return the text under a key, with the values in their places; an unknown key is its own text."""
        text = self._texts.get(key, key)
        return text.format(**values) if isinstance(text, str) and values else str(text)

    def has(self, key: str) -> bool:
        """Say whether the catalogue holds a text."""
        return key in self._texts

    def listed(self, key: str) -> Sequence[Mapping[str, Any]]:
        """Return the entries under a key that holds several, such as the check's questions."""
        found = self._texts.get(key, ())
        return found if isinstance(found, list) else ()

    def all(self) -> Mapping[str, Any]:
        """Return every text under its key."""
        return self._texts

    @property
    def dir(self) -> str:
        """The direction in which the language is written: ltr or rtl."""
        return str(self._texts.get("dir", "ltr"))


@cache
def languages() -> tuple[str, ...]:
    """Return the languages that the page speaks, English first."""
    found = sorted(path.stem for path in FOLDER.glob("*.json"))
    return (FIRST, *(lang for lang in found if lang != FIRST))


@cache
def catalogue(lang: str) -> Catalogue:
    """Return the catalogue of a language."""
    return Catalogue(lang, _read(lang), _read(FIRST))


def _read(lang: str) -> Mapping[str, Any]:
    path = FOLDER / f"{lang}.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def choose(wished: str, accepted: str, offered: Iterable[str] = ()) -> str:
    """Return the language to speak: the one wished for, or the best of those that a browser accepts."""
    known = [lang for lang in (offered or languages()) if lang in languages()] or [FIRST]
    for lang in (wished, *_by_preference(accepted)):
        for form in (lang, lang.split("-")[0]):
            if form in known:
                return form
    return known[0]


def _by_preference(accepted: str) -> list[str]:
    """Return the languages of an Accept-Language header, the best first."""
    found: list[tuple[float, str]] = []
    for part in accepted[:1000].split(","):
        lang, _, weight = part.strip().partition(";q=")
        try:
            found.append((-float(weight) if weight else -1.0, lang.strip().lower()))
        except ValueError:
            continue
    return [lang for weight, lang in sorted(found, key=lambda each: each[0]) if weight and lang]
