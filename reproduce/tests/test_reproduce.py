"""The papers' figures beside ours: verdicts that can fail, the list, the survey, and every experiment on real data."""

import csv
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf, sqrt
from pathlib import Path
from statistics import stdev
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from duelpool.errors import BadFile, BadParameter, DuelpoolError
from duelpool.files import Qrels, Run
from duelpool.plots import Bars, Histogram, Intervals, Lines, Panel, Scatter, panels, save_figure
from duelpool.records import Levels, Outcome
from duelpool.shares import wilson
from duelpool.simulation import simulate
from duelpool_reproduce import EXPERIMENTS, NOT_RUN, PAPERS, Experiment, MissingData, Section
from duelpool_reproduce.beyond.growth import exponent
from duelpool_reproduce.beyond.reuse import best_labels, group_of, only_theirs
from duelpool_reproduce.budget import BudgetReport
from duelpool_reproduce.budget_predictors import PredictorReport, Worth
from duelpool_reproduce.budget_tables import PAPER as BUDGET_PAPER
from duelpool_reproduce.budget_tables import Figure as BudgetFigure
from duelpool_reproduce.command import reproduce
from duelpool_reproduce.dueling_bandits.best_items import reciprocal_ranks, top_graded
from duelpool_reproduce.informed import WAYS
from duelpool_reproduce.measure_study import simulated_study
from duelpool_reproduce.survey import (
    ExperimentRun,
    closing_words,
    data_of,
    kept_runs,
    page,
    run_one,
    summaries,
)
from duelpool_reproduce.targets import (
    CLT_BY_FORMULA,
    ONE_TOPIC,
    TRUE_TREC,
    ReportWithVerdicts,
    budget_checks,
)
from duelpool_reproduce.top_k.effort import log_rankings
from duelpool_reproduce.verdicts import (
    AGREES,
    AS_BEFORE,
    DIFFERS,
    KEPT,
    MISSED,
    NEVER_STOPPED,
    NEW,
    NONE_STOPPED,
    NOT_EXPLAINED,
    NOT_TO_BE_HAD,
    PEOPLE,
    TOO_FEW,
    ComparisonReport,
    Measured,
    VerdictCounts,
    error_of_mean,
    share_text,
    with_error,
)

ROOT = Path(__file__).parents[2]
app = typer.Typer()
app.command("reproduce")(reproduce)
app.callback()(lambda: None)


def invoke(*words: str) -> Any:
    done = CliRunner().invoke(app, ["reproduce", *words], env={"COLUMNS": "80", "DUELPOOL_DATA": ""})
    assert done.exit_code == 0, (done.output, done.exception)
    return done


# ---- verdicts


@pytest.mark.parametrize(
    ("figure", "verdict", "explained"),
    [
        (Measured("f", 10, 10), AGREES, True),
        (Measured("f", 10, 11), DIFFERS, False),
        (Measured("f", 10, 11, why="other runs"), DIFFERS, True),
        (Measured("f", 10, 11, 11, why="other runs"), DIFFERS, True),
        (
            Measured("f", 10, 11, 12, why="other runs"),
            DIFFERS,
            False,
        ),  # nor what is known of these data
        (Measured("f", 10, 10, 12), AGREES, False),
        (Measured("f", 0.907, 0.9074, within=0.0005), AGREES, True),
        (Measured("f", 0.907, 0.9076, within=0.0005), DIFFERS, False),
        (Measured("f", 100, 108, error=3), AGREES, True),
        (Measured("f", 100, 110, error=3), DIFFERS, False),
        (Measured("f", (0.8, inf), 0.81), AGREES, True),
        (Measured("f", (0.8, inf), 0.79), DIFFERS, False),
        (Measured("f", (-inf, 3), 3), AGREES, True),
        (Measured("f", 10, None, why="never released"), NOT_TO_BE_HAD, True),
        (Measured("f", 10, 11, why=f"{NOT_EXPLAINED} Other runs were ruled out."), DIFFERS, False),
        # no paper has it
        (Measured("f", None, 3, 3), AS_BEFORE, True),
        (Measured("f", None, 4, 3), DIFFERS, False),
        (Measured("f", None, 4), NEW, True),
        # three standard errors must be able to show a difference of a tenth
        (Measured("f", 581, 833, error=108, whole=1000), TOO_FEW, True),
        (Measured("f", 581, 600, error=33, whole=1000), AGREES, True),
        (Measured("f", 581, 600, error=34, whole=1000), TOO_FEW, True),
        (Measured("f", 100, 101, error=3.4), TOO_FEW, True),
        (Measured("f", 100, 140, error=10), DIFFERS, False),
        (Measured("f", (0, 1), 1.015, error=0.16), TOO_FEW, True),
        # a share below a tenth of the whole: a tenth of itself
        (Measured("f", 7, 8, error=2.8, whole=1000), TOO_FEW, True),
        (Measured("f", 100, 101, error=2.8, whole=1000), AGREES, True),
        # the paper's own error counts beside the paper, and not beside what is known
        (Measured("f", 1.75, 2.03, 2.0, within=0.05, paper_error=0.124), TOO_FEW, True),
        (Measured("f", 1.75, 2.03, 1.9, within=0.05, paper_error=0.124), TOO_FEW, False),
        (Measured("f", 100, 110, error=3, paper_error=3), TOO_FEW, True),
        (Measured("f", 1.75, 1.93, 1.9, within=0.05, error=0.01, paper_error=0.124), TOO_FEW, True),
        (Measured("f", 1.75, 2.03, 1.9, within=0.05, error=0.01, paper_error=0.124), TOO_FEW, False),
        (Measured("f", 1.75, 2.03, 1.9, error=0.01, paper_error=0.124, known_error=0.05), TOO_FEW, True),
        # trials that are all the same don't show their spread
        (Measured("f", None, -1.0, (0, inf), error=0.0, kind="bar"), TOO_FEW, True),
        (Measured("f", 10, 10, error=0.0), TOO_FEW, True),
        (Measured("f", 100, 113, error=3, paper_error=3, why="other runs"), DIFFERS, True),
        (Measured("f", (0, 1), 0.4, error=0.1), AGREES, True),  # inside by more than three of them
        (Measured("f", None, 4, (-inf, 5), kind="bar"), KEPT, True),
        (Measured("f", None, 6, (-inf, 5), kind="bar"), MISSED, False),
        (Measured("f", None, 5, (-inf, 5), error=1, kind="bar"), TOO_FEW, True),
        # a bar at 0: within three errors of it there are too few trials to say
        (Measured("f", (0, inf), 0.0048, error=0.0147, kind="bar", whole=1), TOO_FEW, True),
        (Measured("f", (0, inf), 0.0656, error=0.0145, kind="bar", whole=1), KEPT, True),
        (Measured("f", (0, inf), -0.0656, error=0.0145, kind="bar", whole=1), MISSED, False),
        (Measured("f", (0.87, inf), None, why=NEVER_STOPPED, kind="bar"), NONE_STOPPED, True),
        (Measured("f", 0.7, 0.7, kind="people"), PEOPLE, True),
        (Measured("f", 0.7, 0.9, kind="people"), PEOPLE, True),
    ],
)
def test_a_verdict_says_how_ours_stands_to_the_papers(
    figure: Measured, verdict: str, explained: bool
) -> None:
    assert (figure.verdict, figure.explained) == (verdict, explained)


