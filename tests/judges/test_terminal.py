"""The terminal judge: the page's keys, texts side by side, hidden ids."""

import io
import os
import pty
from dataclasses import replace

import pytest
from rich.console import Console

from duelpool.judges.live import JudgeAction, Sheet
from duelpool.judges.terminal import NOTHING_TO_UNDO, Q_IS_BAD, LineKeys, TerminalJudge, TerminalKeys, keys_of
from duelpool.records import Answer, Outcome, Passage, Topic

PLAIN = frozenset(
    {
        Outcome.LEFT,
        Outcome.RIGHT,
        Outcome.LEFT_BAD,
        Outcome.RIGHT_BAD,
        Outcome.BOTH_BAD,
        Outcome.CANNOT_JUDGE,
        Outcome.SKIP,
    }
)
SHEET = Sheet(
    "q1",
    Topic("jaffe", "who is jaffe?", "A person.", conversation=("Tell me about people.",)),
    Passage("SECRET-1", "The left text.", title="A title"),
    Passage("SECRET-2", "The right text."),
    PLAIN,
    guidelines="Choose what answers best.",
)


def ask(keys: str, sheet: Sheet = SHEET, width: int = 80) -> tuple[Answer | JudgeAction, str]:
    screen = io.StringIO()
    judge = TerminalJudge(Console(file=screen, width=width), LineKeys(io.StringIO(keys)))
    return judge.reply(sheet), screen.getvalue()


@pytest.mark.parametrize(
    ("key", "outcome"),
    [
        ("1", Outcome.LEFT),
        ("2", Outcome.RIGHT),
        ("left", Outcome.LEFT),
        ("right", Outcome.RIGHT),
        ("q", Outcome.LEFT_BAD),
        ("P", Outcome.RIGHT_BAD),
        ("b", Outcome.BOTH_BAD),
        ("x", Outcome.CANNOT_JUDGE),
        ("s", Outcome.SKIP),
        ("left-bad", Outcome.LEFT_BAD),
    ],
)
def test_a_key_is_an_answer(key: str, outcome: Outcome) -> None:
    reply, _ = ask(f"{key}\n")
    assert isinstance(reply, Answer)
    assert reply.outcome is outcome
    assert reply.seconds is not None
    assert reply.seconds >= 0


@pytest.mark.parametrize(
    ("keys", "wish"),
    [
        ("u\n", JudgeAction.UNDO),
        ("esc\n", JudgeAction.STOP),
        ("", JudgeAction.STOP),
        ("\n\n", JudgeAction.STOP),
    ],
)
def test_undo_stop_and_end_of_input(keys: str, wish: JudgeAction) -> None:
    assert ask(keys)[0] is wish


def test_key_without_meaning_is_reported_and_asked_again() -> None:
    reply, screen = ask("t\nshift+left\n=\ngrade\nz\n?\n1\n")
    assert isinstance(reply, Answer)
    assert reply.outcome is Outcome.LEFT
    assert screen.count("has no meaning here") == 5
    assert "Choose what answers best." in screen
    generous = replace(SHEET, outcomes=PLAIN | {Outcome.TIE, Outcome.DEFINITELY_LEFT})
    for key, outcome in (("t", Outcome.TIE), ("shift+left", Outcome.DEFINITELY_LEFT)):
        taken, _ = ask(f"{key}\n", generous)
        assert isinstance(taken, Answer)
        assert taken.outcome is outcome


def test_nothing_to_undo_is_said_and_asked_again() -> None:
    reply, screen = ask("u\n2\n", replace(SHEET, can_undo=False))
    assert isinstance(reply, Answer)
    assert reply.outcome is Outcome.RIGHT
    assert NOTHING_TO_UNDO in " ".join(screen.split())


class _Pressed(TerminalKeys):
    """Keys of a terminal, pressed beforehand."""

    def __init__(self, *keys: str) -> None:
        self._left = list(keys)

    def read(self) -> str:
        return self._left.pop(0) if self._left else ""


def test_the_first_q_at_a_terminal_is_asked_about() -> None:
    screen = io.StringIO()
    judge = TerminalJudge(Console(file=screen, width=80), _Pressed("q", "esc", "q", "1"))
    assert judge.reply(SHEET) is JudgeAction.STOP
    assert Q_IS_BAD in screen.getvalue()
    reply = judge.reply(SHEET)
    assert isinstance(reply, Answer)
    assert reply.outcome is Outcome.LEFT_BAD


def test_the_question_stands_below_long_texts_too() -> None:
    assert ask("1\n")[1].count("who is jaffe?") == 1
    _, screen = ask("1\n", replace(SHEET, right=Passage("SECRET-2", "A long text. " * 200)))
    assert screen.count("who is jaffe?") == 2


def test_the_page_shows_both_texts_side_by_side_and_no_ids() -> None:
    _, screen = ask("1\n", replace(SHEET, right=Passage("SECRET-2", "The right text.", title="Other")))
    assert any("The left text." in line and "The right text." in line for line in screen.splitlines())
    assert screen.index("Tell me about people.") < screen.index("who is jaffe?") < screen.index("A title")
    assert "SECRET" not in screen
    assert max(map(len, screen.splitlines())) <= 80


def test_control_characters_are_removed() -> None:
    nasty = replace(SHEET, left=Passage("n", "be\x1b[2Jfore\x07\x9b31m[bold]after[/bold]\ttab"))
    _, screen = ask("1\n", nasty)
    assert "\x1b" not in screen
    assert "\x07" not in screen
    assert "\x9b" not in screen
    assert "[bold]after[/bold]" in screen.replace("\n", "").replace(" ", "") or "[bold]" in screen


def test_a_grade_for_one_item() -> None:
    sheet = replace(
        SHEET, right=None, grades=(0.0, 1.0, 2.0), outcomes=frozenset({Outcome.GRADE, Outcome.SKIP})
    )
    reply, screen = ask("7\nleft\n2\n", sheet)
    assert isinstance(reply, Answer)
    assert (reply.outcome, reply.grade) == (Outcome.GRADE, 2.0)
    assert screen.count("has no meaning here") == 2
    assert "0 1 2: the grade" in screen


@pytest.mark.parametrize(
    ("pressed", "key"),
    [
        (b"\x1b[D", "left"),
        (b"\x1b[C", "right"),
        (b"\x1bOD", "left"),
        (b"\x1b[1;2C", "shift+right"),
        (b"\x1b", "esc"),
        (b"\x1b[5~", "unknown"),
        (b"Q", "q"),
    ],
)
def test_single_keys_of_a_real_terminal(pressed: bytes, key: str) -> None:
    master, slave = pty.openpty()
    try:
        with os.fdopen(os.dup(slave), "r") as terminal:
            keys = keys_of(terminal)
            assert isinstance(keys, TerminalKeys)
            os.write(master, pressed)
            assert keys.read() == key
    finally:
        os.close(master)
        os.close(slave)
