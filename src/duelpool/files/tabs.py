"""Tab-separated lines, with or without a header line."""

from collections.abc import Collection, Iterator, Sequence

from duelpool.errors import BadFile
from duelpool.files.jsonlines import Row
from duelpool.files.notices import Tally
from duelpool.files.source import Source


def tab_rows(
    source: Source, default: Sequence[str], known: Collection[str], tally: Tally
) -> Iterator[tuple[int, Row]]:
    """Yield the line number and the named fields of each line.

    The first line is a header when it begins with known names, as many as `default` has; else the fields are the
    default ones, and the last of them keeps any further tabs.
    """
    names: list[str] | None = None
    for number, raw in enumerate(source.lines(), 1):
        if not raw.strip():
            tally.add("blank lines skipped", number)
            continue
        line = _decode(raw, number, tally)
        if names is None:
            first = [field.strip().lower() for field in line.split("\t")]
            if len(first) >= len(default) and all(name in known for name in first[: len(default)]):
                names = first
                continue
            names = list(default)
        fields = line.split("\t", len(names) - 1)
        if len(fields) < len(names):
            raise BadFile.at(
                source.name,
                number,
                f"A line has {len(names)} fields with tabs between them ({', '.join(names)}); "
                f"this one has {len(fields)}.",
                "Blanks don't count: put a tab between the id and the text.",
            )
        yield number, dict(zip(names, fields, strict=True))


def _decode(raw: bytes, line: int, tally: Tally) -> str:
    try:
        return raw.rstrip(b"\r").decode()
    except UnicodeDecodeError:
        tally.add("lines with bytes that aren't UTF-8, shown as \ufffd", line)
        return raw.rstrip(b"\r").decode(errors="replace")