@pytest.mark.parametrize(
    ("figure", "expected"),
    [
        (Measured("f", 1.75, 1.75, error=0.01, paper_error=0.124), True),
        (Measured("f", 1.75, 1.75, error=0.3, paper_error=0.124), True),
        (Measured("f", 1.75, 1.75, paper_error=0.124), True),
        (Measured("f", 1.75, 1.75, error=0.3, paper_error=0.01), False),
        (Measured("f", 1.75, 1.75, error=0.3), False),
        (Measured("f", 1.75, 9.0, error=0.01, paper_error=0.124), False),
    ],
)
def test_a_papers_own_trials_may_be_too_few(figure: Measured, expected: bool) -> None:
    assert figure.papers_too_few == expected


def test_error_of_a_mean() -> None:
    assert error_of_mean([1.0, 2.0, 4.0]) == pytest.approx(stdev([1, 2, 4]) / sqrt(3))
    assert error_of_mean([1.0]) == 0.0


def test_figures_are_written_as_they_are_stated() -> None:
    assert Measured("f", 29_350, 29_350).texts() == ("29,350", "", "29,350")
    assert Measured("f", 0, 0).texts() == ("0", "", "0")
    assert Measured("f", (0.485, 0.735), 0.5, error=0.01).texts() == ("0.485-0.735", "", "0.500±0.010")
    assert Measured("f", (0.8, inf), 0.9, (-inf, 3)).texts() == ("over 0.800", "at most 3", "0.900")
    assert Measured("f", 3830.41, None, digits=2).texts() == ("3,830.41", "", "")
    assert Measured("f", (0.8, inf), 0.9, kind="bar").texts()[0] == "at least 0.800"
    assert Measured("f", 26_842_725, 3.4e220).texts() == ("26,842,725", "", "3.4e220")


def test_no_figure_has_an_error_of_nothing() -> None:
    """Of none or all of the trials it is Wilson's interval; an error that rounds to nothing isn't written."""
    low, high = wilson(12, 12) or (0.0, 0.0)
    assert high == 1.0
    assert Measured("f", None, 1.0, error=0.1, whole=1, trials=12).text == f"1.000 ({low:.3f}-1.000)"
    assert Measured("f", None, 0.0, error=0.1, whole=1, trials=12).text == f"0.000 (0.000-{1 - low:.3f})"
    assert (
        Measured("f", None, 0, error=9, whole=1000, trials=12, digits=0).text
        == f"0 (0-{1000 * (1 - low):.0f})"
    )
    assert Measured("f", None, 0.5, error=0.1, whole=1, trials=12).text == "0.500±0.100"
    assert share_text(0.5, 12, 0.144) == "0.500±0.144"
    assert with_error(0.8744, 0.0004, 3) == "0.874"
    assert with_error(0.8744, 0.0006, 3) == "0.874±0.001"


def drawn() -> Any:
    return panels([Bars("t", "y", ["a"], {"s": [1.0]})])


MIXED = ComparisonReport(
    "mixed",
    (
        Measured("same", 1, 1, part="one"),
        Measured("other", 1, 2, why="other runs", part="one"),
        Measured("another", 3, 2, why="other runs", part="two"),
        Measured("lost", 1, None, why="never released", part="two"),
        Measured("odd", 1, 5, part="two"),
        Measured("new", None, 5, part="three"),
    ),
    drawn,
    ("A remark.",),
)


