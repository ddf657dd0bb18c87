"""Settings are checked, stored, and read from files; texts of the page exist in every language."""

import json
import string
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from duelpool.campaign import Campaign, NotAllowed, Settings
from duelpool.campaign.settings import CHANGEABLE, FIXED, SETTINGS
from duelpool.campaign.settings.changes import UnreadableSettings, changed
from duelpool.campaign.settings.file import read_changes, read_settings
from duelpool.campaign.settings.welcome import CheckQuestion, PracticePair
from duelpool.cli import app
from duelpool.errors import BadFile, BadParameter, DuelpoolError, UnknownName
from duelpool.records import Judgment, Outcome
from duelpool.store import Store, holdings, log, open_store
from duelpool.web.i18n import FOLDER, catalogue, choose, languages
from support.campaigns import make_campaign
from support.visitors import Person, served

TOML = """
judges = "crowd"
completion_code = "C1"
steps = ["consent", "check"]
languages = ["de", "en"]
reward = 250
[[check]]
text = "Which?"
choices = ["a", "b"]
answer = 1
[[practice]]
topic = "Q"
left = "x"
right = "y"
better = "right"
"""


def write(folder: Path, text: str) -> str:
    path = folder / "settings.toml"
    path.write_text(text)
    return str(path)


def test_a_settings_file_sets_values_by_name(tmp_path: Path) -> None:
    settings = read_settings(write(tmp_path, TOML), Settings(cap=3))
    assert settings == Settings(
        judges="crowd",
        completion_code="C1",
        steps=("consent", "check"),
        languages=("de", "en"),
        reward=250,
        cap=3,
        check=(CheckQuestion("Which?", ("a", "b"), 1),),
        practice=(PracticePair("Q", "x", "y", "right"),),
    )
    assert Settings.from_json(json.loads(json.dumps(settings.as_json()))) == settings
    as_json = write(tmp_path, json.dumps({"completion_code": "C1", "budget": 5}))
    assert read_settings(as_json, Settings()) == Settings(completion_code="C1", budget=5)


def test_a_command_line_option_wins_over_the_settings_file(tmp_path: Path) -> None:
    assert read_settings(write(tmp_path, TOML), Settings(reward=300)).reward == 300


