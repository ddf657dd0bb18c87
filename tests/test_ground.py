"""Records, errors, seeds, loops to be compiled, and files that get their name when they are complete."""

import os
import pickle
import runpy
from pathlib import Path

import numpy as np
import pytest

from duelpool import compiling
from duelpool.compiling import CompiledLoop
from duelpool.durable import give_name
from duelpool.errors import BadFile, BadRecord, DuelpoolError, MissingExtra, UnknownName
from duelpool.records import (
    EFFECTS,
    Judgment,
    Kind,
    Levels,
    Outcome,
    Passage,
    Pool,
    Question,
    Topic,
    is_number,
    pair_of,
)
from duelpool.seeds import rng_for


def test_a_decision_draws_the_same_numbers_in_every_process() -> None:
    # Figures written down once: a change here would break every replay.
    assert rng_for(7, "topic 12", "phase 2").integers(0, 10**9, 3).tolist() == [
        706189447,
        446819550,
        475980685,
    ]


def test_a_loop_is_compiled_once_its_plain_form_has_taken_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 0.5, 1.0, 1.4, 2.0, 2.1])
    monkeypatch.setattr("time.thread_time", lambda: next(times))
    monkeypatch.setattr(compiling, "compiled", lambda loop: loop)
    loop = CompiledLoop(lambda number: f"plain {number}", lambda number: f"compiled {number}")
    assert [loop(number) for number in range(4)] == ["plain 0", "plain 1", "compiled 2", "compiled 3"]
    monkeypatch.setattr(compiling, "compiled", lambda _: None)
    assert loop(4) == "plain 4"


@pytest.mark.parametrize("damaged", [b"", b"not what was kept"])
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_a_loop_is_compiled_afresh_where_what_is_kept_is_damaged(
    tmp_path: Path, ending: str, damaged: bytes
) -> None:
    source = tmp_path / "loops.py"
    source.write_text("def doubled(number):\n    return 2 * number\n", encoding="utf-8")

    def doubled(number: float) -> float:
        loop = compiling.compiled(runpy.run_path(str(source))["doubled"])
        assert loop, "Numba is among what the tests need."
        return float(loop(number) + loop(number))

    assert doubled(1.5) == 6.0
    kept = list(tmp_path.rglob(f"*.{ending}"))
    assert kept
    for path in kept:
        path.write_bytes(damaged)
    assert doubled(2.5) == 10.0


def test_decisions_with_different_names_are_independent() -> None:
    draws = [rng_for(7, *key).random() for key in (("a",), ("b",), ("a", 1), ("a", "1"), (1, "a"))]
    assert len(set(draws)) == len(draws)
    assert rng_for(8, "a").random() != rng_for(7, "a").random()
    assert isinstance(rng_for(0), np.random.Generator)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(ValueError, match="from 0 on"):
        rng_for(-1)


def test_every_outcome_has_its_effect() -> None:
    assert set(EFFECTS) == set(Outcome)


@pytest.mark.parametrize(
    ("outcome", "winner", "loser", "bad"),
    [
        (Outcome.LEFT, "a", "b", ()),
        (Outcome.RIGHT, "b", "a", ()),
        (Outcome.DEFINITELY_RIGHT, "b", "a", ()),
        (Outcome.TIE, None, None, ()),
        (Outcome.LEFT_BAD, "b", "a", ("a",)),
        (Outcome.RIGHT_BAD, "a", "b", ("b",)),
        (Outcome.BOTH_BAD, None, None, ("a", "b")),
        (Outcome.SKIP, None, None, ()),
    ],
)
def test_effect_of_each_outcome(
    outcome: Outcome, winner: str | None, loser: str | None, bad: tuple[str, ...]
) -> None:
    judgment = Judgment("t", "a", "b", outcome)
    assert (judgment.winner, judgment.loser, judgment.bad_items) == (winner, loser, bad)


def test_shares_of_a_win_add_up() -> None:
    for outcome, effect in EFFECTS.items():
        shares = effect.left + effect.right
        bad = effect.left_bad and effect.right_bad
        assert shares == (1.0 if effect.usable and not bad and outcome is not Outcome.GRADE else 0.0)


def test_pair_is_the_same_in_either_order() -> None:
    assert (
        Judgment("t", "b", "a", Outcome.LEFT).pair == Judgment("t", "a", "b", Outcome.LEFT).pair == ("a", "b")
    )
    assert Question("q", "t", "b", "a", "worker").pair == pair_of("a", "b")