def test_reasons_are_numbered_once_and_told_under_the_tables() -> None:
    one, two, three = MIXED.sections()
    assert one == Section(
        "one", ("figure", "paper", "ours", "verdict"),
        (("same", "1", "1", "agrees"), ("other", "1", "2", "differs [1]")),
    )  # fmt: skip
    assert [row[-1] for row in two.rows] == ["differs [1]", "can't be had [2]", "differs"]
    assert three.columns == ("figure", "ours")
    assert MIXED.notes() == ["[1] other runs", "[2] never released", "A remark."]


def test_a_tally_counts_verdicts_and_names_what_is_not_explained() -> None:
    assert VerdictCounts.of(MIXED) == VerdictCounts(
        agree=1, differ=3, not_to_be_had=1, new=1, unexplained=("odd",), without_reason=("odd",)
    )
    odd = replace(MIXED.rows[4], why=f"{NOT_EXPLAINED} The data are the same.")
    said = VerdictCounts.of(replace(MIXED, rows=(*MIXED.rows[:4], odd)))
    assert (said.unexplained, said.without_reason) == (("odd",), ())
    rows = list(csv.DictReader(MIXED.figures().as_csv().splitlines()))
    assert [row["verdict"] for row in rows].count(DIFFERS) == 3
    assert rows[3]["ours"] == ""
    assert rows[3]["why"] == "never released"
    values = json.loads(json.dumps(MIXED.as_json()))
    assert (values["agrees"], values["explained"]) == (False, False)


# ---- the table of experiments, and the list


def numbered(words: str) -> set[str]:
    """Return "Figure 1", "Figure 2" for "Figures 1-2"; nothing for what has no number."""
    match = re.fullmatch(r"(Table|Figure)s? (\d+)(?:-(\d+))?", words)
    if match is None:
        return set()
    first, last = int(match[2]), int(match[3] or match[2])
    return {f"{match[1]} {number}" for number in range(first, last + 1)}


@pytest.mark.parametrize(
    ("paper", "tables", "figures"),
    [("dueling bandits", 0, 5), ("top-k", 3, 11), ("here or there", 5, 2), ("budget", 9, 1)],
)
def test_every_table_and_figure_of_a_paper_is_listed(paper: str, tables: int, figures: int) -> None:
    listed = set().union(
        *(numbered(shown) for each in EXPERIMENTS.values() if each.paper == paper for shown in each.shows),
        *(numbered(shown) for shown in NOT_RUN.get(paper, {})),
    )
    wanted = {f"Table {at + 1}" for at in range(tables)} | {f"Figure {at + 1}" for at in range(figures)}
    assert wanted <= listed


def test_every_experiment_says_what_it_shows_and_its_quick_form_is_no_longer() -> None:
    for name, each in EXPERIMENTS.items():
        assert name == each.name
        assert name not in {"list", "all"}
        assert each.shows, name
        assert each.trials_of(quick=True) <= each.trials
        assert each.seconds[0] <= each.seconds[1]
    assert sum(each.seconds[0] for each in EXPERIMENTS.values()) < 600
    with pytest.raises(BadParameter, match="none of the papers"):
        replace(EXPERIMENTS["figure3"], paper="another")


def test_the_list_names_every_experiment_its_data_and_its_time(tmp_path: Path) -> None:
    printed = invoke("list").stdout
    assert max(map(len, printed.splitlines())) <= 80
    for name, each in EXPERIMENTS.items():
        assert re.search(rf"(?<![\w-]){name}(?![\w-])", printed), f"{name} is folded or missing"
        assert data_of(each, tmp_path).count("(!)") == len({Path(file).parts[0] for file in each.reads})
    for title in PAPERS.values():
        assert title in printed
    assert "(!)" in printed
    for file in EXPERIMENTS["crowd-sets"].reads:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()
    assert data_of(EXPERIMENTS["crowd-sets"], tmp_path) == "dl21"
    assert data_of(EXPERIMENTS["best-items"], tmp_path) == "dl21(!)"
    records = {
        each["name"]: each for each in json.loads(invoke("list", "--json", "--data", str(tmp_path)).stdout)
    }
    assert set(records) == set(EXPERIMENTS)
    assert records["crowd-sets"]["missing"] == []
    assert records["best-items"]["missing"] == ["dl21/qrels.dl21-passage.txt", "dl21/runs"]


# ---- all of them


def small(name: str, run: Callable[..., Any], **more: Any) -> Experiment:
    return Experiment(name, f"The {name} one", 50, 1, run, shows={name: "what it is"}, quick=2, **more)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> dict[str, Experiment]:
    """Three experiments: one that runs, one without its data, one that a user must mend something for."""

    def broken(*_: object) -> ComparisonReport:
        raise DuelpoolError("Nothing to read.", remedy="Give something.")

    table = {
        "mixed": small(
            "mixed",
            lambda trials, *_, part=1: replace(MIXED, trials=trials, values={"part": part}),
            quick_form={"part": 3},
        ),
        "needy": small("needy", lambda *_: MIXED, reads=("cast19/x",)),
        "broken": small("broken", broken, partial=True),
    }
    monkeypatch.setattr("duelpool_reproduce.command.EXPERIMENTS", table)
    return table