@pytest.mark.parametrize(
    "text",
    [
        "completion_code = 5",
        "feedback = 1",
        "reward = true",
        'reward = "2"',
        "reward = 2.5",
        "lease_seconds = 'x'",
        "steps = 'consent'",
        "steps = ['guide', 'consent']",
        "steps = ['exam']",
        "languages = ['English']",
        "check = [1]",
        "check = [{text = 'x', choices = ['a', 'b'], answer = 2}]",
        "check = [{text = 'x', choices = ['a'], answer = 0}]",
        "practice = [{topic = 'x'}]",
        "practice = [{topic = 'x', left = 'l', right = 'r', better = 'both'}]",
        "completion_url = 'javascript:alert(1)'",
        "completion_url = '//evil.example'",
        "completion_url = 'https://user@evil.example/'",
        "completion_url = 'https://[x'",
        "identity_parameter = 'key'",
        "identity_parameter = 'a b'",
        "assignments_each = 0",
        "= 1",
        "{",
        "[1]",
    ],
)
def test_a_bad_settings_file_is_refused_with_its_path(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(DuelpoolError) as caught:
        read_settings(path, Settings())
    assert path in str(caught.value) or isinstance(caught.value, UnknownName)


def test_an_unknown_name_is_refused_with_the_nearest_setting(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=r"settings\.toml.*completion_code"):
        read_settings(write(tmp_path, 'completion_cod = "x"'), Settings())


def test_read_changes_refuses_fixed_settings(tmp_path: Path) -> None:
    present = Settings(seed=7)
    changed = read_changes(write(tmp_path, 'completion_code = "C2"\nties = true'), present)
    assert (changed.completion_code, changed.ties, changed.seed) == ("C2", True, 7)
    for name in sorted(set(present.as_json()) - set(CHANGEABLE)):
        value: Any = present.as_json()[name]
        if value is None:
            continue
        with pytest.raises(BadFile, match=name):
            read_changes(write(tmp_path, json.dumps({name: value})), present)


@pytest.mark.parametrize("url", ["https://panel.example/complete?cc=1", "http://localhost:1/x", ""])
def test_completion_url_takes_web_addresses(url: str) -> None:
    assert Settings(completion_url=url).completion_url == url


def test_completion_url_refuses_other_addresses() -> None:
    for url in ("javascript:alert(1)", "data:text/html,x", "/j/", "https://", "https://a\nb", "https:\\\\x"):
        with pytest.raises(BadParameter):
            Settings(completion_url=url)


def call(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, list(arguments))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, done.output
    return done.output


def test_pool_reads_a_settings_file_and_change_changes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r.run").write_text("".join(f"1 Q0 {item} {at} {-at} r\n" for at, item in enumerate("abc")))
    Path("s.toml").write_text('completion_code = "C1"\ncontext = false\n')
    call("pool", "r.run", "-o", "c.db", "--settings", "s.toml")
    Path("t.toml").write_text('completion_code = "C2"\n')
    call("change", "c.db", "--settings", "t.toml", "--state", "paused")
    with open_store("c.db") as store:
        campaign = Campaign.open(store)
        assert (campaign.settings.completion_code, campaign.settings.context) == ("C2", False)
    Path("t.toml").write_text("seed = 2\n")
    assert "can't be changed" in call("change", "c.db", "--settings", "t.toml", code=2)
    assert "nothing to change" in call("change", "c.db", code=2)
    assert "There is no state" in call("change", "c.db", "--state", "asleep", code=2)


def test_settings_missing_in_an_old_store_have_their_defaults(tmp_path: Path) -> None:
    with open_store(tmp_path / "c.db", create=True) as store:
        campaign = make_campaign(store)
        old = {"strategy": "prefbest", "seed": 3}
        assert Settings.from_json(old) == Settings(strategy="prefbest", seed=3)
        assert campaign.settings.steps == ("consent", "guide", "check", "practice")


REFUSED_TODAY = {
    "completion_url": "javascript:alert(1)",
    "languages": ["English, please"],
    "identity_parameter": "key",
    "reward": -5,
    "failed_code": "a code with blanks",
    "steps": ["practice", "consent"],
}


@pytest.mark.parametrize("names", [*([name] for name in REFUSED_TODAY), list(REFUSED_TODAY)])
def test_stored_settings_that_are_refused_today_dont_keep_a_campaign_from_opening(
    names: list[str], tmp_path: Path
) -> None:
    with open_store(tmp_path / "c.db", create=True) as store:
        campaign = make_campaign(store, panel="generic", completion_code="C1", cap=4)
        stored = {**campaign.settings.as_json(), **{name: REFUSED_TODAY[name] for name in names}}
        campaign.write(lambda tx: holdings.set_campaign(tx, settings=stored))
        opened = Campaign.open(store)
        assert sorted(refused.name for refused in opened.refused_settings) == sorted(names)
        assert opened.settings == campaign.settings
    told = CliRunner().invoke(app, ["status", str(tmp_path / "c.db")])
    assert told.exit_code == 0
    for name in names:
        assert f"The stored setting '{name}' isn't accepted any more, and its default is used." in told.stderr


@pytest.fixture(scope="module")
def judged_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("judged") / "c.db"
    with open_store(path, create=True) as store:
        campaign = make_campaign(store, panel="generic", completion_code="C1", cap=4)
        campaign.add_judgments([Judgment("one", "a", "b", Outcome.LEFT)])
        make_campaign(store, name="other")
    return path


TRIED = (-5, 0, 7.5, "no such thing", ["no such thing"], "javascript:x", "key", {"a": 1}, None)


def refused_values(name: str) -> list[Any]:
    """Return values of a setting that are refused today; some of them, an earlier check may have let pass."""

    def is_refused(value: Any) -> bool:
        try:
            Settings.from_json({name: value})
        except DuelpoolError:
            return True
        return False

    return [value for value in TRIED if is_refused(value)][:5]


def opened_or_refused(store: Store) -> tuple[Campaign | None, DuelpoolError]:
    try:
        return Campaign.open(store, "letters"), DuelpoolError("")
    except UnreadableSettings as error:
        return None, error


@pytest.mark.parametrize("name", SETTINGS)
def test_no_stored_setting_that_is_refused_today_gives_a_traceback(
    name: str, judged_store: Path, tmp_path: Path
) -> None:
    values = refused_values(name)
    assert values or name == "criterion"
    path = tmp_path / "c.db"
    path.write_bytes(judged_store.read_bytes())
    with open_store(path) as store:
        campaign = Campaign.open(store, "letters")
        for value in values:
            stored = {**campaign.settings.as_json(), name: value}
            campaign.write(partial(holdings.set_campaign, settings=stored))
            other = store.read(lambda connection: holdings.find_campaign(connection, "other"))
            assert Campaign.open(store, "other").settings == Settings.from_json(other.settings)
            opened, error = opened_or_refused(store)
            if opened is None:
                assert name in FIXED
                assert f"The stored setting '{name}' isn't accepted any more" in error.problem
                assert "the release that made it" in error.remedy
                continue
            assert [each.name for each in opened.refused_settings] == [name]
            assert opened.read(log.line_count) == 1
            opened.enrol("anna", "dedicated")
            if name in FIXED:
                assert getattr(opened.settings, name) == value
                with pytest.raises(NotAllowed, match="isn't accepted any more"):
                    opened.next_question("anna")
                opened.change(changed(opened.settings, {"consent": "Yes?"}))
                assert Campaign.open(store, "letters").settings.consent == "Yes?"
            else:
                opened.next_question("anna")


@pytest.mark.parametrize("name", ["cap", "bad_votes", "test_share"])
def test_a_campaign_with_a_refused_number_can_be_read_and_exported(
    name: str, judged_store: Path, tmp_path: Path
) -> None:
    path = tmp_path / "c.db"
    path.write_bytes(judged_store.read_bytes())
    with open_store(path) as store:
        campaign = Campaign.open(store, "letters")
        stored = {**campaign.settings.as_json(), name: -5}
        campaign.write(lambda tx: holdings.set_campaign(tx, settings=stored))
    words = [str(path), "--campaign", "letters"]
    for command in (["status"], ["export", "--as", "jsonl", "-o", "-"], ["log"]):
        told = CliRunner().invoke(app, [command[0], *words, *command[1:]])
        assert told.exit_code == 0, (command, told.output)
        assert f"'{name}' isn't accepted any more, so no more questions are asked" in told.stderr


def test_a_campaign_that_can_not_be_opened_keeps_no_other_from_being_served(
    judged_store: Path, tmp_path: Path
) -> None:
    path = tmp_path / "c.db"
    path.write_bytes(judged_store.read_bytes())
    with open_store(path) as store:
        bad, other = Campaign.open(store, "letters"), Campaign.open(store, "other")
        stored = {**bad.settings.as_json(), "judges": "robots"}
        bad.write(lambda tx: holdings.set_campaign(tx, settings=stored))
    with served(path) as served_app:
        assert Person(served_app, other.id).page().status_code == 200
        assert Person(served_app, bad.id).entered.status_code == 422
        served_app.state.campaigns.warm()
        served_app.state.campaigns.sweep()


def test_a_stored_budget_of_0_opens_and_asks_nothing_and_a_new_campaign_is_refused_it(tmp_path: Path) -> None:
    with open_store(tmp_path / "c.db", create=True) as store:
        campaign = make_campaign(store, strategy="swissfinals:budget=9")
        stored = {**campaign.settings.as_json(), "strategy": "swissfinals:budget=0"}
        campaign.write(lambda tx: holdings.set_campaign(tx, settings=stored))
        opened = Campaign.open(store)
        assert opened.done
        opened.add_judgments([Judgment("one", "a", "b", Outcome.LEFT)])
        assert opened.result("one").best[0] == "a"
        opened.enrol("p")
        assert opened.next_question("p") is None
        with pytest.raises(BadParameter, match="from 1 on, not 0"):
            make_campaign(store, name="new", strategy="swissfinals:budget=0")
        assert [row.name for row in store.read(holdings.campaigns)] == ["letters"]
    assert CliRunner().invoke(app, ["status", str(tmp_path / "c.db")]).exit_code == 0


def test_stored_difference_opens_and_a_new_campaign_is_refused_it(tmp_path: Path) -> None:
    with open_store(tmp_path / "c.db", create=True) as store:
        campaign = make_campaign(store, strategy="allpairs")
        stored = {**campaign.settings.as_json(), "strategy": "difference"}
        campaign.write(lambda tx: holdings.set_campaign(tx, settings=stored))
        assert Campaign.open(store).done
        with pytest.raises(BadParameter, match="compares two rankings"):
            make_campaign(store, name="new", strategy="difference")
        assert [row.name for row in store.read(holdings.campaigns)] == ["letters"]
    assert CliRunner().invoke(app, ["status", str(tmp_path / "c.db")]).exit_code == 0


def test_pool_with_difference_is_refused_and_writes_no_store(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text("1 Q0 a 1 2 x\n1 Q0 b 2 1 x\n")
    words = ["pool", str(tmp_path / "a.run"), "--strategy", "difference", "-o", str(tmp_path / "new.db")]
    refused = CliRunner().invoke(app, words)
    assert refused.exit_code == 2
    assert "compares two rankings" in refused.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.run"]


# ---- the catalogue


def test_choose_prefers_the_requested_then_the_best_accepted_language() -> None:
    assert choose("de", "en") == "de"
    assert choose("", "xx, de-AT;q=0.8, en;q=0.5") == "de"
    assert choose("", "en;q=0.5, de;q=0.8") == "de"
    assert choose("", "de;q=0") == "en"
    assert choose("", "") == "en"
    assert choose("", "xx;q=y, ;;,") == "en"
    assert choose("xx", "de") == "de"
    assert choose("en", "en", ("de",)) == "de"
    assert choose("", "", ("xx", "de")) == "de"


def test_every_language_has_every_text_and_its_placeholders() -> None:
    english = catalogue("en").all()
    for lang in languages():
        own = json.loads((FOLDER / f"{lang}.json").read_text(encoding="utf-8"))
        assert set(own) == set(english), lang
        for key, text in own.items():
            if isinstance(text, str):
                fields = {name for _, name, _, _ in string.Formatter().parse(text) if name}
                assert fields == {name for _, name, _, _ in string.Formatter().parse(english[key]) if name}, (
                    key
                )


def test_catalogue_fills_in_values_and_shows_an_unknown_key_as_it_is() -> None:
    english = catalogue("en")
    assert english("nowhere") == "nowhere"
    assert "2" in english("check.tries", tries=2)
    assert catalogue("de").lang == "de"
    assert english.dir == "ltr"


def test_campaigns_of_earlier_releases_keep_their_seven_judgments_an_item() -> None:
    """Their settings have no `required`: swissfinals meant seven an item, and nothing was held back."""
    for before, after in (
        ("swissfinals", "swissfinals:per_item=7"),
        ("swissfinals:top=3", "swissfinals:top=3,per_item=7"),
        ("swissfinals:budget=40", "swissfinals:budget=40"),
        ("allpairs", "allpairs"),
    ):
        old = {
            name: value for name, value in Settings(strategy=before).as_json().items() if name != "required"
        }
        settings, refused = Settings.from_store(old)
        assert (settings.strategy, settings.required, refused) == (after, (), ())
        again, _ = Settings.from_store(settings.as_json())
        assert again == settings
        assert Settings.from_store(Settings(strategy=before).as_json())[0].strategy == before
