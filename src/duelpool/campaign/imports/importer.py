"""Importing judgments from files into a campaign's log: preferences in any form, or a whole log.

Everything is checked before anything is written. A small file is written in one transaction; a large one piece by
piece, and importing it again after a crash resumes there: nothing counts twice. Duplicates are replaced by the item
that is judged for them. A file without phases may get them: each run of consecutive rows of one topic is a phase,
and the strategy's own rule names the survivors.
"""

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Literal, TypeAlias

from duelpool.campaign.campaign import Campaign
from duelpool.campaign.imports.batch import (
    Batch,
    Changed,
    Part,
    Progress,
    as_line,
    depend_on_each_other,
    newcomers_of,
    seqs_of,
    write_batch,
    write_part,
)
from duelpool.campaign.imports.entries import Entry, chosen, entries_of, match_entries, read_ids
from duelpool.campaign.log.newcomers import own_strategy
from duelpool.campaign.log.replay import LogReplay, counted_lines
from duelpool.campaign.views.reading import read_topic
from duelpool.errors import BadFile, BadParameter, BadRecord
from duelpool.files import Notice, PreferenceForm
from duelpool.files.notices import Tally
from duelpool.files.source import read_source
from duelpool.records import Judgment, PhaseClosed
from duelpool.store import Reading, Writing, log
from duelpool.strategies.elimination import Elimination

Phases: TypeAlias = Literal["as-given", "blocks"]
"""Where phases come from: the file itself, or consecutive rows of one topic."""

AT_ONCE = 400  # lines of a transaction: others wait a few hundredths of a second for it
BREATH_SECONDS = 0.02  # between two transactions, so that others can write
_TRIES = 5


@dataclass(frozen=True, slots=True)
class ImportSummary:
    """What an import wrote."""

    judgments: int
    others: int
    topics: int
    closings: int
    notices: tuple[Notice, ...] = field(default=())


def import_file(
    campaign: Campaign,
    path: str | os.PathLike[str],
    *,
    form: PreferenceForm | None = None,
    rows: Sequence[tuple[int, int]] = (),
    phases: Phases = "as-given",
    skip_unknown: bool = False,
    assessor: str = "",
    again: bool = False,
) -> ImportSummary:
    """Import a file's judgments into a campaign's log.

    `rows` are ranges of rows to import, from 1, both ends included; by default all. Unknown topics and items are
    refused with their line, or left out and counted with `skip_unknown`. `assessor` is the pseudonym of judgments
    that name none. A file that was imported before is refused, unless it is to count `again`.
    """
    source = read_source(path)
    batch = Batch.of(source, rows, again)
    tally = Tally()
    entries = list(chosen(source, entries_of(source, form, tally), rows))
    known = campaign.read(read_ids)
    entries = [
        entry if entry.judgment is None or entry.judgment.assessor or not assessor else _by(entry, assessor)
        for entry in match_entries(source, entries, known, skip_unknown, tally)
    ]
    if not entries:
        raise BadFile.at(
            source.name, None, "No line of the file belongs to this campaign.", "Check its topics and items."
        )
    _warn_of_missing_phases(campaign, entries, phases, tally)
    plan = _plan_and_write(campaign, batch, entries, phases)
    for topic in plan:
        campaign.live.forget(topic)
    written = [entry for part in plan.values() for entry in part.entries]
    written += [entry for entry in entries if entry.topic not in plan]  # by an earlier, interrupted import
    judgments = sum(entry.event == log.JUDGMENT for entry in written)
    closings = sum(entry.event == log.PHASE_CLOSED for entry in written)
    topics = len({entry.topic for entry in entries})
    return ImportSummary(judgments, len(written) - judgments, topics, closings, tally.notices)


