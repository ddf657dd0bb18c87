"""Judging by hand in the terminal: two texts side by side, one key an answer, the same keys as on the page."""

import os
import sys
import time
from collections.abc import Mapping
from typing import Protocol, TextIO

from rich.columns import Columns
from rich.console import Console, Group
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from duelpool.judges.live import JudgeAction, Sheet
from duelpool.records import Answer, Outcome, Passage

ANSWER_KEYS: Mapping[str, Outcome] = {
    "left": Outcome.LEFT,
    "1": Outcome.LEFT,
    "right": Outcome.RIGHT,
    "2": Outcome.RIGHT,
    "shift+left": Outcome.DEFINITELY_LEFT,
    "shift+right": Outcome.DEFINITELY_RIGHT,
    "q": Outcome.LEFT_BAD,
    "p": Outcome.RIGHT_BAD,
    "b": Outcome.BOTH_BAD,
    "t": Outcome.TIE,
    "=": Outcome.SAME,
    "x": Outcome.CANNOT_JUDGE,
    "s": Outcome.SKIP,
}
ACTION_KEYS: Mapping[str, JudgeAction] = {"u": JudgeAction.UNDO, "esc": JudgeAction.STOP}
HELP_KEYS = ("?", "h")
HELP: tuple[tuple[str, Outcome | None, str], ...] = (
    ("← or 1", Outcome.LEFT, "left is better"),
    ("→ or 2", Outcome.RIGHT, "right is better"),
    ("Shift+←/→", Outcome.DEFINITELY_LEFT, "definitely left, right"),
    ("q, p", Outcome.LEFT_BAD, "left, right is bad"),
    ("b", Outcome.BOTH_BAD, "both are bad"),
    ("t", Outcome.TIE, "a tie"),
    ("=", Outcome.SAME, "the same text"),
    ("x", Outcome.CANNOT_JUDGE, "cannot judge"),
    ("s", Outcome.SKIP, "skip"),
    ("u", None, "undo"),
    ("Esc", None, "end"),
)
CHARACTERS_A_LINE = 30  # of half a screen, at least
Q_IS_BAD = "q: the left one is bad. Press q again to say so, or Esc to end."
NOTHING_TO_UNDO = "There is nothing to undo in this session. `duelpool retract` takes earlier answers back."

