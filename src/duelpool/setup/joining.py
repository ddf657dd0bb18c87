"""A system, or a new version of one, joins a campaign of answers; the votes so far stay."""

from collections.abc import Iterable
from dataclasses import dataclass

from duelpool.campaign import Campaign
from duelpool.campaign.imports.votes import CampaignAnswers, campaign_answers
from duelpool.campaign.log import systems
from duelpool.errors import BadParameter
from duelpool.files import Answers
from duelpool.files.answers import SystemAnswer, item_id
from duelpool.leaderboard.scoring import packed
from duelpool.records import Passage, Pool
from duelpool.store import Reading, Writing, holdings


@dataclass(frozen=True, slots=True)
class Joined:
    """What joins: the answers of each new system, those that are the same as a known one, and those left out."""

    systems: dict[str, int]
    identical: int
    unknown: tuple[str, ...] = ()  # questions that the campaign doesn't have


def join(campaign: Campaign, answers: Answers, *, dry_run: bool = False) -> Joined:
    """Let the systems of a file join a campaign, in one transaction; refuse one that has answered differently."""
    if not campaign.live.goal.of_systems:
        raise BadParameter(
            f"The goal of the campaign is '{campaign.live.goal}': systems don't compete in it.",
            remedy="A late run's items join with `duelpool challenge`.",
        )

    def find(tx: Reading) -> tuple[list[SystemAnswer], list[Pool], Joined]:
        known = campaign_answers(tx)
        rows, unknown = _new_rows(answers, known)
        pools, renamed = _pools(tx, rows)
        had: dict[str, int] = {}
        for row in renamed:
            had[row.system] = had.get(row.system, 0) + 1
        return renamed, pools, Joined(had, sum(len(pool.twins) for pool in pools), unknown)

    def work(tx: Writing) -> Joined:
        rows, pools, joined = find(tx)
        holdings.add_passages(tx, [_passage(row) for row in rows])
        for pool in pools:
            holdings.add_pool(tx, pool)
        for system in joined.systems:
            systems.add_answers(tx, system, {row.question: row.item for row in rows if row.system == system})
        for run in packed(Answers(tuple(rows), answers.questions).runs):
            holdings.add_run(tx, run)
        return joined

    if dry_run:
        return campaign.read(find)[2]
    joined = campaign.write(work)
    for question in {row.question for row in answers.rows}:
        campaign.live.forget(question)
    return joined


def _passage(row: SystemAnswer) -> Passage:
    return row.passage


def _new_rows(answers: Answers, known: CampaignAnswers) -> tuple[list[SystemAnswer], tuple[str, ...]]:
    """Return the answers to the campaign's questions, by its ids, of systems that are new."""
    if old := [system for system in answers.systems if system in known.systems]:
        raise BadParameter(
            f"The campaign has a system '{old[0]}' already, and its answers stay as they are.",
            remedy="Give the new version a name of its own.",
        )
    questions = known.questions
    unknown: dict[str, None] = {}
    rows = []
    for row in answers.rows:
        text = " ".join(answers.questions[row.question].text.split())
        question = row.question if row.question in questions else known.by_text.get(text)
        if question is None:
            unknown[row.question] = None
        else:
            rows.append(SystemAnswer(question, row.system, row.item, row.text, row.sources))
    if not rows:
        raise BadParameter(
            "The file has no answer to a question of the campaign.",
            remedy="Use the same ids or texts of questions.",
        )
    return rows, tuple(unknown)


def _pools(tx: Reading, rows: Iterable[SystemAnswer]) -> tuple[list[Pool], list[SystemAnswer]]:
    """Return the items that are added to each question: an answer that is known is a duplicate of it."""
    held = holdings.items_by_topic(tx, sorted({row.question for row in rows}))
    taken = {question: {item.id: item.twin_of for item in items} for question, items in held.items()}
    pools: list[Pool] = []
    renamed: list[SystemAnswer] = []
    for row in rows:
        own = taken[row.question]
        first = item_id(row.question, row.text, row.sources)
        copy = 1
        while (item := item_id(row.question, row.text, row.sources, copy)) in own:
            copy += 1
        judged = own.get(first) or first
        if copy == 1:
            pools.append(Pool(row.question, (item,)))
            own[item] = None
        else:
            pools.append(Pool(row.question, (judged,), twins={judged: (item,)}))
            own[item] = judged
        renamed.append(SystemAnswer(row.question, row.system, item, row.text, row.sources))
    return pools, renamed
