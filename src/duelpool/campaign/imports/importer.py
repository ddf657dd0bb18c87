"""Importing judgments from files into a campaign's log: preferences in any form, or a whole log.

Everything is checked before anything is written. A small file is written in one transaction; a large one piece by
piece, and importing it again after a crash resumes there: nothing counts twice. Duplicates are replaced by the item
that is judged for them. A file without phases may get them (see `phases`), and the strategy's own rule names the
survivors. A phase that closes with fewer judgments than its rule needs is refused, whoever closes it.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from duelpool.campaign.imports.entries import (
    CampaignIds,
    Entry,
    chosen,
    entries_of,
    line_of,
    match_entries,
    read_ids,
)
from duelpool.campaign.imports.overlaps import counting_again, refuse_overlap, times_in_campaign
from duelpool.campaign.imports.phases import BadPhase, PhaseReader, PhaseRow
from duelpool.campaign.log.newcomers import CHALLENGE, own_strategy
from duelpool.campaign.log.replay import LogReplay, TopicState, counted_lines, usable
from duelpool.campaign.views.reading import read_topic
from duelpool.errors import BadFile, BadParameter, BadRecord
from duelpool.files import Notice, PreferenceForm
from duelpool.files.notices import Tally
from duelpool.files.source import Source, read_source
from duelpool.records import Judgment, PhaseClosed
from duelpool.store import Reading, Writing, log
from duelpool.strategies.base import InPhases, Shortfall, Strategy
from duelpool.strategies.elimination import Elimination
from duelpool.strategies.phases import short_phase

Phases: TypeAlias = Literal["as-given", "blocks"]
"""Where phases come from: the file itself, or the order of its rows."""

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


@dataclass(frozen=True, slots=True)
class _HowToPlan:
    """The file, the ids that the campaign knows, and where phases come from."""

    source: Source
    known: CampaignIds
    phases: Phases
    skip_finals: int

    def duplicates(self, topic: str) -> dict[str, int]:
        """Return how many duplicates the items of a topic have, where they have any."""
        canonical = self.known.canonical[topic].items()
        return dict(Counter(judged for item, judged in canonical if item != judged))


def import_file(
    campaign: Campaign,
    path: str | os.PathLike[str],
    *,
    form: PreferenceForm | None = None,
    rows: Sequence[tuple[int, int]] = (),
    phases: Phases = "as-given",
    skip_finals: int = 0,
    skip_unknown: bool = False,
    assessor: str = "",
    again: bool = False,
) -> ImportSummary:
    """Import a file's judgments into a campaign's log.

    `rows` are ranges of rows to import in this order, from 1, both ends included; by default all. Unknown topics and
    items are refused with their line, or left out and counted with `skip_unknown`. `assessor` is the pseudonym of
    judgments that name none. A file that was imported before is refused, unless it is to count `again`. With
    `phases="blocks"` the first `skip_finals` finals of each topic are left out, so that a later one takes their place.
    """
    if skip_finals < 0 or (skip_finals and phases != "blocks"):
        raise BadParameter(
            "Finals can be left out only where the rows are read as phases.",
            remedy="Give --phases blocks, and --skip-finals 1 or more.",
        )
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
    entries = _without_overlap(campaign, batch, entries, source)
    _warn_of_missing_phases(campaign, entries, phases, tally)
    how = _HowToPlan(source, known, phases, skip_finals)
    plan = _plan_and_write(campaign, batch, entries, how)
    if skip_finals:
        planned = sum(entry.judgment is not None for part in plan.values() for entry in part.entries)
        given = sum(entry.judgment is not None for entry in entries if entry.topic in plan)
        tally.add("judgments of finals left out", None, given - planned)
    for topic in plan:
        campaign.live.forget(topic)
    written = [entry for part in plan.values() for entry in part.entries]
    written += [entry for entry in entries if entry.topic not in plan]  # by an earlier, interrupted import
    judgments = sum(entry.event == log.JUDGMENT for entry in written)
    closings = sum(entry.event == log.PHASE_CLOSED for entry in written)
    topics = len({entry.topic for entry in entries})
    return ImportSummary(judgments, len(written) - judgments, topics, closings, tally.notices)


def _without_overlap(campaign: Campaign, batch: Batch, entries: list[Entry], source: Source) -> list[Entry]:
    """Refuse judgments of a log that are in the campaign already, or let them count again."""
    times = campaign.read(lambda tx: times_in_campaign(tx, entries))
    if batch.again:
        return counting_again(entries, times)
    written = campaign.read(batch.interrupted) or {}
    rest = [
        entry for topic, own in _by_topic(entries).items() for entry in own[written.get(topic, 0) :]
    ]  # without what the interrupted import of this very file wrote
    campaign.read(lambda tx: refuse_overlap(tx, source, rest, times))
    return entries


def _plan_and_write(
    campaign: Campaign, batch: Batch, entries: Sequence[Entry], how: _HowToPlan
) -> dict[str, Part]:
    """Plan an import and write it; plan again when a topic was judged in between."""
    written = campaign.read(batch.interrupted)
    if written:  # it was interrupted: complete topics are planned no more
        whole = {topic for topic, own in _by_topic(entries).items() if written.get(topic) == len(own)}
        entries = [entry for entry in entries if entry.topic not in whole]
    for _ in range(_TRIES):
        plan = campaign.read(lambda tx: _plan(tx, campaign, entries, how))
        if written is not None or sum(len(part.entries) for part in plan.values()) > AT_ONCE:
            return _write_pieces(campaign, batch, entries, how, plan)
        with suppress(Changed):
            campaign.write(partial(write_batch, batch=batch, plan=plan))
            return plan
    raise Changed("The campaign was judged during every try.", remedy="Pause it, or try again.")


def _write_pieces(
    campaign: Campaign, batch: Batch, entries: Sequence[Entry], how: _HowToPlan, plan: dict[str, Part]
) -> dict[str, Part]:
    """Write a large file in pieces, each with its progress; others may write between two pieces."""
    lines = sum(len(part.entries) for part in plan.values())
    progress = campaign.write(lambda tx: batch.enter(tx, lines, done=False))
    by_topic = _by_topic(entries)
    for topic in sorted(plan):
        own, written = by_topic[topic], progress.written.get(topic, 0)
        if how.phases == "blocks" or depend_on_each_other(own):
            if not written:
                plan[topic] = _write_whole_topic(campaign, own, how, progress, plan[topic])
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
    campaign: Campaign, own: Sequence[Entry], how: _HowToPlan, progress: Progress, part: Part
) -> Part:
    """Write a topic whose lines depend on each other at once; plan it again when it was judged meanwhile."""
    topic = own[0].topic
    for _ in range(_TRIES):

        def work(tx: Writing, part: Part) -> None:
            write_part(tx, topic=topic, part=part)
            progress.advance(tx, topic, 0, len(own))

        with suppress(Changed):
            campaign.write(partial(work, part=part))
            return part
        part = campaign.read(lambda tx: _plan(tx, campaign, own, how)[topic])
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


def _plan(tx: Reading, campaign: Campaign, entries: Sequence[Entry], how: _HowToPlan) -> dict[str, Part]:
    """Try the import on the topics' strategies, so that nothing is written that could not be replayed."""
    plan: dict[str, Part] = {}
    for topic, own in _by_topic(entries).items():
        read = read_topic(tx, campaign, topic)
        planned = _in_phases(own_strategy(read.strategy), own, how) if how.phases == "blocks" else own
        _refuse_inconsistent_lines(tx, campaign, topic, planned, how)
        plan[topic] = Part(read.position, tuple(planned))
    return plan