@pytest.mark.parametrize(
    "fields",
    [
        {"topic": "", "left": "a", "right": "b", "outcome": Outcome.LEFT},
        {"topic": "t", "left": "a", "right": "a", "outcome": Outcome.LEFT},
        {"topic": "t", "left": "a", "right": None, "outcome": Outcome.LEFT},
        {"topic": "t", "left": "a", "right": "b", "outcome": Outcome.GRADE, "grade": 1.0},
        {"topic": "t", "left": "a", "right": None, "outcome": Outcome.GRADE, "kind": Kind.GRADE},
        {"topic": "t", "left": "a", "right": "b", "outcome": Outcome.LEFT, "propensity": 0.0},
        {"topic": "t", "left": "a", "right": "b", "outcome": Outcome.LEFT, "seconds": -1.0},
        {"topic": "t", "left": "a", "right": "b", "outcome": Outcome.LEFT, "seconds": float("nan")},
    ],
)
def test_judgments_that_contradict_themselves_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(BadRecord):
        Judgment(**fields)  # type: ignore[arg-type]


def test_a_number_that_no_float_holds_is_refused() -> None:
    huge = 10**400
    assert not is_number(huge)
    assert is_number(10**300)
    with pytest.raises(BadRecord, match="weight"):
        Topic("one", "Who?", weight=huge)
    with pytest.raises(BadRecord, match="Seconds"):
        Judgment("one", "a", "b", Outcome.LEFT, seconds=huge)


def test_records_are_validated_when_made() -> None:
    with pytest.raises(BadRecord):
        Topic("1", "text", weight=-1)
    with pytest.raises(BadRecord):
        Passage("", "text")
    with pytest.raises(BadRecord, match="twice"):
        Pool("1", ("a", "a"))
    with pytest.raises(BadRecord, match="isn't in it"):
        Pool("1", ("a",), grades={"b": 1.0})
    with pytest.raises(BadRecord):
        Levels((("a",), ("a", "b")))
    with pytest.raises(BadRecord, match="no pair"):
        _ = Question("q", "t", "a", None, "worker").pair


def test_levels_give_best_top_and_grades() -> None:
    levels = Levels((("a",), ("b", "c"), ("d",)))
    assert levels.best == ("a",)
    assert levels.top(2) == (("a",), ("b", "c"))  # a level that crosses rank k is kept whole
    assert levels.as_grades() == {"a": 3, "b": 2, "c": 2, "d": 1}
    assert levels.as_grades(1) == {"a": 1}
    assert Levels(()).best == ()


def test_errors_say_problem_place_and_remedy() -> None:
    error = BadFile.at("a.run", 17, "The score is 'x'.", "Correct the line.")
    assert str(error) == "a.run:17: The score is 'x'. Correct the line."
    assert str(UnknownName("measure", "compact", ["Compat", "AP"])) == (
        "There is no measure called 'compact'. Did you mean 'Compat'? Known: AP, Compat."
    )
    assert "pip install 'duelpool[ir]'" in str(MissingExtra("ir_measures", "ir"))


@pytest.mark.parametrize(
    "error", [BadFile.at("f", 1, "p", "r"), UnknownName("k", "n", ["m"]), MissingExtra("p", "e")]
)
def test_errors_can_be_pickled(error: DuelpoolError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)


# ---- files that get their name when they are complete


@pytest.mark.parametrize("is_folder", [False, True])
def test_content_is_synced_before_the_name_and_the_name_at_once(
    is_folder: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.name == "nt":
        pytest.skip("Windows syncs no folders")
    partial, target = tmp_path / "partial", tmp_path / "target"
    if is_folder:
        partial.mkdir()
    else:
        partial.write_text("new")
        target.write_text("old")
    synced: list[tuple[int, bool]] = []

    def note(handle: int) -> None:
        synced.append((os.fstat(handle).st_ino, partial.exists()))

    monkeypatch.setattr(os, "fsync", note)
    inode = partial.stat().st_ino
    give_name(partial, target)
    assert synced == [(inode, True), (tmp_path.stat().st_ino, False)]
    assert target.stat().st_ino == inode


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name")
def test_a_pipe_that_has_the_name_gets_the_content_and_stays(tmp_path: Path) -> None:
    """As /dev/null does: a program that runs as root would replace the device by a file."""
    partial, pipe = tmp_path / "partial", tmp_path / "pipe"
    partial.write_bytes(b"content")
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        give_name(partial, pipe)
        assert os.read(reader, 100) == b"content"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert not partial.exists()
