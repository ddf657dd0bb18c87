"""The tables of docs/statistics.md, read and written: `python tests/calibration/page.py` measures all of it again."""

import os
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from calibration.cases import COVERAGE, LEVELS, POWER, Case

PAGE = Path(__file__).parents[2] / "docs" / "statistics.md"


def figures() -> dict[str, float]:
    """Return the shares that the page states, by the names of their cases."""
    text = PAGE.read_text(encoding="utf-8")
    tables = "\n".join(re.findall(r"^<!-- \w+ -->\n((?:\|.*\n)+)", text, re.MULTILINE))
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (\.\d{3}|1\.000)", tables, re.MULTILINE)
    return {f"{what}: {shape}": float(share) for what, shape, share in rows}


def row(case: Case, share: float) -> str:
    """Return a case's row of the page."""
    said = "" if case.holds else f" ({case.says})"
    return f"| {case.what} | {case.shape} | {f'{share:.3f}'.removeprefix('0')}{said} |"


def measured(case: Case) -> float:
    """Return the share of a case, on the data that DUELPOOL_DATA names."""
    return case.share(Path(os.environ["DUELPOOL_DATA"]))


def measured_at(at: int) -> float:
    """Return the share of a case by its place, for another process."""
    return measured((LEVELS + COVERAGE + POWER)[at])


def main() -> None:
    """Measure the cases that the page lacks, and those whose names contain a given word; write all rows."""
    known, cases = figures(), LEVELS + COVERAGE + POWER
    asked = [
        at
        for at, case in enumerate(cases)
        if case.name not in known or any(word in case.name for word in sys.argv[1:])
    ]
    with ProcessPoolExecutor(2) as executor:
        for at, share in zip(asked, executor.map(measured_at, asked), strict=True):
            known[cases[at].name] = share
            print(row(cases[at], share), flush=True)
    text = PAGE.read_text(encoding="utf-8")
    heads = {
        "levels": "| test | null data | share of p < .05 |",
        "coverage": "| interval | data | covered |",
        "power": "| planned for | data | share of p < .05 |",
    }
    for mark, some in (("levels", LEVELS), ("coverage", COVERAGE), ("power", POWER)):
        start, end = f"<!-- {mark} -->\n", f"<!-- end of {mark} -->"
        rows = [heads[mark], "|---|---|---:|", *(row(case, known[case.name]) for case in some)]
        text = text.split(start)[0] + start + "\n".join(rows) + "\n" + end + text.split(end)[1]
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