def _refuse_inconsistent_lines(
    tx: Reading, campaign: Campaign, topic: str, entries: Sequence[Entry], how: _HowToPlan
) -> None:
    """Replay the log as it would be; refuse a closing or a rewind that the strategy can't follow."""
    if not any(entry.event in (log.PHASE_CLOSED, log.REWIND) for entry in entries):
        return
    lines = list(log.read_lines(tx, topic))
    after = lines[-1].seq if lines else 0
    seqs = seqs_of(entries, after)
    lines += [as_line(entry, after + at, seqs) for at, entry in enumerate(entries, 1)]
    newcomers = newcomers_of(entries)

    def place(line: log.Line) -> int | None:
        return line_of(how.source, entries[line.seq - after - 1]) if line.seq > after else None

    replay = LogReplay(counted_lines(lines))
    strategy = campaign.live.new_strategy(tx, topic, newcomers)
    for line in lines:
        try:
            for event in replay.feed(line):
                _refuse_impossible_closing(strategy, event)
                strategy.tell(event)
        except (BadRecord, KeyError) as error:
            problem = error.problem if isinstance(error, BadRecord) else f"There is no item {error}."
            raise BadFile.at(
                how.source.name,
                place(line),
                f"This line doesn't follow from the campaign's log. {problem}",
                "Import a whole log into a campaign with the same pools, strategy and seed, and without judgments.",
            ) from None
    make = partial(campaign.live.new_strategy, tx, topic, newcomers)
    for line, short in _short_closings(make, lines, how.duplicates(topic)):
        if line.seq > after:
            raise BadFile.at(
                how.source.name,
                place(line),
                short_phase(topic, line.phase, short),
                "Import the whole log of the topic, or remove this line.",
            )


