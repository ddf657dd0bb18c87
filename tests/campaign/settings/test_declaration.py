"""Each setting is declared once: forms, files, the API and the documentation take exactly what is declared."""

import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from duelpool.campaign import Settings
from duelpool.campaign.settings import CHANGEABLE, FIXED, SETTINGS
from duelpool.campaign.settings.changes import changed
from duelpool.campaign.settings.declaration import SettingField
from duelpool.campaign.settings.file import read_changes, read_settings
from duelpool.errors import BadFile, BadParameter, UnknownName
from duelpool.web.manage.schemas import ChangeSettings
from duelpool.web.manage.settings import form_sections

PAGE = Path(__file__).parents[3] / "docs" / "judging.md"
WRONG: Any = {"not": ["a", "value"]}  # of any setting


def test_every_setting_has_a_label_and_either_an_effect_or_a_reason() -> None:
    assert list(SETTINGS) == list(Settings().as_json())
    assert [*CHANGEABLE, *FIXED] == sorted(
        SETTINGS, key=lambda name: (name in FIXED, list(SETTINGS).index(name))
    )
    for name, field in SETTINGS.items():
        about = field.about
        assert about.label, name
        assert about.help.endswith("."), name
        assert bool(about.effect) != bool(about.fixed_because), name
        assert (about.effect or about.fixed_because).endswith("."), name
        assert bool(about.section) == field.changeable, name
    labels = [field.about.label for field in SETTINGS.values()]
    assert len(set(labels)) == len(labels)


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("ties", "tick"),
        ("steps", "ticks"),
        ("languages", "list"),
        ("check", "records"),
        ("judges", "choice"),
        ("panel", "choice"),
        ("budget", "number"),
        ("currency", "line"),
        ("consent", "text"),
    ],
)
def test_a_form_asks_for_a_setting_by_its_type(name: str, how: str) -> None:
    assert SETTINGS[name].input == how


def test_every_default_is_valid() -> None:
    defaults = {name: field.default for name, field in SETTINGS.items()}
    assert Settings(**defaults) == Settings() == replace(Settings(), **defaults)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_bad_value_is_refused_with_the_name_the_value_and_a_remedy(name: str, tmp_path: Path) -> None:
    for make in (Settings, partial(replace, Settings())):
        with pytest.raises(BadParameter) as refused:
            make(**{name: WRONG})
        assert refused.value.problem == f"'{name}' can't be {WRONG!r}."
        assert refused.value.remedy
    file = tmp_path / "settings.json"
    file.write_text(json.dumps({name: WRONG}))
    for read in (read_settings, read_changes):
        with pytest.raises(BadFile) as in_file:
            read(str(file), Settings())
        assert in_file.value.place == str(file)
        assert f"'{name}' can't" in in_file.value.problem
        assert in_file.value.remedy


@pytest.mark.parametrize(
    ("values", "problem", "remedy"),
    [
        ({"cap": 0}, "'cap' can't be 0.", "Give a whole number from 1 on."),
        ({"tests": -1}, "'tests' can't be -1.", "Give a whole number from 0 on."),
        ({"reward": 2.0}, "'reward' can't be 2.0.", "Give a whole number from 0 on."),
        ({"budget": "5"}, "'budget' can't be '5'.", "Give a whole number, or null."),
        ({"lease_seconds": 0}, "'lease_seconds' can't be 0.", "Give a number above 0."),
        ({"test_share": 1.5}, "'test_share' can't be 1.5.", "Give a number from 0 to 1."),
        ({"ties": 1}, "'ties' can't be 1.", "Give true or false."),
        ({"currency": 5}, "'currency' can't be 5.", "Give a text."),
        ({"languages": "de"}, "'languages' can't be 'de'.", "Give a list of texts."),
        ({"languages": ["English"]}, "'languages' can't be 'English'.", "Write a language as en, de or pt-BR."),
        ({"flips": "tied"}, "'flips' can't be 'tied'.", "Did you mean 'tie'? Known: abstain, tie."),
        ({"kind": "graded"}, "'kind' can't be 'graded'.", "Did you mean 'grade'? Known: definite, grade, preference."),
        ({"kind": "grade"}, "'kind' can't be 'grade'.", "For grades, start with stage 'grading'."),
        ({"steps": ["exam"]}, "'steps' can't be 'exam'.", "Known: check, consent, guide, practice."),
        ({"identity_parameter": "key"}, "'identity_parameter' can't be 'key'.", "such as worker"),
        ({"completion_url": "/end"}, "'completion_url' can't be '/end'.", "from https:// on."),
        ({"check": [1]}, "'check' can't be 1.", "a list of questions with 'text', 'choices' and 'answer'"),
        ({"plan": [["t", "a"]]}, "'plan' can't be ['t', 'a'].", "a list of rows"),
    ],
    ids=str,
)  # fmt: skip
def test_messages_come_from_the_declaration(values: dict[str, Any], problem: str, remedy: str) -> None:
    with pytest.raises(BadParameter) as refused:
        Settings(**values)
    assert refused.value.problem == problem
    assert remedy in refused.value.remedy


