"""What installed packages add: found, listed, used, and left out with a reason where it can't be."""

import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from duelpool.campaign import Campaign
from duelpool.campaign.settings import SETTINGS, Settings
from duelpool.cli import app
from duelpool.errors import UnknownName
from duelpool.judges import JUDGES, make_judges
from duelpool.measures import MEASURES, parse_measure
from duelpool.panels import PANELS
from duelpool.plugins import PluginError, PluginTable, PluginWarning
from duelpool.records import Answer, Outcome
from duelpool.setup.forecasts import every_strategy
from duelpool.simulation import simulate
from duelpool.strategies import STRATEGIES, make_strategy
from duelpool.testing import ContractError, judge_contract, measure_contract, strategy_contract
from duelpool.web.setup.keys import setup_key
from support.visitors import ORIGIN, new_store, served

TABLES: tuple[PluginTable[Any], ...] = (STRATEGIES, MEASURES, JUDGES, PANELS)
PAGE = Path(__file__).parents[2] / "docs" / "plugins.md"
TOML, STRATEGY = re.findall(r"^```(?:toml|python)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)

MEASURE = """
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from duelpool.measures import Measure

@dataclass(frozen=True, kw_only=True)
class Found(Measure):
    name: ClassVar[str] = "Found"
    about: ClassVar[str] = "Whether the run has a judged document."
    def _score(self, truth, placed):
        return np.ones(placed.topics)

class Loose:
    name = "Loose"
"""
JUDGE = """
from duelpool.judges.simulated import CaseA

def sure(q: float = 0.9):
    return CaseA(q=q)
"""
PANEL = """
from duelpool.panels.generic import Generic

class Choir(Generic):
    name = "choir"
"""

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install packages as files: metadata with entry points, and their modules."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)

    def made(package: str, modules: dict[str, str], **groups: list[str]) -> None:
        info = tmp_path / f"{package.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"[duelpool.{group}]\n" + "\n".join(rows) + "\n" for group, rows in groups.items()]
        (info / "entry_points.txt").write_text("\n".join(lines))
        for name, text in modules.items():
            (tmp_path / f"{name}.py").write_text(text)
        for table in TABLES:
            table.forget()

    yield made
    for table in TABLES:
        table.forget()
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


@pytest.fixture
def everypair(install: Install) -> None:
    install("duelpool-everypair", {"everypair": STRATEGY}, strategies=["every-pair = everypair:EveryPair"])


def run(*words: str) -> Any:
    return CliRunner().invoke(app, list(words), prog_name="duelpool")


@pytest.mark.usefixtures("everypair")
def test_the_template_of_the_page_keeps_the_contract_and_is_used_by_name() -> None:
    assert "every-pair = " in TOML
    strategy_contract("every-pair")
    assert make_strategy("every-pair", ("a", "b"), seed=1).ask(5)
    assert simulate("every-pair", "order", items=5, trials=2, seed=1).single == 1
    assert "every-pair" in every_strategy()
    assert list(STRATEGIES)[-1] == "every-pair"
    assert "every-pair" not in STRATEGIES.own


@pytest.mark.usefixtures("everypair")
def test_a_plugin_is_imported_when_it_is_used_and_not_before() -> None:
    assert make_strategy("knockout", ("a", "b"), seed=1)
    assert "every-pair" in STRATEGIES
    assert "everypair" not in sys.modules
    assert STRATEGIES["every-pair"].name == "every-pair"
    assert "everypair" in sys.modules


@pytest.mark.usefixtures("everypair")
def test_own_names_look_for_no_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start with Duelpool's own names doesn't read the metadata of what is installed."""
    monkeypatch.setattr(PluginTable, "_entries", lambda table: pytest.fail(f"looked for {table.group}"))
    make_strategy("swissfinals", ("a", "b"), seed=1)
    make_judges("bt")
    parse_measure("nDCG@10")
    parse_measure("ndcg_cut_10")
    assert Settings(panel="prolific", strategy="prefbest").panel in PANELS
    assert (
        run("simulate", "--strategy", "knockout", "--case", "A", "--items", "4", "--trials", "1").exit_code
        == 0
    )


def test_measures_judges_and_panels_are_found_too(install: Install) -> None:
    install(
        "choir-tools",
        {"own_measures": MEASURE, "own_judges": JUDGE, "own_panels": PANEL},
        measures=["Found = own_measures:Found"],
        judges=["sure = own_judges:sure"],
        panels=["choir = own_panels:Choir"],
    )
    assert str(parse_measure("Found")) == "Found"
    measure_contract("Found")
    judge_contract("sure:q=0.8")
    assert make_judges("sure:error=0.1")
    assert Settings(panel="choir").panel == "choir"
    assert SETTINGS["panel"].about.choices["choir"] == "choir"
    listed = json.loads(run("plugins", "--json", "--check").output)
    assert [(each["kind"], each["name"], each["package"], each["problem"]) for each in listed] == [
        ("measure", "Found", "choir-tools 1.0", ""),
        ("judge", "sure", "choir-tools 1.0", ""),
        ("panel", "choir", "choir-tools 1.0", ""),
    ]


@pytest.mark.parametrize(
    ("module", "entry", "problem"),
    [
        ("raise RuntimeError('no licence')", "bad:Bad", "RuntimeError: no licence"),
        ("import sys; sys.exit(3)", "bad:Bad", "SystemExit: 3"),
        ("import nowhere_at_all", "bad:Bad", "No module named 'nowhere_at_all'"),
        ("x = (", "bad:Bad", "SyntaxError"),
        ("", "bad:Bad", "has no attribute 'Bad'"),
        ("Bad = 7", "bad:Bad", "names 7, which is no class"),
        ("class Bad:\n    name = 'bad'", "bad:Bad", "it has no version, pools_judgments"),
        (STRATEGY.replace('"every-pair"', '"other"'), "bad:EveryPair", "it calls itself 'other'"),
    ],
)
def test_a_broken_plugin_is_named_and_breaks_nothing_else(
    install: Install, module: str, entry: str, problem: str
) -> None:
    install("bad-tools", {"bad": module}, strategies=[f"bad = {entry}"])
    with pytest.warns(PluginWarning, match="The strategy 'bad' of the package bad-tools 1.0 can't be used"):
        assert list(STRATEGIES) == list(STRATEGIES.own)
    assert list(STRATEGIES) == list(STRATEGIES.own)  # and warns once
    with pytest.raises(PluginError) as error:
        make_strategy("bad", ("a", "b"), seed=1)
    assert problem in str(error.value)
    done = run("plugins")
    assert done.exit_code == 1
    assert "bad-tools 1.0" in done.output
    failed = run("simulate", "--strategy", "bad", "--case", "A", "--items", "5")
    assert failed.exit_code == 2
    assert "can't be used" in failed.output


def test_a_plugin_never_replaces_a_name_of_duelpool(install: Install) -> None:
    own = STRATEGIES["swissfinals"]
    text = STRATEGY.replace('"every-pair"', '"swissfinals"')
    install("sly-tools", {"sly": text}, strategies=["swissfinals = sly:EveryPair"])
    assert STRATEGIES["swissfinals"] is own
    with pytest.warns(PluginWarning, match="Duelpool has a strategy of this name itself"):
        assert list(STRATEGIES).count("swissfinals") == 1
    assert "sly" not in sys.modules


def test_two_packages_with_one_name_are_both_left_out(install: Install) -> None:
    install("tools-a", {"tools_a": STRATEGY}, strategies=["every-pair = tools_a:EveryPair"])
    install("tools-b", {"tools_b": STRATEGY}, strategies=["every-pair = tools_b:EveryPair"])
    with pytest.raises(PluginError, match=r"tools-a 1\.0 and tools-b 1\.0 both have this name"):
        make_strategy("every-pair", ("a", "b"), seed=1)
    assert [plugin.package for plugin in STRATEGIES.plugins()] == ["tools-a 1.0", "tools-b 1.0"]


def test_a_plugin_that_breaks_its_contract_is_named_with_the_promise(install: Install) -> None:
    text = STRATEGY.replace("if pair not in waiting", "if True")
    install("hasty-tools", {"hasty": text}, strategies=["every-pair = hasty:EveryPair"])
    with pytest.raises(ContractError, match="pending"):
        strategy_contract("every-pair")
    done = run("plugins", "every-pair", "--check", "--json")
    assert done.exit_code == 1
    assert "it breaks its contract" in json.loads(done.output)[0]["problem"]


def test_a_loose_measure_is_refused(install: Install) -> None:
    install("loose-tools", {"own_measures": MEASURE}, measures=["Loose = own_measures:Loose"])
    with pytest.raises(PluginError, match="no frozen dataclass"):
        parse_measure("Loose")


@pytest.mark.usefixtures("everypair")
def test_plugins_are_suggested_for_unknown_names() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'every-pair'"):
        make_strategy("evry-pair", ("a", "b"), seed=1)


def test_no_plugins_is_said(install: Install) -> None:
    install("plain-tools", {})
    done = run("plugins")
    assert (done.exit_code, "No installed package adds" in done.output) == (0, True)


@pytest.mark.usefixtures("everypair")
def test_a_campaign_runs_by_a_plugin(tmp_path: Path) -> None:
    runs = tmp_path / "a.run"
    runs.write_text("".join(f"t1 Q0 d{at} {at} {9 - at} a\n" for at in range(1, 5)))
    store = str(tmp_path / "mine.db")
    made = run("pool", str(runs), "--strategy", "every-pair", "-o", store)
    assert made.exit_code == 0, made.output
    judged = run("judge", "simulated", store, "--model", "order", "--json")
    assert judged.exit_code == 0, judged.output
    bundle = run("status", store, "--json")
    assert json.loads(bundle.output)["totals"]["judgments"] == 6


@pytest.mark.usefixtures("everypair")
def test_a_plugin_is_chosen_in_set_up_and_asks_the_first_question(tmp_path: Path) -> None:
    """From files to the first judgment, by the pages' own forms."""
    new_store(tmp_path / "empty.db").close()
    with served(tmp_path / "empty.db", uploads=tmp_path / "uploads") as site:
        client = TestClient(site, base_url=ORIGIN)
        client.headers["Origin"] = ORIGIN
        client.get("/setup", params={"key": setup_key(site.state.links, time.time())})
        ranked = "".join(f"t1 Q0 d{at} {at} {9 - at} a\n" for at in range(1, 4))
        texts = "".join(f"d{at}\tText {at}.\n" for at in range(1, 4))
        files = [
            ("any", ("a.run", ranked)),
            ("any", ("topics.tsv", "t1\tWhich?\n")),
            ("any", ("texts.tsv", texts)),
        ]
        draft = client.post("/setup/new/files", files=files).url.path
        plan = client.get(draft, params={"step": "plan"}).text
        assert '<option value="every-pair">' in plan
        client.post(f"{draft}/options", data={"step": "plan", "strategy": "every-pair", "go": "next"})
        review = client.get(draft, params={"step": "review"}).text
        assert "every-pair" in review
        seen = review.partition('name="seen" value="')[2].partition('"')[0]
        client.post(
            f"{draft}/options", data={"step": "review", "name": "plugged", "seen": seen, "go": "make"}
        )
        campaign = Campaign.open(site.state.store, "plugged")
        assert campaign.settings.strategy == "every-pair"
        campaign.enrol("anna", "dedicated")
        question = campaign.next_question("anna")
        assert question is not None
        campaign.answer(question.id, "anna", Answer(Outcome.LEFT))
        assert len(campaign.judgments("t1")) == 1
        site.state.drafts.close()