def _refuse_impossible_closing(strategy: Strategy, event: Judgment | PhaseClosed) -> None:
    """Refuse the closing of a phase that has not begun, and survivors that had left before."""
    own = own_strategy(strategy)
    if not isinstance(event, PhaseClosed) or own.pools_judgments or event.phase.startswith(CHALLENGE):
        return
    phase = getattr(own, "phase", "")
    if event.phase != phase and event.phase not in {closing.phase for closing in own.closed}:
        now = f"'{phase}' is open" if phase else "all phases are closed"
        raise BadRecord(f"It closes the phase '{event.phase}', and {now}.")
    if isinstance(own, Elimination) and event.phase == phase:
        for item in event.survivors:
            if item not in own.field:
                raise BadRecord(f"The item '{item}' can't survive '{phase}': it left before.")


def _short_closings(
    make: Callable[[], Strategy], lines: Sequence[log.Line], duplicates: Mapping[str, int]
) -> Iterator[tuple[log.Line, Shortfall]]:
    """Yield the closings of phases that lacked judgments at that moment, whatever was retracted later."""
    state = TopicState.new(make, lambda seq: [line for line in lines if line.seq <= seq])
    fed = 0
    for at, line in enumerate(lines):
        if line.event != log.PHASE_CLOSED:
            continue
        state.feed(lines[fed:at])
        fed = at
        strategy = state.strategy
        short = strategy.shortfall(line.phase, duplicates) if isinstance(strategy, InPhases) else None
        # A strategy that pools judgments goes on when some are retracted, and doesn't ask for them again.
        spare = len(state.counts.retracted) if strategy.pools_judgments else 0
        if short is not None and short.judged + spare < short.needed:
            yield line, short


def _in_phases(strategy: Strategy, entries: Sequence[Entry], how: _HowToPlan) -> list[Entry]:
    """Return a topic's entries with the phases that their order tells, and a closing after each phase."""
    if not isinstance(strategy, Elimination):
        raise BadParameter(
            f"The strategy '{strategy.name}' has no phases that rows could be read as.",
            remedy="Leave out --phases"
            + (
                "; every judgment counts."
                if strategy.pools_judgments
                else ", and import a log with its phases."
            ),
        )
    reader = PhaseReader(strategy, how.duplicates(strategy.topic), how.skip_finals)
    planned: list[Entry] = []
    for _, part in groupby(entries, key=lambda entry: entry.part):
        own = list(part)
        counts = [entry for entry in own if _counts(entry)]
        planned += [entry for entry in own if not _counts(entry)]
        try:
            phases = reader.read([_as_row(entry) for entry in counts])
        except BadPhase as error:
            line = line_of(how.source, counts[error.row])
            raise BadFile.at(how.source.name, line, error.problem, error.remedy) from None
        for phase in phases:
            rows = counts[phase.first : phase.end]
            if phase.judgments:
                planned += [replace(e, judgment=j) for e, j in zip(rows, phase.judgments, strict=True)]
            planned += [
                Entry(
                    closing.topic,
                    log.PHASE_CLOSED,
                    rows[-1].line,
                    phase=closing.phase,
                    survivors=closing.survivors,
                )
                for closing in phase.closings
            ]
    return planned


def _counts(entry: Entry) -> bool:
    """Whether an entry is a judgment that a strategy gets: no test pair, no repeated pair, no skip, no grade."""
    return usable(as_line(entry, 1, {}), counted_lines(()))


def _as_row(entry: Entry) -> PhaseRow:
    if entry.judgment is None:
        raise ValueError("only judgments have phases")
    return PhaseRow(entry.judgment, entry.block, frozenset(entry.given or entry.judgment.pair))