def _plan_and_write(
    campaign: Campaign, batch: Batch, entries: Sequence[Entry], phases: Phases
) -> dict[str, Part]:
    """Plan an import and write it; plan again when a topic was judged in between."""
    written = campaign.read(batch.interrupted)
    if written:  # it was interrupted: complete topics are planned no more
        whole = {topic for topic, own in _by_topic(entries).items() if written.get(topic) == len(own)}
        entries = [entry for entry in entries if entry.topic not in whole]
    for _ in range(_TRIES):
        plan = campaign.read(lambda tx: _plan(tx, campaign, batch.file, entries, phases))
        if written is not None or sum(len(part.entries) for part in plan.values()) > AT_ONCE:
            return _write_pieces(campaign, batch, entries, phases, plan)
        with suppress(Changed):
            campaign.write(partial(write_batch, batch=batch, plan=plan))
            return plan
    raise Changed("The campaign was judged during every try.", remedy="Pause it, or try again.")


def _write_pieces(
    campaign: Campaign, batch: Batch, entries: Sequence[Entry], phases: Phases, plan: dict[str, Part]
) -> dict[str, Part]:
    """Write a large file in pieces, each with its progress; others may write between two pieces."""
    lines = sum(len(part.entries) for part in plan.values())
    progress = campaign.write(lambda tx: batch.enter(tx, lines, done=False))
    by_topic = _by_topic(entries)
    for topic in sorted(plan):
        own, written = by_topic[topic], progress.written.get(topic, 0)
        if phases == "blocks" or depend_on_each_other(own):
            if not written:
                plan[topic] = _write_whole_topic(campaign, topic, own, phases, progress)
            continue
        for start in range(written, len(own), AT_ONCE):
            piece = Part(0, tuple(own[start : start + AT_ONCE]))

            def work(tx: Writing, topic: str, start: int, piece: Part) -> None:
                write_part(tx, topic=topic, part=piece, anywhere=True)
                progress.advance(tx, topic, start, start + len(piece.entries))

            began = time.monotonic()
            campaign.write(partial(work, topic=topic, start=start, piece=piece))
            time.sleep(min(BREATH_SECONDS, time.monotonic() - began))
    campaign.write(progress.finish)
    return plan


def _write_whole_topic(
    campaign: Campaign, topic: str, own: Sequence[Entry], phases: Phases, progress: Progress
) -> Part:
    """Write a topic whose lines depend on each other at once; plan it again when it was judged meanwhile."""
    for _ in range(_TRIES):
        part = campaign.read(lambda tx: _plan(tx, campaign, progress.batch.file, own, phases)[topic])

        def work(tx: Writing, part: Part) -> None:
            write_part(tx, topic=topic, part=part)
            progress.advance(tx, topic, 0, len(own))

        with suppress(Changed):
            campaign.write(partial(work, part=part))
            return part
    raise Changed(
        f"Topic '{topic}' was judged during every try.",
        remedy="Pause the campaign and import again: the import continues.",
    )


