"""A sheet for each participant: their scores by topic, beside the best, the median and the worst of all runs."""

from dataclasses import dataclass

import numpy as np

from duelpool.comparison import ScoreTable
from duelpool.errors import BadParameter
from duelpool.evaluation.result import Evaluation
from duelpool.frames import counted
from duelpool.report import Table
from duelpool.report.page import Chapter, Fact, html_page

ABOVE, BELOW = "above the median", "below the median"


@dataclass(frozen=True, slots=True)
class ScoreSheet:
    """One run's scores under each measure, as tables: a row a topic, with the best, median and worst of all runs.

    No other run is named.
    """

    run: str
    runs: int
    tables: dict[str, Table]
    means: dict[str, float]
    facts: tuple[str, ...]

    def page(self, title: str) -> str:
        """Return the sheet as a page of its own, which loads nothing."""
        facts = [Fact(f"{mean:.4f}", f"mean {name}") for name, mean in self.means.items()]
        facts.append(Fact(str(self.runs), "runs compared"))
        chapters = [
            Chapter(name, (words,), tables=(table,))
            for (name, table), words in zip(self.tables.items(), self.facts, strict=True)
        ]
        lead = "Scores by topic, beside the best, the median and the worst score of all runs. No other run is named."
        return html_page(f"{title}: {self.run}", lead, facts, chapters)


def score_sheets(evaluation: Evaluation) -> list[ScoreSheet]:
    """Return a sheet for each run of an evaluation."""
    if len(evaluation.runs) < 3:
        raise BadParameter(
            f"There are {len(evaluation.runs)} runs: the best and the worst would name the other one.",
            remedy="Give three runs or more.",
        )
    return [_sheet(evaluation, run) for run in evaluation.runs]


def _sheet(evaluation: Evaluation, run: str) -> ScoreSheet:
    tables, words, means = {}, [], {}
    for name, scores in evaluation.tables.items():
        tables[name] = _table(scores, run)
        means[name] = evaluation.mean(run, name)
        words.append(_words(scores, run))
    return ScoreSheet(run, len(evaluation.runs), tables, means, tuple(words))


def _table(scores: ScoreTable, run: str) -> Table:
    own = scores.row(run)
    rows = []
    for at, topic in enumerate(scores.topics):
        known = scores.values[:, at][~np.isnan(scores.values[:, at])]
        if not known.size:
            continue
        value = None if np.isnan(own[at]) else float(own[at])
        best, median, worst = float(known.max()), float(np.median(known)), float(known.min())
        rows.append((topic, value, best, median, worst, None if value is None else value - median))
    columns = ("topic", "yours", "best", "median", "worst", "yours - median")
    return Table(
        columns,
        tuple(rows),
        caption=f"{counted(len(rows), 'topic')}, {counted(len(scores.runs), 'run')}",
        cards=True,
    )


def _words(scores: ScoreTable, run: str) -> str:
    own = scores.row(run)
    medians = np.array(
        [np.nanmedian(column) if not np.isnan(column).all() else np.nan for column in scores.values.T]
    )
    best = np.array(
        [np.nanmax(column) if not np.isnan(column).all() else np.nan for column in scores.values.T]
    )
    above, below = int((own > medians).sum()), int((own < medians).sum())
    return (
        f"{counted(above, 'topic')} {ABOVE}, {below} {BELOW}; "
        f"the best of all runs in {counted(int((own == best).sum()), 'topic')}; "
        f"no score in {int(np.isnan(own).sum())}."
    )
