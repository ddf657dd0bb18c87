"""The catalogues: the texts of the pages, one file per language."""

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
        self._kinds: dict[str, Catalogue] = {}

    def __call__(self, key: str, **values: object) -> str:
        """Return the text of a key with the values filled in; an unknown key is its own text."""
        text = self._texts.get(key, key)
        return text.format(**values) if isinstance(text, str) and values else str(text)

    def has(self, key: str) -> bool:
        """Return whether the catalogue has a text."""
        return key in self._texts

    def listed(self, key: str) -> Sequence[Mapping[str, Any]]:
        """Return the entries of a key that holds a list, such as the check's questions."""
        entries = self._texts.get(key, ())
        return entries if isinstance(entries, list) else ()

    def about(self, kind: str) -> "Catalogue":
        """Return the catalogue for campaigns of a kind: a text `key@kind` stands for `key` there."""
        if kind not in self._kinds:
            ending = f"@{kind}"
            own = {
                key.removesuffix(ending): text for key, text in self._texts.items() if key.endswith(ending)
            }
            self._kinds[kind] = Catalogue(self.lang, own, self._texts)
        return self._kinds[kind]

    def all(self) -> Mapping[str, Any]:
        """Return all texts by key."""
        return self._texts

    @property
    def dir(self) -> str:
        """The direction in which the language is written: ltr or rtl."""
        return str(self._texts.get("dir", "ltr"))


@cache
def languages() -> tuple[str, ...]:
    """Return the available languages, English first."""
    names = sorted(path.stem for path in FOLDER.glob("*.json"))
    return (FIRST, *(lang for lang in names if lang != FIRST))


@cache
def catalogue(lang: str) -> Catalogue:
    """Return the catalogue of a language."""
    return Catalogue(lang, _read(lang), _read(FIRST))


def _read(lang: str) -> Mapping[str, Any]:
    path = FOLDER / f"{lang}.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def choose(chosen: str, accepted: str, offered: Iterable[str] = ()) -> str:
    """Return the language to use: the chosen one, or the best of those that the browser accepts."""
    known = [lang for lang in (offered or languages()) if lang in languages()] or [FIRST]
    for lang in (chosen, *_by_preference(accepted)):
        for form in (lang, lang.split("-")[0]):
            if form in known:
                return form
    return known[0]


def _by_preference(accepted: str) -> list[str]:
    """Return the languages of an Accept-Language header, the best first."""
    weighted: list[tuple[float, str]] = []
    for part in accepted[:1000].split(","):
        lang, _, weight = part.strip().partition(";q=")
        try:
            weighted.append((-float(weight) if weight else -1.0, lang.strip().lower()))
        except ValueError:
            continue
    return [lang for weight, lang in sorted(weighted, key=lambda each: each[0]) if weight and lang]
