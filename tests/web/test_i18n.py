"""The catalogues: every language has the same keys, and exactly those that the pages use."""

import json
import re
import string
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from duelpool.campaign.settings import SCALES
from duelpool.campaign.settings.welcome import CheckQuestion, PracticePair
from duelpool.records import Outcome
from duelpool.web import i18n, templating
from duelpool.web.i18n import FOLDER, catalogue, choose, languages
from duelpool.web.server.guard import STATUSES

FILES = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}
ENGLISH = FILES["en"]
TEMPLATES = {path.name: path.read_text(encoding="utf-8") for path in templating.TEMPLATES.glob("*.html")}
OTHERS = sorted(set(FILES) - {"en"})


ANSWERS = "@answers"  # what is said otherwise where answers of systems are judged


def placeholders(text: str) -> list[str]:
    return sorted(name for _, name, _, _ in string.Formatter().parse(text) if name is not None)


def shape(value: Any) -> Any:
    """Return the structure that all languages share."""
    if isinstance(value, str):
        return placeholders(value)
    if isinstance(value, list):
        return [shape(each) for each in value]
    if isinstance(value, dict):
        return {name: shape(each) for name, each in value.items()}
    return value


def test_every_file_of_the_folder_is_a_language_that_is_offered() -> None:
    assert languages() == ("en", *OTHERS)
    assert {"de", "fr"} <= set(FILES)
    assert len({texts["language"] for texts in FILES.values()}) == len(FILES)


def test_a_language_is_added_by_its_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for lang, texts in FILES.items():
        (tmp_path / f"{lang}.json").write_text(json.dumps(texts), encoding="utf-8")
    new = {**ENGLISH, "language": "Esperanto", "judge.title": "Juĝado"}
    (tmp_path / "eo.json").write_text(json.dumps(new), encoding="utf-8")
    monkeypatch.setattr(i18n, "FOLDER", tmp_path)
    for kept in (languages, catalogue):
        kept.cache_clear()
    try:
        assert choose("", "eo, en;q=0.5") == "eo"
        assert catalogue("eo")("judge.title") == "Juĝado"
    finally:
        for kept in (languages, catalogue):
            kept.cache_clear()


@pytest.mark.parametrize("lang", FILES)
def test_no_text_needs_a_plural(lang: str) -> None:
    """A count stands behind a colon or in brackets, never before its noun, so that no language needs plural forms."""
    texts = {key: text for key, text in FILES[lang].items() if isinstance(text, str)}
    assert [key for key, text in texts.items() if re.search(r"\{(n|tries)\} ?\w", text)] == []


@pytest.mark.parametrize("lang", OTHERS)
def test_a_language_has_the_keys_and_placeholders_of_english(lang: str) -> None:
    assert list(FILES[lang]) == list(ENGLISH)
    assert {key: shape(value) for key, value in FILES[lang].items()} == {
        key: shape(value) for key, value in ENGLISH.items()
    }


@pytest.mark.parametrize("lang", OTHERS)
def test_each_language_is_translated(lang: str) -> None:
    same = [
        key
        for key, text in FILES[lang].items()
        if isinstance(text, str) and len(text) > 12 and text == ENGLISH[key]
    ]
    assert same == []
    for key, text in FILES[lang].items():
        assert text, f"{key} is empty"


def test_check_and_practice_are_complete() -> None:
    for texts in FILES.values():
        questions = [
            CheckQuestion(each["text"], tuple(each["choices"]), each["answer"]) for each in texts["check"]
        ]
        assert len(questions) == 2
        assert len([PracticePair(**each) for each in texts["practice"]]) == 2
    for lang in OTHERS:
        assert [each["better"] for each in FILES[lang]["practice"]] == [
            each["better"] for each in ENGLISH["practice"]
        ]
        for key in ("check", "check@answers"):
            assert [each["answer"] for each in FILES[lang][key]] == [each["answer"] for each in ENGLISH[key]]


def asked_for() -> set[str]:
    """Return the keys that the templates use."""
    keys: set[str] = set()
    for text in TEMPLATES.values():
        keys |= set(re.findall(r'words\("([^"]+)"', text))
        keys |= set(chain.from_iterable(re.findall(r'words\("([^"]+)" if [^}]*? else "([^"]+)"', text)))
    return {key for key in keys if not key.endswith(".")}


