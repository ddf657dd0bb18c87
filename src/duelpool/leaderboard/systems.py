"""The leaderboards of a campaign's systems, and files of the votes between them."""

import csv
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from duelpool.campaign import Campaign
from duelpool.campaign.views.system_votes import votes_of
from duelpool.evaluation.systems import USUAL_BOARD, BoardOptions, SystemBoard, boards_of
from duelpool.files import SystemVote, write_lines
from duelpool.files.source import written_whole
from duelpool.files.spreadsheets import harmless
from duelpool.files.votes import VoteOutcome

ARENA_WINNERS: Mapping[VoteOutcome, str] = {
    "a": "model_a",
    "b": "model_b",
    "tie": "tie",
    "bothbad": "tie (bothbad)",
}
"""How the arena's files name the outcomes."""


def boards(campaign: Campaign, options: BoardOptions = USUAL_BOARD) -> list[SystemBoard]:
    """Return the leaderboards of a campaign's systems: one a criterion, of people and of models where both judged."""
    found = votes_of(campaign)
    return boards_of(found.votes, replace(options, planned=found.planned), found.systems)


# ---- files


def arena_rows(votes: Sequence[SystemVote]) -> list[dict[str, str]]:
    """Return the votes that judges gave in the columns of the arena's files, a mapping a vote."""
    texts = any(vote.question_text for vote in votes)
    return [
        {
            "question_id": vote.question,
            "model_a": vote.a,
            "model_b": vote.b,
            "winner": ARENA_WINNERS[vote.outcome],
            "judge": vote.judge,
            "judge_type": "model" if vote.model else "human",
            "criterion": vote.criterion,
            **(
                {"question": vote.question_text, "answer_a": vote.answer_a, "answer_b": vote.answer_b}
                if texts
                else {}
            ),
        }
        for vote in votes
        if not vote.same_answer
    ]


def training_rows(votes: Sequence[SystemVote]) -> list[dict[str, Any]]:
    """Return a preference pair for every two answers of which one won more votes: `prompt, chosen, rejected`."""
    won: dict[tuple[str, str, str], list[float]] = {}
    prompts: dict[str, str] = {}
    for vote in votes:
        if vote.same_answer or not (vote.answer_a and vote.answer_b) or vote.answer_a == vote.answer_b:
            continue
        turned = vote.answer_a > vote.answer_b
        answers = (vote.answer_b, vote.answer_a) if turned else (vote.answer_a, vote.answer_b)
        share = 1 - vote.share if turned else vote.share
        prompts[vote.question] = vote.question_text or vote.question
        counts = won.setdefault((vote.question, *answers), [0.0, 0.0, 0.0])
        counts[0] += share * vote.weight
        counts[1] += (1 - share) * vote.weight
        counts[2] += 1
    rows = []
    for (question, one, other), (first, second, count) in won.items():
        if first == second:
            continue
        chosen, rejected = (one, other) if first > second else (other, one)
        margin = abs(first - second) / (first + second)
        rows.append(
            {
                "prompt": prompts[question],
                "chosen": chosen,
                "rejected": rejected,
                "question_id": question,
                "votes": int(count),
                "margin": margin,
            }
        )
    return rows


def write_table(path: str | os.PathLike[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as the file's name says: .csv, .tsv, .parquet, or else JSON lines (.gz packs all but Parquet)."""
    name = os.fspath(path)
    ending = name.removesuffix(".gz").rsplit(".", 1)[-1].lower()
    if ending == "parquet":
        with written_whole(path) as partial:
            pl.DataFrame(list(rows)).write_parquet(partial)
    elif ending in ("csv", "tsv"):
        write_lines(path, _delimited(rows, "\t" if ending == "tsv" else ","))
    else:
        write_lines(path, (json.dumps(row, ensure_ascii=False) for row in rows))


def _delimited(rows: Sequence[Mapping[str, Any]], separator: str) -> Iterator[str]:
    for values in ([*rows[0]] if rows else [], *(row.values() for row in rows)):
        line = io.StringIO()
        csv.writer(line, delimiter=separator, lineterminator="").writerow([harmless(each) for each in values])
        yield line.getvalue()