def test_all_carries_on_without_data_and_ends_with_the_verdicts(
    few: dict[str, Experiment], tmp_path: Path
) -> None:
    done = invoke("all", "--quick", "--data", str(tmp_path), "--out", str(tmp_path / "out"))
    end = done.stdout[done.stdout.index("Beyond the papers") :]
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in end.splitlines() if line[0] == "│"]
    assert [row[:5] for row in rows] == [
        ["mixed", "1", "3", "1", "1"],
        ["needy", "not run", "", "", ""],
        ["broken", "not run", "", "", ""],
        ["all", "1", "3", "1", "1"],
    ]
    told = " ".join(end.split())
    assert "Not run: needy. 'needy' reads cast19/x" in told
    assert "Not run: broken. Nothing to read. Give something." in told
    assert "Not explained, mixed: odd." in told
    files = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert files == ["mixed.csv", "mixed.json", "mixed.svg", "results.csv", "results.json", "results.md"]
    record = json.loads((tmp_path / "out" / "results.json").read_text())
    assert record["experiments"]["mixed"]["report"]["trials"] == 2
    assert record["experiments"]["needy"]["report"] is None
    assert set(few) == set(record["experiments"])


@pytest.mark.usefixtures("few")
def test_the_paper_trials_are_run_unless_quick_or_told() -> None:
    assert json.loads(invoke("mixed", "--json").stdout)["trials"] == 50
    assert json.loads(invoke("mixed", "--json", "--quick").stdout)["trials"] == 2
    assert json.loads(invoke("mixed", "--json", "--quick", "--trials", "7").stdout)["trials"] == 7
    forms = [
        json.loads(invoke("mixed", "--json", *words).stdout)["values"]["part"] for words in ((), ("--quick",))
    ]
    assert forms == [1, 3]
    whole = json.loads(invoke("all", "--json", "--quick").stdout)["experiments"]["mixed"]["report"]
    assert (whole["trials"], whole["values"]["part"]) == (2, 3)
    assert json.loads(invoke("all", "--json").stdout)["experiments"]["mixed"]["verdicts"]["agree"] == 1


@pytest.mark.usefixtures("few")
def test_one_experiment_without_its_data_is_an_error_with_a_remedy() -> None:
    done = CliRunner().invoke(app, ["reproduce", "needy"], env={"DUELPOOL_DATA": ""})
    assert isinstance(done.exception, MissingData)
    assert "cast19/x" in str(done.exception)
    assert "--data" in str(done.exception)


def test_the_page_holds_every_table_and_reason() -> None:
    ran = [
        run_one(small("mixed", lambda *_: MIXED), 2, 0),
        ExperimentRun(small("other", drawn), None, "No data.", 0.0, 1),
    ]
    text = page(ran)
    for section in MIXED.sections():
        assert section.as_markdown() in text
    assert "[2] never released" in text
    assert "Not run. No data." in text
    assert re.search(r"^Full form, 2 trials, seed 0, \d{4}-\d\d-\d\d\.$", text, re.MULTILINE)
    (table,) = summaries(ran)
    assert table.rows[-1][:3] == ("all", 1, 3)
    assert any(words.startswith("Not explained, mixed") for words in closing_words(ran))
    assert Section("t", ("a",), (("x|y",), (None,))).as_markdown() == "| a |\n| --- |\n| x\\|y |\n|  |\n"


def test_papers_tracks_and_our_own_bars_are_counted_apart() -> None:
    bars = replace(MIXED, rows=(Measured("kept", (1, inf), 2, kind="bar"), Measured("same", None, 2, 2)))
    ran = [
        run_one(small("theirs", lambda *_: MIXED, paper="top-k"), 2, 0),
        run_one(small("tracks", lambda *_: MIXED, paper="trec"), 2, 0),
        run_one(small("ours", lambda *_: bars), 2, 0, quick=True),
    ]
    papers, tracks, beyond = summaries(ran, timed=False)
    assert papers.columns == tracks.columns == ("experiment", "agrees", "differs", "can't", "alone")
    assert beyond.columns == ("experiment", "as before", "kept")
    assert [[row[0] for row in table.rows] for table in (papers, tracks, beyond)] == [
        [name, "all"] for name in ("theirs", "tracks", "ours")
    ]
    assert any(words == "A smoke test only, in its quick form: ours." for words in closing_words(ran))


