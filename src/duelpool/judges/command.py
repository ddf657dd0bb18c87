"""Any program as a judge: questions go to its standard input as JSON lines, outcomes come from its output.

A question: `{"id", "topic", "question", "left": {"id", "text"}, "right": {...}, "outcomes": [...]}` and, where
there are any, `description`, `conversation`, `guidelines`, `criterion`, `grades`. A reply, one line a question:
`{"id": ..., "outcome": "left"}`, or `{"id": ..., "winner": the item's id}`; `grade`, `confidence`, `note` and
`seconds` are optional. `{"id": ..., "error": "..."}` reports that it could not answer.
"""

import json
import math
import queue
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from duelpool.errors import BadParameter
from duelpool.judges.live import JudgeAction, JudgeError, Sheet
from duelpool.records import Answer, Outcome, Passage, is_number

_LINE_AT_MOST = 1_000_000  # characters of a reply; more than this is no reply
_GRACE_SECONDS = 2.0  # for a program to exit by itself when there are no more questions


class CommandJudge:
    """A program that answers; it is started when first needed, and again after it failed."""

    def __init__(self, words: Sequence[str], *, timeout: float = 120.0) -> None:
        if not words:
            raise BadParameter("No program is named.", remedy="Name one, with its arguments.")
        if not (math.isfinite(timeout) and timeout > 0):
            raise BadParameter(f"A program gets more than 0 seconds for an answer, not {timeout}.")
        self._words = list(words)
        self._timeout = timeout
        self._program: subprocess.Popen[str] | None = None
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def reply(self, sheet: Sheet) -> Answer | JudgeAction:
        """Ask the program; without a proper answer in time, raise JudgeError and restart it at the next question."""
        try:
            began = time.monotonic()
            self._send(json.dumps(question_to_json(sheet), ensure_ascii=False))
            reply = reply_from_json(self._receive(), sheet)
            if reply.seconds is None:
                reply = replace(reply, seconds=round(time.monotonic() - began, 3))
            return reply
        except JudgeError:
            self._end(at_once=True)  # a late answer must not be taken as the answer to the next question
            raise

    # ---- the program

    def _start(self) -> subprocess.Popen[str]:
        if self._program is not None:
            return self._program
        try:
            program = subprocess.Popen(
                self._words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",
                bufsize=1,
            )
        except OSError as error:
            raise JudgeError(
                f"The program '{self._words[0]}' can't be started ({error.strerror}).",
                remedy="Check its name and its rights.",
            ) from None
        self._program = program
        self._lines = queue.SimpleQueue()
        threading.Thread(target=_listen, args=(program, self._lines), daemon=True).start()
        return program

    def _send(self, line: str) -> None:
        program = self._start()
        try:
            if program.stdin is not None:
                program.stdin.write(line + "\n")
                program.stdin.flush()
        except (BrokenPipeError, OSError):
            raise self._ended() from None

    def _receive(self) -> str:
        try:
            line = self._lines.get(timeout=self._timeout)
        except queue.Empty:
            raise JudgeError(
                f"The program gave no answer within {self._timeout:g} seconds.",
                remedy="Give it more with --timeout, and let it write each answer out at once (flush).",
            ) from None
        if line is None:
            raise self._ended()
        return line

    def _ended(self) -> JudgeError:
        code = None
        if self._program is not None:
            try:
                code = self._program.wait(timeout=_GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                code = None
        status = "" if code is None else f" with code {code}"
        return JudgeError(
            f"The program ended{status} without an answer.",
            remedy="It should answer one line a question until its input ends; see what it wrote above.",
        )

    def _end(self, *, at_once: bool) -> None:
        program, self._program = self._program, None
        if program is None:
            return
        try:
            if program.stdin is not None:
                program.stdin.close()
        except OSError:
            pass
        try:
            program.wait(timeout=0 if at_once else _GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()

    def close(self) -> None:
        """Tell the program that there are no more questions, and wait for its end."""
        self._end(at_once=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _listen(program: subprocess.Popen[str], lines: "queue.SimpleQueue[str | None]") -> None:
    """Queue a program's lines until it ends; this thread then closes the pipe."""
    if program.stdout is not None:
        with program.stdout as stream:
            while line := stream.readline(_LINE_AT_MOST):
                if line.strip():
                    lines.put(line)
    lines.put(None)


# ---- the JSON lines


def question_to_json(sheet: Sheet) -> dict[str, Any]:
    """Return a question for a program."""
    question: dict[str, Any] = {
        "id": sheet.question,
        "topic": sheet.topic.id,
        "question": sheet.topic.text,
        "left": _item(sheet.left),
        "outcomes": sorted(map(str, sheet.outcomes)),
    }
    if sheet.right is not None:
        question["right"] = _item(sheet.right)
    else:
        question["grades"] = list(sheet.grades)
    extras = {
        "description": sheet.topic.description,
        "conversation": list(sheet.topic.conversation),
        "guidelines": sheet.guidelines,
        "criterion": sheet.criterion if sheet.criterion != "overall" else "",
    }
    return question | {name: value for name, value in extras.items() if value}


def _item(passage: Passage) -> dict[str, str]:
    fields = {"id": passage.id, "text": passage.text, "title": passage.title, "url": passage.url}
    return {name: value for name, value in fields.items() if value or name in ("id", "text")}


def reply_from_json(line: str, sheet: Sheet) -> Answer:
    """Return the reply that a line holds, or raise JudgeError with the problem."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        raise _wrong(f"'{line.strip()[:80]}' is not JSON") from None
    if not isinstance(row, dict):
        raise _wrong("it is not a JSON object")
    if row.get("id") != sheet.question:
        raise _wrong(f"it is about the question {row.get('id')!r}, and '{sheet.question}' was asked")
    if row.get("error"):
        raise JudgeError(f"The program reports: {str(row['error'])[:200]}", remedy="")
    outcome = _outcome(row, sheet)
    grade = _number(row, "grade")
    if (outcome is Outcome.GRADE) != (grade is not None):
        raise _wrong("a grade goes with the outcome 'grade', and the other way round")
    if grade is not None and sheet.grades and grade not in sheet.grades:
        raise _wrong(f"the grade {grade:g} isn't on the scale")
    note = row.get("note", "")
    seconds = _number(row, "seconds")
    if not isinstance(note, str) or (seconds is not None and seconds < 0):
        raise _wrong("'note' is a text and 'seconds' a number from 0 on")
    return Answer(outcome, grade=grade, confidence=_number(row, "confidence"), note=note, seconds=seconds)


def _outcome(row: Mapping[str, Any], sheet: Sheet) -> Outcome:
    name = row.get("outcome")
    if name is None and "winner" in row and sheet.right is not None:
        sides = {sheet.left.id: "left", sheet.right.id: "right"}
        winner = row["winner"]
        if not isinstance(winner, str) or winner not in sides:
            raise _wrong(f"the winner {winner!r} is neither of the two")
        name = sides[winner]
    if name is None and "grade" in row:
        name = str(Outcome.GRADE)
    if name not in [str(each) for each in sheet.outcomes]:
        known = ", ".join(sorted(map(str, sheet.outcomes)))
        raise _wrong(f"the outcome {name!r} isn't one of {known}")
    return Outcome(name)


def _number(row: Mapping[str, Any], name: str) -> float | None:
    value = row.get(name)
    if value is None:
        return None
    if not is_number(value):
        raise _wrong(f"'{name}' is no number")
    return float(value)


def _wrong(what: str) -> JudgeError:
    return JudgeError(
        f"The program's answer can't be used: {what}.",
        remedy='An answer reads {"id": the question\'s id, "outcome": "left"}.',
    )