def _by_topic(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    by_topic: dict[str, list[Entry]] = {}
    for entry in entries:
        by_topic.setdefault(entry.topic, []).append(entry)
    return by_topic


def _by(entry: Entry, assessor: str) -> Entry:
    return (
        entry
        if entry.judgment is None
        else replace(entry, judgment=replace(entry.judgment, assessor=assessor))
    )


def _warn_of_missing_phases(
    campaign: Campaign, entries: Sequence[Entry], phases: Phases, tally: Tally
) -> None:
    """Count the judgments without a phase for strategies that score phase by phase."""
    by_phase = campaign.read(
        lambda tx: {
            topic: not campaign.live.new_strategy(tx, topic).pools_judgments
            for topic in {entry.topic for entry in entries}
        }
    )
    if phases == "blocks":
        if any(entry.judgment is None for entry in entries):
            raise BadParameter(
                "The file is a log that closes its phases itself.", remedy="Leave out --phases blocks."
            )
        return
    lost = sum(
        entry.judgment is not None and not entry.judgment.phase and by_phase[entry.topic] for entry in entries
    )
    tally.add("judgments without a phase, which this strategy can't score (see --phases blocks)", None, lost)


# ---- planning


def _plan(
    tx: Reading, campaign: Campaign, file: str, entries: Sequence[Entry], phases: Phases
) -> dict[str, Part]:
    """Try the import on the topics' strategies, so that nothing is written that could not be replayed."""
    plan: dict[str, Part] = {}
    for topic, own in _by_topic(entries).items():
        read = read_topic(tx, campaign, topic)
        if phases == "blocks":
            strategy = own_strategy(read.strategy)
            if not isinstance(strategy, Elimination):
                raise BadParameter(
                    f"The strategy '{strategy.name}' has no phases, so blocks can't become phases.",
                    remedy="Leave out --phases; every judgment counts.",
                )
            planned = _in_phases(strategy, own)
        else:
            planned = own
            _refuse_inconsistent_lines(tx, campaign, file, topic, own)
        plan[topic] = Part(read.position, tuple(planned))
    return plan


def _refuse_inconsistent_lines(
    tx: Reading, campaign: Campaign, file: str, topic: str, entries: Sequence[Entry]
) -> None:
    """Replay the log as it would be; refuse a closing or a rewind that the strategy can't follow."""
    if not any(entry.event in (log.PHASE_CLOSED, log.REWIND) for entry in entries):
        return
    lines = list(log.read_lines(tx, topic))
    after = lines[-1].seq if lines else 0
    seqs = seqs_of(entries, after)
    lines += [as_line(entry, after + at, seqs) for at, entry in enumerate(entries, 1)]
    replay = LogReplay(counted_lines(lines))
    strategy = campaign.live.new_strategy(tx, topic, newcomers_of(entries))
    for line in lines:
        try:
            for event in replay.feed(line):
                strategy.tell(event)
        except (BadRecord, KeyError) as error:
            problem = error.problem if isinstance(error, BadRecord) else f"There is no item {error}."
            raise BadFile.at(
                file,
                entries[line.seq - after - 1].line if line.seq > after else None,
                f"This line doesn't follow from the campaign's log. {problem}",
                "Import a whole log into a campaign with the same pools, strategy and seed, and without judgments.",
            ) from None


def _in_phases(strategy: Elimination, entries: Sequence[Entry]) -> list[Entry]:
    """Return a topic's entries with a phase for each block, and a closing after each block."""
    planned: list[Entry] = []
    for _, group in groupby(entries, key=lambda entry: entry.block):
        block = list(group)
        phase = strategy.phase
        if not phase:  # all phases are closed: further judgments only count to the cap
            planned += block
            continue
        before = {closing.phase for closing in strategy.closed}
        early = False
        tagged: list[Entry] = []
        for entry in block:
            if entry.judgment is None:
                continue
            early = strategy.phase != phase
            judgment = replace(entry.judgment, phase=phase)
            strategy.tell(judgment)
            tagged.append(replace(entry, judgment=judgment))
        planned += tagged
        if strategy.phase == phase:
            strategy.tell(PhaseClosed(strategy.topic, phase, strategy.survivors()))
        elif early:
            # The strategy's own pairings were judged before the block ended: the whole block decides.
            survivors = _half_won([entry.judgment for entry in tagged if entry.judgment], strategy, phase)
            strategy.tell(PhaseClosed(strategy.topic, phase, survivors))
        planned += [
            Entry(closing.topic, log.PHASE_CLOSED, phase=closing.phase, survivors=closing.survivors)
            for closing in strategy.closed
            if closing.phase not in before
        ]
    return planned


def _half_won(judgments: Sequence[Judgment], strategy: Elimination, phase: str) -> tuple[str, ...]:
    """Return the items that won at least half of their games in a block; in a final, all."""
    closed = {closing.phase: closing.survivors for closing in strategy.closed}
    if phase.startswith("final"):
        return closed[phase]
    wins: dict[str, float] = {}
    games: dict[str, int] = {}
    for judgment in judgments:
        for item, won in ((judgment.left, judgment.effect.left), (judgment.right, judgment.effect.right)):
            if item is not None:
                wins[item] = wins.get(item, 0.0) + won
                games[item] = games.get(item, 0) + 1
    survivors = tuple(item for item in games if 2 * wins[item] >= games[item])
    return survivors or closed[phase]