def test_a_name_without_declaration_is_refused_or_left_out_of_a_store(tmp_path: Path) -> None:
    nothing: dict[str, Any] = {"capp": 3}
    with pytest.raises(UnknownName, match=r"no setting called 'capp'\. Did you mean 'cap'"):
        Settings(**nothing)
    with pytest.raises(UnknownName, match=r"no setting called 'capp'\. Did you mean 'cap'"):
        changed(Settings(), nothing)
    file = tmp_path / "settings.toml"
    file.write_text("capp = 3")
    for read in (read_settings, read_changes):
        with pytest.raises(BadFile, match="no setting called 'capp'"):
            read(str(file), Settings())
    assert Settings.from_json(nothing) == Settings()


def test_a_settings_file_takes_every_declared_name(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text(json.dumps(Settings().as_json()))
    assert read_settings(str(file), Settings()) == Settings()
    file.write_text(json.dumps({name: Settings().as_json()[name] for name in CHANGEABLE}))
    assert read_changes(str(file), Settings(seed=4)) == Settings(seed=4)


def test_the_api_describes_exactly_the_changeable_settings() -> None:
    described = ChangeSettings.model_json_schema()["properties"]["settings"]
    assert list(described["properties"]) == list(CHANGEABLE)
    assert described["additionalProperties"] is False
    for name, schema in described["properties"].items():
        assert schema["title"] == SETTINGS[name].about.label
        assert schema.get("minimum") == SETTINGS[name].schema.get("minimum")
        assert "$ref" not in json.dumps(schema), "a schema that is put into another one refers to nothing"


def test_the_form_has_exactly_the_changeable_settings() -> None:
    sections = form_sections(Settings().as_json())
    names = [field.name for rows in sections.values() for field, _ in rows]
    assert sorted(names) == sorted(CHANGEABLE)
    assert all(sections)
    for name in CHANGEABLE:
        if SETTINGS[name].input == "choice":
            assert set(SETTINGS[name].about.choices) >= set(SETTINGS[name].schema.get("enum", ())), name


# ---- documentation


def documented_default(field: SettingField) -> str:
    value = field.default
    if value is None or value in ("", ()):
        return "none"
    if isinstance(value, tuple):
        return ", ".join(value)
    return (
        str(value).lower()
        if isinstance(value, bool)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )


def documented_row(field: SettingField) -> str:
    cells = (
        f"`{field.name}`",
        documented_default(field),
        field.about.help,
        field.about.effect or field.about.fixed_because,
    )
    return f"| {' | '.join(cells)} |"


@pytest.mark.parametrize("names", [tuple(CHANGEABLE), tuple(FIXED)], ids=["changeable", "fixed"])
def test_the_documentation_has_every_setting_as_it_is_declared(names: tuple[str, ...]) -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## Settings")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `\w+` \|.*$", section, re.MULTILINE)
    wanted = [documented_row(SETTINGS[name]) for name in names]
    assert [row for row in rows if row.split("`")[1] in names] == wanted, "\n".join(wanted)
