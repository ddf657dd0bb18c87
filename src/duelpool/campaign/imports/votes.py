"""Votes between systems from elsewhere, as judgments of the campaign's answers."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlalchemy import select

from duelpool.errors import BadFile, known_names
from duelpool.files.collections import table_path
from duelpool.files.notices import Notice, Tally
from duelpool.files.source import Readable, Source, read_source, shown_name
from duelpool.files.tables import is_parquet
from duelpool.files.votes import SystemVote, is_votes, read_votes
from duelpool.store import Reading, holdings, schema

UNNAMED_MODEL = "model"
"""The assessor of a model's imported judgments that name none."""

_OUTCOMES = {"a": "left", "b": "right", "tie": "tie", "bothbad": "both-bad"}


@dataclass(frozen=True, slots=True)
class CampaignAnswers:
    """The item that each system gave to each question, and the questions by their texts."""

    items: Mapping[tuple[str, str], str]  # by question and system
    by_text: Mapping[str, str]

    @property
    def systems(self) -> set[str]:
        """The systems that compete."""
        return {system for _, system in self.items}

    @property
    def questions(self) -> set[str]:
        """The questions with an answer."""
        return {question for question, _ in self.items}


def campaign_answers(tx: Reading) -> CampaignAnswers:
    """Return the answers of a campaign in which systems compete."""
    columns = schema.answer.c
    rows = tx.connection.execute(
        select(columns.topic, columns.system, columns.item).where(columns.campaign == tx.campaign)
    )
    texts = {" ".join(topic.text.split()): topic.id for topic in holdings.topics(tx).values()}
    return CampaignAnswers({(row.topic, row.system): row.item for row in rows}, texts)


def look_for_votes(path: Readable) -> tuple[Readable, bool]:
    """Return a file that can be read again, and whether it has votes between systems."""
    given = path if is_parquet(path) else read_source(table_path(path))
    return given, is_votes(given)


@dataclass(frozen=True, slots=True)
class VotesAsJudgments:
    """Votes as JSON lines of judgments, which of their judges are models, and what was repaired or left out."""

    source: Source
    models: frozenset[str]
    notices: tuple[Notice, ...]


def judgments_of_votes(
    given: Readable,
    known: CampaignAnswers,
    *,
    skip_unknown: bool = False,
    assessor: str = "",
    by_model: bool = False,
) -> VotesAsJudgments:
    """Return votes as JSON lines of judgments, on the lines where the file has them.

    A question or a system that the campaign doesn't have is refused with its line, or left out and counted. `assessor`
    and `by_model` say who judged, and whether it is a model, where the file doesn't.
    """
    votes = read_votes(given, judge=assessor, model=by_model)
    name = given.name if isinstance(given, Source) else shown_name(given)
    tally = Tally()
    lines: list[str] = []
    kinds: dict[str, bool] = {}
    for vote, row in _rows(votes.votes, known, name, tally, skip_unknown):
        judge = str(row["assessor"])
        if judge and kinds.setdefault(judge, vote.model) != vote.model:
            raise BadFile.at(
                *(name, vote.line, f"The judge '{judge}' is a person in one row and a model in another."),
                "Give each a name of its own.",
            )
        if vote.line is not None and vote.line > len(lines) + 1:
            lines += [""] * (vote.line - len(lines) - 1)
        lines.append(json.dumps(row, ensure_ascii=False))
    if not any(lines):
        raise BadFile.at(
            name, None, "No vote of the file belongs to this campaign.", "Check its questions and systems."
        )
    return VotesAsJudgments(
        Source(name, ("\n".join(lines) + "\n").encode()),
        frozenset(judge for judge, model in kinds.items() if model),
        (*votes.notices, *tally.notices),
    )


def _rows(
    votes: tuple[SystemVote, ...], known: CampaignAnswers, name: str, tally: Tally, skip_unknown: bool
) -> Iterator[tuple[SystemVote, dict[str, object]]]:
    questions, systems = known.questions, known.systems
    for vote in votes:
        question = vote.question
        if question not in questions:
            texts = (vote.question, vote.question_text)
            question = next(
                (found for text in texts if (found := known.by_text.get(" ".join(text.split())))), ""
            )
        unknown = _unknown(vote, question, known, systems)
        if unknown is not None:
            if not skip_unknown:
                raise BadFile.at(name, vote.line, *unknown)
            tally.add("votes on questions or systems that the campaign doesn't have, left out", vote.line)
            continue
        yield (
            vote,
            {
                "topic": question,
                "left": known.items[question, vote.a],
                "right": known.items[question, vote.b],
                "outcome": _OUTCOMES[vote.outcome],
                "assessor": vote.judge or (UNNAMED_MODEL if vote.model else ""),
                "criterion": vote.criterion,
            },
        )


def _unknown(
    vote: SystemVote, question: str, known: CampaignAnswers, systems: set[str]
) -> tuple[str, str] | None:
    """Return what of a vote the campaign doesn't know, and the remedy."""
    skip = "Or leave such votes out: --skip-unknown."
    if not question:
        if not vote.question and not vote.question_text:
            return "The vote names no question.", "Name it: question_id, prompt or question."
        asked = vote.question or vote.question_text
        return f"The campaign has no question '{asked[:60]}'.", f"Give its id or its text. {skip}"
    for system in (vote.a, vote.b):
        if (question, system) not in known.items:
            if system in systems:
                return f"'{system}' has no answer to question '{question}'.", f"Add its answer. {skip}"
            return f"The campaign has no system '{system}'.", f"{known_names(system, systems)} {skip}"
    return None
