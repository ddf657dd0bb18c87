"""Simulations kept in a folder: taken from there when they are the same, and refused when damaged."""

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from duelpool.errors import BadFile, BadParameter
from duelpool.judges import JudgeModel, make_judges
from duelpool.judges.simulated import CaseA
from duelpool.simulation import SimulationResult, simulate
from duelpool_reproduce import EXPERIMENTS
from duelpool_reproduce.cells import Cells
from duelpool_reproduce.command import reproduce
from duelpool_reproduce.dueling_bandits.figure3 import figure3
from duelpool_reproduce.flagship import flagship

SETTINGS: dict[str, Any] = {"items": 8, "trials": 3, "seed": 5, "budget": "3K", "case": "A, K=8"}


def kept(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


@pytest.fixture
def simulations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The strategies that are really simulated, in turn."""
    run: list[str] = []

    def counted(strategy: str, *rest: Any, **settings: Any) -> SimulationResult:
        run.append(strategy)
        return simulate(strategy, *rest, **settings)

    monkeypatch.setattr("duelpool_reproduce.cells.simulate", counted)
    return run


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["swissfinals", "allpairs"])
def test_a_stored_simulation_is_the_same_and_is_not_run_again(
    strategy: str, tmp_path: Path, simulations: list[str]
) -> None:
    cells, ended = Cells(tmp_path / "new"), list[int]()
    settings = SETTINGS | {"checkpoints": (5, 10)}
    first = cells.simulate(strategy, "case-a", progress=ended.append, **settings)
    again = Cells(tmp_path / "new").simulate(strategy, "case-a", progress=ended.append, **settings)
    assert again == first == simulate(strategy, "case-a", **settings)
    assert simulations == [strategy]
    assert ended == [1, 1, 1, 3]
    assert [path.name.rpartition("-")[0] for path in kept(tmp_path / "new")] == [f"a-k=8-{strategy}"]


@pytest.mark.parametrize(
    "change",
    [{"trials": 4}, {"seed": 6}, {"budget": "4K"}, {"cap": None}, {"truth": "copeland"}, {"items": 9}],
)
def test_other_settings_are_another_simulation(
    change: dict[str, Any], tmp_path: Path, simulations: list[str]
) -> None:
    for settings in (SETTINGS, SETTINGS | change):
        Cells(tmp_path).simulate("allpairs", "case-a", **settings)
    assert len(simulations) == len(kept(tmp_path)) == 2


def test_another_version_of_a_strategy_is_simulated_again(
    tmp_path: Path, simulations: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from duelpool.strategies import STRATEGIES

    for version in (7, 7, 8):
        monkeypatch.setattr(STRATEGIES["allpairs"], "version", version)
        Cells(tmp_path).simulate("allpairs", "case-a", **SETTINGS)
    assert len(simulations) == 2
    Cells(tmp_path).simulate("allpairs:repeats=2", "case-a", **SETTINGS)
    assert len(simulations) == 3


def test_a_replay_counts_by_the_content_of_its_file(tmp_path: Path, simulations: list[str]) -> None:
    settings: dict[str, Any] = {"trials": 2, "seed": 1}
    for folder, text in (("one", "t a b\nt b c\n"), ("two", "t a b\nt b c\n"), ("three", "t a b\nt c b\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "votes").write_text(text)
        spec = f"replay:file={tmp_path / folder / 'votes'},answers=fitted"
        Cells(tmp_path / "kept").simulate("allpairs", spec, **settings)
        Cells(tmp_path / "kept").simulate("allpairs", make_judges(spec), **settings)
    assert len(simulations) == 4  # two contents, by specification and by model
    with pytest.raises(BadFile, match="no-such"):
        Cells(tmp_path / "kept").simulate("allpairs", "replay:file=no-such", **settings)


def test_judges_of_any_dataclass_can_be_kept(tmp_path: Path, simulations: list[str]) -> None:
    for q in (0.7, 0.7, 0.8):
        Cells(tmp_path).simulate("allpairs", CaseA(q), **SETTINGS)
    assert len(simulations) == 2

    class Unnamed:
        def __init__(self) -> None:
            self.judge = CaseA().judge

        pools: dict[str, tuple[str, ...]] = {}  # noqa: RUF012
        size = None

    unnamed: JudgeModel = Unnamed()
    with pytest.raises(BadParameter, match="Unnamed"):
        Cells(tmp_path).simulate("allpairs", unnamed, **SETTINGS)
    assert Cells().simulate("allpairs", unnamed, **SETTINGS).trials == 3
    with pytest.raises(BadParameter, match="prior"):
        Cells(tmp_path).simulate("allpairs", "case-a", prior={"t": {"a": 1.0}}, **SETTINGS)


def rewritten(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        stored = json.loads(gzip.decompress(path.read_bytes()))
        change(stored)
        path.write_bytes(gzip.compress(json.dumps(stored).encode()))

    return damage


def first_trial(stored: dict[str, Any]) -> Any:
    return stored["result"]["outcomes"][0]


@dataclass(frozen=True)
class Damage:
    name: str
    done: Callable[[Path], object]
    message: str


DAMAGES = (
    Damage("cut", lambda path: path.write_bytes(path.read_bytes()[:-40]), "damaged"),
    Damage("empty", lambda path: path.write_bytes(b""), "damaged"),
    Damage("text", lambda path: path.write_text("notes of mine"), "damaged"),
    Damage("list", lambda path: path.write_bytes(gzip.compress(b"[]")), "damaged"),
    Damage("no result", rewritten(lambda stored: stored.pop("result")), "damaged"),
    Damage("no trials", rewritten(lambda stored: stored["result"].update(outcomes=[])), "damaged"),
    Damage("a field", rewritten(lambda stored: first_trial(stored).pop("ranks")), "damaged"),
    Damage("a chance", rewritten(lambda stored: first_trial(stored)["certainty"].update(best=7)), "damaged"),
    Damage("foreign", rewritten(lambda stored: stored.update(format="another")), "isn't a simulation"),
    Damage("other", rewritten(lambda stored: stored["fingerprint"].update(seed=99)), "another simulation"),
)  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.name)
def test_a_damaged_or_foreign_file_is_named_with_a_remedy(damage: Damage, tmp_path: Path) -> None:
    cells = Cells(tmp_path)
    first = cells.simulate("swissfinals", "case-a", **SETTINGS)
    (path,) = kept(tmp_path)
    damage.done(path)
    with pytest.raises(BadFile, match=damage.message) as refused:
        cells.simulate("swissfinals", "case-a", **SETTINGS)
    assert path.name in str(refused.value)
    assert "Remove it" in str(refused.value)
    path.unlink()
    assert cells.simulate("swissfinals", "case-a", **SETTINGS) == first


def test_an_interrupted_experiment_goes_on_cell_by_cell(
    tmp_path: Path, simulations: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    only = ("A, K=10", "B, K=10")
    whole = flagship(trials=2, seed=2, only=only, peers_on=())
    assert len(simulations) == 4
    counted = simulate

    def interrupted(strategy: str, judges: str, **settings: Any) -> SimulationResult:
        if judges == "case-b":
            raise KeyboardInterrupt
        return counted(strategy, judges, **settings)

    with monkeypatch.context() as patch:
        patch.setattr("duelpool_reproduce.cells.simulate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            flagship(trials=2, seed=2, only=only, peers_on=(), cells=Cells(tmp_path))
    simulations.clear()
    resumed = flagship(trials=2, seed=2, only=only, peers_on=(), cells=Cells(tmp_path))
    assert len(simulations) == 2
    assert (resumed.ours, resumed.theirs) == (whole.ours, whole.theirs)


@pytest.mark.long
def test_figure3_is_resumable_with_the_same_figures(tmp_path: Path, simulations: list[str]) -> None:
    first = figure3(1, 3, slow_share=0.1, cells=Cells(tmp_path))
    count = len(simulations)
    assert figure3(1, 3, slow_share=0.1, cells=Cells(tmp_path)).figures() == first.figures()
    assert len(simulations) == count == EXPERIMENTS["figure3"].runs


def test_a_file_is_no_folder_to_resume_from(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command("reproduce")(reproduce)
    app.callback()(lambda: None)
    (tmp_path / "file").write_text("")
    done = CliRunner().invoke(app, ["reproduce", "flagship", "--resume", str(tmp_path / "file")])
    assert isinstance(done.exception, BadParameter)
    assert "is a file" in str(done.exception)
