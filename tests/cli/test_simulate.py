"""`duelpool simulate`: its output, what it refuses, and the same figures with any number of processes."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from duelpool.cli.evaluation.simulate import judges_named, pool_sizes, simulate
from duelpool.errors import BadFile, BadParameter, MissingExtra, UnknownName
from duelpool.simulation import curve_points

app = typer.Typer()
app.command("simulate")(simulate)
app.callback()(lambda: None)

TOURNAMENT = ["simulate", "--strategy", "allpairs", "--case", "A", "--items", "6", "--trials", "20"]


def printed(*extra: str, base: list[str] = TOURNAMENT) -> str:
    done = CliRunner().invoke(app, [*base, *extra], env={"COLUMNS": "80"})
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout


def test_json_has_the_documented_names() -> None:
    figures = json.loads(printed("--json", "--seed", "3"))
    names = (
        "strategy case trials found one both single returned comparisons same_pair rounds top5_recall seconds"
    )
    assert figures.keys() >= set(names.split())
    assert figures["strategy"] == "allpairs"
    assert figures["case"] == "A"
    assert figures["trials"] == 20
    assert figures["comparisons"] == {"min": 15, "mean": 15.0, "max": 15}
    assert 0.2 < figures["found"] <= 1


def test_number_of_processes_does_not_change_the_result() -> None:
    one, two = (json.loads(printed("--json", "--workers", count)) for count in ("1", "2"))
    del one["seconds"], two["seconds"]
    assert one == two


def test_seed_changes_the_result() -> None:
    one, two = (json.loads(printed("--json", "--seed", seed)) for seed in ("1", "2"))
    assert one["single"] != two["single"] or one["top5_recall"] != two["top5_recall"]


def test_the_tables_fit_eighty_columns() -> None:
    text = printed(
        "--strategy",
        "prefbest:n=7,m=9,final_phases=2",
        "--growth",
        "5,40",
        base=TOURNAMENT[:5] + TOURNAMENT[7:],
    )
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    assert "780" in text  # all pairs of 40


def test_cap_limits_judgments_of_a_pair_unless_lifted() -> None:
    repeats = [
        "simulate",
        "--strategy",
        "allpairs:repeats=9",
        "--case",
        "A",
        "--items",
        "4",
        "--trials",
        "2",
        "--json",
    ]
    assert json.loads(printed(base=repeats))["same_pair"]["max"] == 6
    assert json.loads(printed("--cap", "2", base=repeats))["same_pair"]["max"] == 2
    free = json.loads(printed("--cap", "0", base=repeats))
    assert free["same_pair"]["max"] == 9
    assert free["cap"] is None


def test_several_results_are_a_list() -> None:
    figures = json.loads(printed("--strategy", "knockout", "--json"))
    assert [each["strategy"] for each in figures] == ["allpairs", "knockout"]


@pytest.mark.parametrize("name", ["found.svg", "found.png"])
def test_the_plot_is_written(name: str, tmp_path: Path) -> None:
    printed("--plot", str(tmp_path / name))
    assert (tmp_path / name).stat().st_size > 1000


def test_growth_is_plotted_by_size(tmp_path: Path) -> None:
    base = ["simulate", "--strategy", "knockout", "--case", "A", "--trials", "3"]
    figures = json.loads(
        printed("--growth", "4,8", "--json", "--plot", str(tmp_path / "growth.svg"), base=base)
    )
    assert [each["items"] for each in figures] == [4, 8]
    assert "items in the pool" in (tmp_path / "growth.svg").read_text()


def test_judges_of_every_kind(tmp_path: Path) -> None:
    matrix, votes, grades = tmp_path / "m.txt", tmp_path / "v.txt", tmp_path / "q.txt"
    matrix.write_text("0.5 0.9\n0.1 0.5\n")
    votes.write_text("t a b\nt b c\n")
    grades.write_text("t 0 a 1\nt 0 b 2\n")
    base = ["simulate", "--strategy", "allpairs", "--trials", "2", "--json"]
    for extra, case in (
        (["--matrix", str(matrix)], "m.txt"),
        (["--replay", f"{votes},answers=fitted"], "replay of v.txt"),
        (["--model", f"graded:file={grades}"], f"graded:file={grades}"),
        (["--model", "thurstone:sd=2", "--assessors", "error=.1"], "thurstone:sd=2 with error=.1"),
        (["--case", "b", "--assessors", "guess=.1,bad=.2"], "B with guess=.1,bad=.2"),
    ):
        assert json.loads(printed(*extra, base=base))["case"] == case


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["--strategy", "prefbst", "--case", "A"], UnknownName, "Did you mean 'prefbest'"),
        (["--strategy", "prefbest:z=1", "--case", "A"], BadParameter, "no parameter 'z'"),
        (["--strategy", "prefbest"], BadParameter, "one kind of judge, not 0"),
        (
            ["--strategy", "prefbest", "--case", "A", "--model", "bt"],
            BadParameter,
            "one kind of judge, not 2",
        ),
        (["--strategy", "prefbest", "--case", "C"], UnknownName, "no case called 'C'"),
        (["--strategy", "prefbest", "--model", "bd:sd=1"], UnknownName, "no judge called 'bd'"),
        (["--strategy", "prefbest", "--matrix", "no/such"], BadFile, "can't be read"),
        (["--strategy", "prefbest", "--replay", "no/such"], BadFile, "can't be read"),
        (["--strategy", "prefbest", "--case", "A", "--growth", "1,x"], BadParameter, "list of pool sizes"),
        (
            ["--strategy", "prefbest", "--case", "A", "--growth", "9", "--items", "3"],
            BadParameter,
            "both set",
        ),
        (["--strategy", "prefbest", "--case", "A", "--budget", "much"], BadParameter, "isn't a budget"),
        (["--strategy", "prefbest", "--case", "A", "--plot", "x.gif"], BadParameter, "picture format"),
        (["--strategy", "prefbest", "--case", "A", "--truth", "coplend"], UnknownName, "'copeland'"),
    ],
)
def test_bad_input_is_refused_with_a_remedy(
    arguments: list[str], error: type[Exception], message: str
) -> None:
    done = CliRunner().invoke(app, ["simulate", "--trials", "1", *arguments])
    assert isinstance(done.exception, error)
    assert message in str(done.exception)


def test_a_cluster_without_its_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "distributed", None)
    done = CliRunner().invoke(app, [*TOURNAMENT, "--cluster", "tcp://127.0.0.1:1"])
    assert isinstance(done.exception, MissingExtra)
    assert "duelpool[cluster]" in str(done.exception)


def test_names_and_sizes_are_read() -> None:
    assert judges_named("a", None, None, None, "error=.1") == ("case-a:error=.1", "A with error=.1")
    assert judges_named(None, None, "bt:sd=2", None, "error=.1")[0] == "bt:sd=2,error=.1"
    assert pool_sizes("10, 30", None) == [10, 30]
    assert curve_points("50", 100)[-1] == 50
    assert curve_points("2K", 10)[-1] == 20
    assert curve_points(None, None)[-1] == 1000


# ---- calibration

SWISS = ["simulate", "--strategy", "swissfinals", "--case", "A", "--items", "8", "--trials", "12"]


@pytest.mark.long
def test_calibration_is_printed_by_bins_and_those_who_state_nothing_are_left_out(tmp_path: Path) -> None:
    text = printed("--calibration", "--strategy", "knockout", base=SWISS)
    assert "Stated and right: swissfinals, 8 items" in text
    assert "a best item is returned" in text
    assert "Stated and right: knockout" not in text
    figures = json.loads(printed("--calibration", "--json", "--plot", str(tmp_path / "c.svg"), base=SWISS))
    bins = figures["calibration"]["best"]["bins"]
    assert sum(row["trials"] for row in bins) <= 12
    assert "stated confidence" in (tmp_path / "c.svg").read_text()
    assert "calibration" not in json.loads(printed("--json", base=SWISS))


def test_calibration_of_strategies_that_state_nothing_is_refused_before_any_trial() -> None:
    done = CliRunner().invoke(app, [*TOURNAMENT, "--calibration", "--trials", "1000000"])
    assert isinstance(done.exception, BadParameter)
    assert "no chance is stated by allpairs" in str(done.exception)


@pytest.mark.long
def test_early_stops_and_missing_condorcet_winners_are_told() -> None:
    swiss = [*SWISS[:2], "swissfinals:confidence=.5", *SWISS[3:]]
    text = " ".join(printed("--budget", "7K", base=swiss).split())
    assert "stopped before its budget was spent in" in text
    case_b = [*TOURNAMENT[:4], "B", *TOURNAMENT[5:]]
    text = " ".join(printed("--truth", "condorcet", base=case_b).split())
    assert "no item beats all others in 20 of 20 trials" in text
    assert "truth: condorcet" in text