def put_together() -> set[str]:
    sided = ("left", "right", "definitely-left", "definitely-right", "name.left", "name.right")
    sides = {f"judge.{name}.{how}" for name in sided for how in ("beside", "stacked")}
    judging = TEMPLATES["judging.html"]
    lists = [re.findall(r'"([^"]+)"', each) for each in re.findall(r"for name in \[([^\]]+)\]", judging)]
    page, acts = lists
    keys = sides | {f"page.{name}" for name in page} | {f"act.{name}" for name in acts}
    keys |= {f"judge.{name}" for name in ("tie", "same", "both-bad", "cannot-judge", "skip")}
    keys |= {f"options.size.{size}" for size in ("small", "normal", "large")}
    keys |= {"practice.right", "practice.wrong", "feedback.confidence", "feedback.understanding"}
    keys |= {
        "consent_text",
        "guide_text",
        "check",
        "practice",
        "language",
        "dir",
        "judge.untitled",
        "consent.no_name",
    }
    whys = ("", ".done", ".spent", ".held", ".own")
    keys |= {f"no_work{why}.{part}" for why in whys for part in ("title", "text")}
    keys |= {f"grade_{scale}_{grade:g}" for scale, grades in SCALES.items() for grade in grades}
    names = {name for _, name in STATUSES.values()} | {"unexpected"}
    return keys | {f"{part}_{name}" for part in ("problem", "remedy") for name in names}


def test_the_catalogue_has_exactly_the_keys_of_the_pages() -> None:
    wanted = asked_for() | put_together()
    assert wanted - set(ENGLISH) == set()
    own = {key for key in ENGLISH if key.endswith(ANSWERS)}
    assert set(ENGLISH) - own - wanted == set()
    assert {key.removesuffix(ANSWERS) for key in own} <= wanted


def test_texts_about_answers_stand_for_the_usual_ones() -> None:
    texts = catalogue("en").about("answers")
    assert texts("judge.ask") == "Which answer is better?"
    assert [each["id"] for each in texts.listed("check")] == ["c1", "c2"]
    assert texts("judge.undo") == "Undo"
    assert texts.about("other")("judge.ask") == texts("judge.ask")
    shown = {key: str(text) for key, text in texts.all().items() if not key.endswith(ANSWERS)}
    grades = ("judge.count.grade", "judge.only", "judge.ask.grade", "judge.ask.grade.criterion")
    assert [key for key, text in shown.items() if "passage" in text.lower() and key not in grades] == []


def test_the_catalogue_has_the_keys_of_the_scripts() -> None:
    scripts = "\n".join(path.read_text(encoding="utf-8") for path in (templating.STATIC / "js").glob("*.js"))
    used = {one or two for one, two in re.findall(r'\bwords(?:\.(\w+)|\["([^"]+)"\])', scripts)}
    used |= set(re.findall(r'"(hold\.[a-z.]+)"', scripts))
    judging = TEMPLATES["judging.html"]
    given = set(re.findall(r'"([^"]+)"', re.findall(r"for name in \[([^\]]+)\]", judging)[0]))
    given |= set(re.findall(r'"([a-z.]+)": \{\{', judging))
    assert used <= given
    acts = re.findall(r'"([^"]+)"', re.findall(r"for name in \[([^\]]+)\]", judging)[1])
    keyed = set(
        re.findall(r'^  "?([a-z-]+)"?: \[', (templating.STATIC / "js" / "keys.js").read_text(), re.MULTILINE)
    )
    assert keyed <= set(acts)
    assert keyed - {"undo", "context", "note", "together", "highlight", "help"} <= {
        str(outcome) for outcome in Outcome
    }


def test_a_text_without_values_keeps_its_placeholders() -> None:
    assert catalogue("de")("judge.count") == "Paar {at} von {of}"
    assert catalogue("de")("judge.count", at=1, of=2) == "Paar 1 von 2"


@pytest.mark.parametrize(
    ("wished", "accepted", "offered", "chosen"),
    [
        ("", "de-CH,en;q=0.8", (), "de"),
        ("", "en;q=0.5, de;q=0.9", (), "de"),
        ("", "it, de;q=0", (), "en"),
        ("", "fr-CA, en;q=0.8", (), "fr"),
        ("de", "en", (), "de"),
        ("de", "de", ("en",), "en"),
        ("xx", "", (), "en"),
    ],
)
def test_language_is_the_one_wished_for_or_the_best_accepted(
    wished: str, accepted: str, offered: tuple[str, ...], chosen: str
) -> None:
    assert choose(wished, accepted, offered) == chosen


@pytest.mark.parametrize("lang", languages())
def test_the_consent_has_the_sentence_that_a_link_with_a_name_leaves_out(lang: str) -> None:
    texts = catalogue(lang)
    for each in (texts, texts.about("answers")):
        assert f" {texts('consent.no_name')}" in each("consent_text")