_ESCAPES = {
    "[D": "left",
    "OD": "left",
    "[C": "right",
    "OC": "right",
    "[1;2D": "shift+left",
    "[1;2C": "shift+right",
}
_ESCAPE_SECONDS = 0.05  # bytes within this time after an escape belong to it
# A text may not move the cursor or recolour the screen: only line ends and tabs pass.
_NO_CONTROL = {code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


class KeySource(Protocol):
    """A source of keys; an empty text means that there are no more."""

    def read(self) -> str:
        """Wait for a key and return its name."""
        ...


class LineKeys:
    """Keys from lines of text, one key a line: for pipes, and for terminals without single keys."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def read(self) -> str:
        """Return the next line that isn't blank, as the name of a key."""
        for line in self._stream:
            if word := line.strip().lower():
                return word
        return ""


class TerminalKeys:
    """Single keys from a terminal, without Enter."""

    def __init__(self, stream: TextIO) -> None:
        self._file = stream.fileno()

    def read(self) -> str:
        """Return the key that is pressed; arrows come as an escape and what follows it."""
        import select
        import termios
        import tty

        before = termios.tcgetattr(self._file)
        try:
            tty.setcbreak(self._file, termios.TCSADRAIN)  # keys that were typed ahead count
            pressed = os.read(self._file, 1)
            if pressed == b"\x1b":
                rest = b""
                while select.select([self._file], [], [], _ESCAPE_SECONDS)[0] and len(rest) < 8:
                    rest += os.read(self._file, 1)
                return _ESCAPES.get(rest.decode(errors="replace"), "esc" if not rest else "unknown")
        finally:
            termios.tcsetattr(self._file, termios.TCSADRAIN, before)
        return "" if pressed in (b"", b"\x04") else pressed.decode(errors="replace").lower()


def keys_of(stream: TextIO) -> KeySource:
    """Return single keys where the stream is a terminal that can give them, else lines."""
    if not stream.isatty():
        return LineKeys(stream)
    try:
        import termios  # noqa: F401
    except ImportError:
        return LineKeys(stream)
    return TerminalKeys(stream)


class TerminalJudge:
    """A person at the terminal."""

    def __init__(self, console: Console | None = None, keys: KeySource | None = None) -> None:
        self._console = console or Console(emoji=False)
        self._keys = keys or keys_of(sys.stdin)
        self._knows_q = not isinstance(self._keys, TerminalKeys)  # elsewhere q ends a program

    def reply(self, sheet: Sheet) -> Answer | JudgeAction:
        """Show a question and wait for a key that answers it."""
        self._console.print(page(sheet, self._console.height))
        began = time.monotonic()
        while True:
            key = self._keys.read()
            if not key:
                return JudgeAction.STOP
            if key in HELP_KEYS:
                self._say(sheet.guidelines)
                self._say(keys_line(sheet))
                continue
            if key == "u" and not sheet.can_undo:
                self._say(NOTHING_TO_UNDO)
                continue
            if key in ACTION_KEYS:
                return ACTION_KEYS[key]
            if key == "q" and not self._knows_q:
                self._knows_q = True
                self._say(Q_IS_BAD)
                continue
            seconds = round(time.monotonic() - began, 2)
            if sheet.right is None and (grade := _grade(key, sheet.grades)) is not None:
                return Answer(Outcome.GRADE, grade=grade, seconds=seconds)
            outcome = outcome_of(key)
            if outcome is not None and outcome in sheet.outcomes and outcome is not Outcome.GRADE:
                return Answer(outcome, seconds=seconds)
            self._say(f"The key '{key}' has no meaning here.")
            self._say(keys_line(sheet))

    def _say(self, text: str) -> None:
        self._console.print(_plain(text), markup=False, highlight=False)


def outcome_of(key: str) -> Outcome | None:
    """Return the outcome of a key, or of an outcome's own name; None for anything else."""
    if key in ANSWER_KEYS:
        return ANSWER_KEYS[key]
    return Outcome(key) if key in {str(each) for each in Outcome} else None


def _grade(key: str, grades: tuple[float, ...]) -> float | None:
    try:
        value = float(key)
    except ValueError:
        return None
    return value if value in grades else None


def page(sheet: Sheet, height: int = 1000) -> Group:
    """Return a question as it is drawn; neither ids nor ranks are shown.

    Below texts that may not fit a screen of this `height` the question stands once more.
    """
    lines: list[Text | Rule | Table | Panel | Columns] = [Rule(f"question {sheet.judged + 1}", align="left")]
    lines += [Text(_plain(turn), style="dim") for turn in sheet.topic.conversation]
    lines.append(Text(_plain(sheet.topic.text), style="bold"))
    if sheet.topic.description:
        lines.append(Text(_plain(sheet.topic.description)))
    if sheet.right is None:
        lines.append(_panel(sheet.left, ""))
    else:
        both = Table.grid(expand=True, padding=(0, 1))
        both.add_column(ratio=1)
        both.add_column(ratio=1)
        both.add_row(_panel(sheet.left, "left"), _panel(sheet.right, "right"))
        lines.append(both)
    longest = max(len(each.text) for each in (sheet.left, sheet.right) if each is not None)
    if longest > CHARACTERS_A_LINE * height / 2:
        lines.append(Text(_plain(sheet.topic.text), style="bold"))
    lines.append(Columns([Text(each, style="dim") for each in _keys(sheet)], padding=(0, 2)))
    return Group(*lines)


def keys_line(sheet: Sheet) -> str:
    """Return the keys that answer a question, with what they mean."""
    return "  ".join(_keys(sheet))


def _keys(sheet: Sheet) -> list[str]:
    graded = [f"{grade:g}" for grade in sheet.grades] if sheet.right is None else []
    lines = [f"{' '.join(graded)}: the grade"] if graded else []
    lines += [f"{keys}: {what}" for keys, needs, what in HELP if needs is None or needs in sheet.outcomes]
    return lines


def _panel(passage: Passage, title: str) -> Panel:
    body = Text(_plain(passage.text) or "(no text)")
    if passage.title:
        body = Text.assemble((_plain(passage.title), "bold"), "\n", body)
    return Panel(body, title=title or None, title_align="left")


def _plain(text: str) -> str:
    return text.translate(_NO_CONTROL)
