"""Standard errors that the pages of strategies state are those of their shares and trials."""

import math
import re
from pathlib import Path

PAGES = sorted((Path(__file__).parents[2] / "docs" / "strategies").glob("*.md"))


def stated_shares(text: str) -> list[tuple[str, float, float, int, int]]:
    """Return each stated share as its line, share, error, fewest and most trials."""
    found = []
    for line in text.splitlines():
        again = re.match(r"\| measured again, ([\d,]+)(?: to ([\d,]+))? trials", line)
        if again:
            fewest = int(again[1].replace(",", ""))
            most = int((again[2] or again[1]).replace(",", ""))
            for share, error in re.findall(r"(\d+) ± ([\d.]+)", line):
                found.append((line, float(share) / 1000, float(error) / 1000, fewest, most))
        row = re.search(r"\| (\.\d+|1\.000) ± (\.\d+) \| ([\d,]+) \|", line)
        if row and not line.startswith("| top"):  # a recall of several items has another error
            trials = int(row[3].replace(",", ""))
            found.append((line, float(row[1]), float(row[2]), trials, trials))
    return found


def test_standard_errors_follow_from_share_and_trials() -> None:
    stated = [each for page in PAGES for each in stated_shares(page.read_text(encoding="utf-8"))]
    assert len(stated) > 40
    for line, share, error, fewest, most in stated:
        highest, lowest = (math.sqrt(share * (1 - share) / trials) for trials in (fewest, most))
        rounding = 0.5 * 10.0 ** -len(str(error).partition(".")[2]) + 1e-9
        near = 0.0011  # the share itself is rounded
        assert lowest - rounding - near <= error <= highest + rounding + near, (line, highest)
