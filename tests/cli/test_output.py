"""Tables on standard output: long ones, of which Rich lays out one row, look as if it had laid out all."""

import re
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import duelpool
from duelpool.cli import output

CELLS = st.text("abZ09 -_:[]\\/é漢👍…", max_size=12) | st.sampled_from(
    ["", ":key:", "[bold]", "a\tb", "a\nb", "\\["]
)


def console_of(width: int, *, terminal: bool = False, encoding: str = "utf-8") -> Console:
    class File(StringIO):
        @property
        def encoding(self) -> str:  # type: ignore[override]
            return encoding

    return Console(file=File(), width=width, emoji=False, force_terminal=terminal, color_system="standard")


def printed(table: Table, console: Console) -> str:
    with console.capture() as captured:
        console.print(table)
    return captured.get()


@st.composite
def tables(draw: st.DrawFn) -> Table:
    columns = draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(CELLS, min_size=columns, max_size=columns), min_size=1, max_size=9))
    table = Table(
        title=draw(st.sampled_from([None, "Topics", "Many words: " + "word " * 9])),
        caption=draw(st.sampled_from([None, "… is msmarco_passage_"])),
        show_header=draw(st.booleans()),
        title_justify="left",
    )
    for at in range(columns):
        table.add_column(
            f"column {at}"[: draw(st.integers(1, 8))],
            justify=draw(st.sampled_from(["left", "right"])),
            overflow=draw(st.sampled_from(["fold", "ellipsis"])),
        )
    for row in rows:
        table.add_row(*map(escape, row))
    return table


@given(tables(), st.integers(20, 120), st.booleans(), st.sampled_from(["utf-8", "ascii"]))
def test_long_table_property_is_printed_as_by_rich(
    table: Table, width: int, terminal: bool, encoding: str
) -> None:
    console = console_of(width, terminal=terminal, encoding=encoding)
    text = output.text_of_long_table(table, console)
    assert text is None or text == printed(table, console)


@pytest.mark.parametrize("terminal", [False, True])
def test_rows_of_one_line_are_not_laid_out_one_by_one(terminal: bool) -> None:
    table = Table("topic", "best so far", title="Topics")
    for at in range(90):
        table.add_row(f"t{at}", escape(f"[{at}] :key:{'漢' * (at % 7)}"))
    console = console_of(80, terminal=terminal)
    text = output.text_of_long_table(table, console)
    assert text is not None
    assert text == printed(table, console)
    assert len({cell_len(line) for line in text.splitlines() if "│" in line}) == 1


@pytest.mark.parametrize("kind", ["wraps", "styled", "sections", "lines", "wide"])
def test_tables_of_other_rows_are_left_to_rich(kind: str) -> None:
    table = Table("topic", "text", show_lines=kind == "lines", expand=kind == "wide")
    for at in range(60):
        text = (
            "word " * 40
            if kind == "wraps" and at == 7
            else "[bold]word[/bold]"
            if kind == "styled"
            else "word"
        )
        table.add_row(str(at), text, end_section=kind == "sections")
    assert output.text_of_long_table(table, console_of(80)) is None


def test_ids_with_colons_are_no_emoji(capsys: pytest.CaptureFixture[str]) -> None:
    for rows in (3, 60):
        table = Table("topic")
        for at in range(rows):
            table.add_row(f"urn:key:{at}")
        output.print_table(table)
        assert capsys.readouterr().out.count("urn:key:") == rows


def test_every_console_prints_texts_as_they_are() -> None:
    package = Path(duelpool.__file__).parent
    made = [
        (path.name, call)
        for path in package.rglob("*.py")
        for call in re.findall(r"\bConsole\([^)]*\)", path.read_text(encoding="utf-8"))
    ]
    assert len(made) >= 5
    assert [each for each in made if "emoji=False" not in each[1] and each[1] != "Console()"] == []
    assert {name for name, call in made if call == "Console()"} <= {"status.py"}  # asks for its width