@pytest.mark.usefixtures("few")
def test_all_goes_on_where_it_stopped_and_a_page_is_made_of_what_was_kept(
    tmp_path: Path, few: dict[str, Experiment], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept"
    first = invoke("all", "--json", "--resume", str(kept), "--out", str(tmp_path / "first"))

    def again(*_: object, **__: object) -> ComparisonReport:
        raise AssertionError("it was run again")

    monkeypatch.setitem(few, "mixed", replace(few["mixed"], run=again))
    second = invoke("all", "--json", "--resume", str(kept), "--out", str(tmp_path / "second"))
    assert (
        json.loads(first.stdout)["experiments"]["mixed"] == json.loads(second.stdout)["experiments"]["mixed"]
    )
    for name in ("mixed.csv", "mixed.json", "mixed.svg", "results.csv"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()
    with pytest.raises(AssertionError, match="run again"):  # another seed is another report
        invoke("mixed", "--resume", str(kept), "--seed", "1")
    invoke("page", "--resume", str(kept), "--out", str(tmp_path / "page"))
    text = (tmp_path / "page" / "results.md").read_text(encoding="utf-8")
    assert (
        text.count("has no report of it") == 2 * 2
    )  # those that never ran, in the list and under their heads
    for section in MIXED.sections():
        assert section.as_markdown() in text


def test_a_page_takes_no_report_of_an_experiment_whose_name_is_longer(tmp_path: Path) -> None:
    longer, shorter = small("mixed-too", lambda *_: MIXED), small("mixed", lambda *_: MIXED)
    run_one(longer, 2, 0, resume=tmp_path)
    assert [
        run.report is None for run in kept_runs({each.name: each for each in (shorter, longer)}, tmp_path)
    ] == [
        True,
        False,
    ]
    run_one(shorter, 2, 0, resume=tmp_path, quick=True)
    run_one(shorter, 3, 0, resume=tmp_path)
    (run,) = kept_runs({"mixed": shorter}, tmp_path)
    assert (run.trials, run.quick) == (3, False)  # the full form before the quick one


@pytest.mark.usefixtures("few")
def test_a_damaged_report_is_refused_with_its_place(tmp_path: Path) -> None:
    invoke("mixed", "--quick", "--resume", str(tmp_path))
    (file,) = tmp_path.glob("mixed-*.report.json.gz")
    file.write_bytes(file.read_bytes()[:-20])
    done = CliRunner().invoke(app, ["reproduce", "page", "--resume", str(tmp_path)])
    assert isinstance(done.exception, BadFile)
    assert file.name in str(done.exception)
    done = CliRunner().invoke(app, ["reproduce", "page"])
    assert "needs the folder" in str(done.exception)


# ---- what the experiments compute, by hand


def test_reciprocal_ranks_of_labels() -> None:
    runs = [
        Run.from_rankings("x", {"t": [("a", 3.0), ("b", 2.0), ("c", 1.0)]}),
        Run.from_rankings("y", {"t": [("c", 3.0)], "u": [("b", 1.0)]}),
    ]
    ranks = reciprocal_ranks(runs, {"t": ["b", "c"], "u": ["z"]})
    assert ranks["t"].tolist() == [[1 / 2, 1 / 3], [0, 1]]
    assert ranks["u"].tolist() == [[0], [0]]
    grades = Qrels.from_grades({"t": {"a": 2, "b": 2, "c": 1}, "u": {"z": 0}})
    assert top_graded(grades) == {"t": ["a", "b"]}


def test_leaving_a_group_out_passes_the_label_on() -> None:
    runs = [
        Run.from_rankings("watpfd", {"t": [("a", 3.0), ("b", 2.0)]}),
        Run.from_rankings("watpff", {"t": [("a", 3.0)]}),
        Run.from_rankings("pash_r1", {"t": [("b", 3.0), ("c", 2.0)]}),
    ]
    assert (group_of("watpfd"), group_of("stranger")) == (group_of("watprp"), "stranger")
    assert only_theirs(runs, 2) == {group_of("watpfd"): {("t", "a")}, group_of("pash_r1"): {("t", "c")}}
    assert only_theirs(runs, 1)[group_of("pash_r1")] == {("t", "b")}
    levels = {"t": Levels((("a",), ("b", "c")))}
    assert best_labels(levels, {("t", "a")}).grades() == {"t": {"b": 1.0, "c": 1.0}}
    assert best_labels(levels, set()).grades() == {"t": {"a": 1.0}}
    assert best_labels(levels, {("t", "a"), ("t", "b"), ("t", "c")}).grades() == {}


def test_ideal_rankings_are_counted_by_grade() -> None:
    assert 10 ** log_rankings({"a": 2, "b": 2, "c": 2, "d": 1, "e": 1, "f": 0}) == pytest.approx(12)


def test_growth_is_fitted_as_a_power() -> None:
    results = [simulate("allpairs", "order", items=size, cap=None, trials=1) for size in (25, 50, 100)]
    assert exponent(results) == pytest.approx(2.0, abs=0.05)


def test_the_simulated_study_infers_preferences_from_grades() -> None:
    grades, inferred, runs = simulated_study(3, 0)
    assert [run.name for run in runs] == ["engine-0", "engine-1", "engine-2"]
    known = grades.grades()
    for judgment in inferred.judgments():
        better, worse = judgment.pair if judgment.outcome == Outcome.LEFT else judgment.pair[::-1]
        assert known[judgment.topic][better] > known[judgment.topic][worse]


def test_pictures_stand_side_by_side(tmp_path: Path) -> None:
    pictures: list[Panel] = [
        Scatter("s", "x", "y", {"a": (1.0, 2.0)}, ["a"]),
        Bars("b", "y", ["p", "q"], {"one": [1.0, None], "two": [2.0, 3.0]}),
        Intervals("i", "y", [("run", 0.5, 0.4, 0.6)]),
        Lines("l", "x", "y", {"line": [(1.0, 2.0), (2.0, 4.0)]}, logarithmic=True),
        Histogram("h", "x", [1.0, 2.0, 2.0], {"mark": 1.5}),
    ]
    figure = panels(pictures, across=3)
    assert [axes.get_title() for axes in figure.axes] == ["s", "b", "i", "l", "h"]
    save_figure(figure, tmp_path / "all.svg")
    with pytest.raises(BadParameter):
        panels([])


def budget_report(queries: int, **ours: float) -> BudgetReport:
    cells = {
        "clt": ("9", "OPT", "CLT"),
        "hoeffding": ("9", "OPT", "Hoeffding"),
        "spread": ("7", "PW", "SYNTH sd"),
        "p": ("4", "REVERSE-75", "P sd by the formula"),
        "trec": ("3", "weaver2", "true"),
    }
    rows = tuple(BudgetFigure(*cells[name], value) for name, value in ours.items())
    return BudgetReport(rows, {}, 51, 0, queries, "")


def test_the_budget_papers_figures_have_verdicts() -> None:
    right = {"clt": 2.2192, "hoeffding": 183.893, "spread": 0.18, "p": 1.906, "trec": 7.484}
    report = ReportWithVerdicts(whole := budget_report(6000, **right), budget_checks(whole))
    assert {row.figure: row.verdict for row in report.compared()} == {
        "OPT: CLT": AGREES,
        "OPT: Hoeffding": DIFFERS,  # the paper's is twice as wide
        "PW: SYNTH sd": TOO_FEW,
        "REVERSE-75: P sd by the formula": DIFFERS,
        "weaver2: true": AGREES,
    }
    assert VerdictCounts.of(report) == VerdictCounts(
        agree=2, differ=2, too_few=1, unexplained=("REVERSE-75: P sd by the formula",)
    )
    assert sum(note.startswith("[") for note in report.notes()) == 2
    assert len(json.loads(json.dumps(report.as_json()))["verdicts"]) == 5
    assert [section.title for section in report.sections()][-1] == "Verdicts: TREC-8, Table 3"
    assert [row.part for row in budget_checks(budget_report(60, **right))] == ["TREC-8, Table 3"]


def test_every_figure_of_the_budget_papers_tables_has_a_verdict() -> None:
    paper = [
        BudgetFigure(*cell, value) for cell, value in BUDGET_PAPER.items()
    ]  # as if ours were the paper's
    formulas = [
        BudgetFigure(table, row, f"{column} by the formula", value)
        for (table, row, column), value in BUDGET_PAPER.items()
        if column in ("u~P sd", "P sd", "uniform sd", "DEEP sd")
    ]
    formulas += [
        BudgetFigure("3", row, ONE_TOPIC, value)
        for (_, row, column), value in BUDGET_PAPER.items()
        if column == "DEEP sd" and row in TRUE_TREC
    ]
    checks = budget_checks(BudgetReport((*paper, *formulas), {}, 100, 0, 6000, ""))
    held = {(row.part.rpartition(" ")[2], row.figure.split(" by the formula")[0]) for row in checks}
    trials = {("7", "sd"), ("5", "sd")}  # deviations of what has no deviation: the true values
    missing = [
        (table, row, column)
        for table, row, column in BUDGET_PAPER
        if (table, f"{row}: {column}") not in held and (table, column.rpartition(" ")[2]) not in trials
    ]
    assert missing == []
    trec = [row for row in checks if row.part.startswith("TREC-8") and CLT_BY_FORMULA not in row.figure]
    assert {row.verdict for row in trec} == {AGREES, TOO_FEW}
    deviations = [row for row in checks if row.figure.endswith("sd by the formula") and row.paper is not None]
    assert (
        len(deviations) == 3 * 5 + 3 * 3 + 5
    )  # Tables 3 and 4: the paper's figure itself, with its trials' error
    assert {row.paper for row in deviations} <= set(BUDGET_PAPER.values())
    assert all(row.paper_error == pytest.approx(row.paper / 198**0.5) for row in deviations)
    assert {row.verdict for row in deviations} == {TOO_FEW}


def test_what_a_predictor_is_worth_has_verdicts() -> None:
    given = (("predictor", 0.5, 0.6), ("useless", 1.2, 1.05), ("none", 0.9, None))
    rows = tuple(
        Worth("TREC-8, half", 4000, who, "hedged, greg", ratio, 0.02, 0.95, 0.9, 1.0, "SQRT", bar)
        for who, ratio, bar in given
    )
    assert [row.verdict for row in rows] == [KEPT, MISSED, ""]
    report = PredictorReport(rows, 10, 0)
    checks = report.compared()
    wrong = "TREC-8, half, n=4000, useless: hedged, greg"
    assert [(row.figure, row.verdict) for row in checks[:2]] == [
        ("TREC-8, half, n=4000, predictor: hedged, greg", KEPT),
        (wrong, MISSED),
    ]
    assert {row.verdict for row in checks[2:]} == {NOT_TO_BE_HAD}
    assert VerdictCounts.of(report).unexplained == (wrong,)
    assert report.sections()[-1].title == "Measured before, on a simulated set"


@pytest.mark.parametrize(
    ("cell", "value"), [("clt", 2.24), ("hoeffding", 367.79), ("spread", 0.36), ("p", 1.45), ("trec", 7.47)]
)
def test_a_wrong_figure_of_the_budget_paper_is_not_explained(cell: str, value: float) -> None:
    (row,) = budget_checks(budget_report(6000, **{cell: value}))
    assert not row.explained


# ---- every experiment in its quick form, on what data are there


def ours(report: Any, figure: str) -> float:
    (value,) = [row.ours for row in report.rows if row.figure == figure]
    assert isinstance(value, int | float)
    return value


def sets_are_rebuilt(report: Any) -> None:
    assert {row.verdict for row in report.rows} == {AGREES, AS_BEFORE}


def twins_are_found(report: Any) -> None:
    assert ours(report, "their mean size, with the topic of 130") == 50.5
    assert (ours(report, "of them in the top five"), ours(report, "twins that missed the top five")) == (8, 3)
    assert report.drawing().axes


def pools_are_rebuilt(report: Any) -> None:
    assert ours(report, "pools that the runs to depth 10, thinned by the grades, give") == 37


def best_items_are_more_reusable_than_grades(report: Any) -> None:
    (table,) = report.tables
    tau = {str(row[0]): float(str(row[-1])) for row in table.rows}
    assert tau["BestRR, Combined Set"] > 0.99 > tau["nDCG@10"] > 0.8


def pictures_are_drawn_as_in_the_paper(report: Any) -> None:
    axes = report.drawing().axes
    assert [each.get_title()[:9] for each in axes] == ["Figure 9:" if at % 3 else "Figure 9" for at in range(6)] + [
        "Figure 10", "Figure 11", "as Figure"
    ]  # fmt: skip
    assert len(axes[1].get_xticks()) == 25


def a_picture_is_drawn(report: Any) -> None:
    assert report.drawing().axes


def every_size_is_run(report: Any) -> None:
    assert [row[0] for row in report.tables[0].rows] == [12, 25, 50, 100, 200, 400]
    assert len(report.drawing().axes) == 3


def replays_read_the_data(report: Any) -> None:
    assert report.left_out == ()
    assert {trial.items >= 20 for trial in report.ours["cast19 dedicated raw"].outcomes} == {True}
    assert report.compared()[-1].figure == "all figures: ours less the bar, mean"


def real_votes_are_read(report: Any) -> None:
    assert report.left_out == ()
    assert len(report.whole) == len(report.stopping) >= 24
    assert [row.figure for row in report.compared() if row.figure.startswith("all problems: best")]
    assert len(report.drawing().axes) == 2


def nineteen_topics_have_a_prior(report: Any) -> None:
    """The LLM's scores agree with people as Kendall's tau .27, worked out beforehand."""
    assert (report.topics, report.agreement) == (19, pytest.approx(0.27, abs=0.01))
    assert [len(report.curves.line(way)) for way in WAYS] == [4, 4, 4]
    table, needs, *saved = report.sections()
    assert (len(table.rows), len(needs.rows), len(saved)) == (4, 4, 2)
    assert len(report.drawing().axes[0].lines) == 5


def every_statistic_finds_the_truth(report: Any) -> None:
    assert len(report.checks) > 120
    assert report.missed() == ()
    errors = [each.z**2 for each in report.checks]
    assert 0.5 < sum(errors) / len(errors) < 1.5  # the errors are neither too wide nor too narrow


def shares_of_agreement_are_the_known_ones(report: Any) -> None:
    shares = [(each.measured.part, each.measured.whole) for each in report.known]
    assert shares == [(2786, 5123), (1349, 2404), (1128, 1835), (4308, 6993)]
    assert all(each.measured.low < each.known < each.measured.high for each in report.known)
    crowds = {(each.data, each.criterion): each for each in report.crowds}
    rag, ukp = crowds["crowdrag25", "quality_overall"], crowds["ukpconvarg1", "overall"]
    assert (len(crowds), rag.votes, rag.units, ukp.votes, ukp.units) == (8, 6760, 975, 84445, 16927)
    shares_by_kind = [
        rag.agreement.value,
        rag.alpha[0],
        rag.left.value,
        ukp.agreement.value,
        ukp.alpha[0],
        ukp.transitive.value,
    ]
    assert shares_by_kind == pytest.approx([0.5788, 0.1605, 0.4834, 0.5238, 0.2667, 0.9656], abs=0.0001)
    taus = {each.criterion: each for each in report.taus}
    assert taus["quality_overall"].labels > 0.98
    assert all(each.labels > 0.9 and 0.6 < each.votes < 0.75 for each in taus.values())
    assert len(report.sections()) == 9


def pairs_are_cheaper_by_the_formula(report: Any) -> None:
    figure1 = report.report.figure1
    assert list(figure1) == [100, 250, 500, 1000, 2000]
    assert all(each.exact["PW"] < each.exact["SINGLE"] for each in figure1.values())
    assert report.drawing().axes


MORE: dict[str, Callable[[Any], None]] = {  # what else is known of a report
    "crowd-sets": sets_are_rebuilt,
    "crowd-twins": twins_are_found,
    "crowd-pools": pools_are_rebuilt,
    "best-items": a_picture_is_drawn,
    "topk-table3": pictures_are_drawn_as_in_the_paper,
    "topk-assessors": a_picture_is_drawn,
    "assessor-study": every_statistic_finds_the_truth,
    "agreement": shares_of_agreement_are_the_known_ones,
    "growth": every_size_is_run,
    "reuse": best_items_are_more_reusable_than_grades,
    "calibration": real_votes_are_read,
    "flagship": replays_read_the_data,
    "informed": nineteen_topics_have_a_prior,
    "budget": pairs_are_cheaper_by_the_formula,
}
WRITTEN = ("crowd-twins", "crowd-sets", "topk-effort", "topk-assessors")  # counts: the page holds every cell
PAGE = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")

FEW_TRIALS = {
    "calibration": 1,
    "figure3": 8,
    "flagship": 2,
    "growth": 1,
    "informed": 4,
    "judging-effort": 4,
    "powered": 3,
    "systems": 1,
}
"""Experiments that `make test-statistics` runs with few trials, and `make test-all` in their whole quick form."""


def forms() -> Iterator[Any]:
    """Give every experiment with the trials of its quick form; long ones also with few."""
    for name, experiment in EXPERIMENTS.items():
        needs_data = (
            bool(experiment.reads) and not experiment.partial
        )  # it can't run at all without the folder
        marks = [pytest.mark.data] if needs_data else []
        quick = experiment.trials_of(quick=True)
        if name in FEW_TRIALS:
            yield pytest.param(name, FEW_TRIALS[name], marks=marks, id=f"{name}-few")
            marks = [*marks, pytest.mark.slow]
        yield pytest.param(name, quick, marks=marks, id=name)


@pytest.mark.statistics
@pytest.mark.parametrize(("name", "trials"), list(forms()))
def test_the_quick_form_explains_every_difference(name: str, trials: int) -> None:
    """What `reproduce all --quick` runs and counts, and what the page of results says of it."""
    experiment = EXPERIMENTS[name]
    folder = os.environ.get("DUELPOOL_DATA")
    data = Path(folder) if folder else None
    ran = run_one(experiment, trials, 0, data=data, quick=True)
    assert ran.report is not None, ran.problem
    assert ran.tally.without_reason == ()
    told = ran.tally
    assert told.agree + told.as_before + told.kept + told.new + told.too_few + told.people > 0
    json.dumps(ran.report.as_json())
    assert ran.report.figures().rows
    for section in ran.report.sections():
        assert all(len(row) == len(section.columns) for row in section.rows)
    if data is None and experiment.reads:
        return
    MORE.get(name, lambda _: None)(ran.report)
    if trials < experiment.trials_of(quick=True):
        return
    text = page([ran])
    for section in ran.report.sections() if name in WRITTEN else ():
        assert section.as_markdown() in text
        assert section.as_markdown() in PAGE, section.title


def test_no_experiment_is_left_out() -> None:
    each_run = list(forms())
    quick = [
        name
        for name, trials in (each.values for each in each_run)
        if trials == EXPERIMENTS[name].trials_of(quick=True)
    ]
    always = [each.values[0] for each in each_run if pytest.mark.slow not in each.marks]
    assert quick == always == list(EXPERIMENTS)
    assert set(MORE) | set(WRITTEN) <= set(EXPERIMENTS)


def stored_verdicts() -> list[tuple[str, Measured, str]]:
    """Return every figure of the results' table: its experiment, what its verdict follows from, and its verdict."""
    rows = []
    with (ROOT / "docs" / "results.csv").open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            columns = ("ours", "ours_se", "paper_se", "known_se", "whole")
            number = {name: float(row[name]) if row[name] else None for name in columns}
            figure = Measured(
                row["figure"],
                stated(row["paper_low"], row["paper_high"]),
                number["ours"],
                stated(row["known_low"], row["known_high"]),
                number["ours_se"],
                float(row["within"]),
                row["why"],
                row["table"],
                kind=row["kind"],  # type: ignore[arg-type]
                whole=number["whole"],
                paper_error=number["paper_se"],
                known_error=number["known_se"],
            )
            rows.append((row["experiment"], figure, row["verdict"]))
    return rows


def stated(low: str, high: str) -> tuple[float, float] | None:
    return (float(low or -inf), float(high or inf)) if low or high else None


def test_every_verdict_of_the_results_page_follows_from_its_numbers() -> None:
    rows = stored_verdicts()
    assert len(rows) > 500
    assert [figure.figure for _, figure, verdict in rows if figure.verdict != verdict] == []
    counted: dict[str, Counter[str]] = {}
    for table in re.findall(r"\n\n((?:\| .*\n)+)", PAGE.partition("\n## ")[0]):
        head, _, *lines = ([cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines())
        for name, *numbers in lines:
            if name != "all":
                counts = zip(head[1:], map(int, numbers), strict=True)
                counted[name] = Counter({word: number for word, number in counts if number})
    assert list(counted) == list(EXPERIMENTS)
    heads = {NOT_TO_BE_HAD: "can't", NEW: "alone"}
    for name in EXPERIMENTS:
        verdicts = Counter(heads.get(word, word) for experiment, _, word in rows if experiment == name)
        if verdicts:  # else all of its figures are ours alone
            assert counted[name] == verdicts, name


def test_the_results_page_names_what_is_not_explained_and_nothing_differs_in_silence() -> None:
    rows = [(name, figure) for name, figure, _ in stored_verdicts() if not figure.explained]
    assert [figure.figure for _, figure in rows if not figure.called_unexplained] == []
    named = dict(re.findall(r"^- Not explained, ([\w-]+): (.+)\.$", PAGE, re.MULTILINE))
    assert set(named) == {name for name, _ in rows}
    for name, figure in rows:
        assert figure.figure in named[name]


def test_no_figure_of_the_results_page_has_an_error_of_nothing() -> None:
    assert re.findall(r"\S*±0(?:\.0+)?(?![\d.])\S*", PAGE) == []


def test_the_results_page_has_every_experiment_in_its_full_form() -> None:
    assert re.findall(r"^### (.+)$", PAGE, re.MULTILINE) == list(EXPERIMENTS)
    assert "Not run" not in PAGE
    for name, experiment in EXPERIMENTS.items():
        part = PAGE.split(f"\n### {name}\n", 1)[1].split("\n### ", 1)[0]
        form = re.search(r"^Full form(?:, ([\d,]+) trials, seed \d+)?, \d{4}-", part, re.MULTILINE)
        assert form, f"{name}: run it in its full form"
        if experiment.trials > 1:
            assert int(form[1].replace(",", "")) == experiment.trials


def test_the_guide_names_every_experiment() -> None:
    text = (ROOT / "docs" / "reproduce.md").read_text(encoding="utf-8")
    missing = [name for name in EXPERIMENTS if not re.search(rf"`{re.escape(name)}`", text)]
    assert not missing
