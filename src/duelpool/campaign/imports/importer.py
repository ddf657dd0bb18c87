"""Importing judgments from files into a campaign's log: preferences in any form, or a whole log.

Everything is checked before anything is written. A small file is written in one transaction; a large one piece by
piece, and importing it again after a crash resumes there: nothing counts twice. Duplicates are replaced by the item
that is judged for them. A file without phases may get them (see `phases`), and the strategy's own rule names the
survivors. A phase that closes with fewer judgments than its rule needs is refused, whoever closes it.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, groupby, islice
from typing import Literal, TypeAlias

from duelpool.campaign.campaign import Campaign
from duelpool.campaign.imports.batch import (
    Batch,
    Changed,
    Part,
    Progress,
    as_line,
    newcomers_of,
    seqs_of,
    write_batch,
    write_part,
)
from duelpool.campaign.imports.entries import CampaignIds, Entry, line_of, read_ids
from duelpool.campaign.imports.overlaps import refuse_overlap
from duelpool.campaign.imports.phases import BadPhase, PhaseReader, PhaseRow
from duelpool.campaign.imports.reading import FileRows, read_rows
from duelpool.campaign.imports.rows import AT, Row, TopicRows, row_of
from duelpool.campaign.imports.votes import (
    UNNAMED_MODEL,
    campaign_answers,
    judgments_of_votes,
    look_for_votes,
)
from duelpool.campaign.log.newcomers import CHALLENGE, own_strategy
from duelpool.campaign.log.replay import LogReplay, TopicState, counted_lines, usable
from duelpool.campaign.views.reading import read_topic
from duelpool.deciders import part_class
from duelpool.errors import BadFile, BadParameter, BadRecord
from duelpool.files import Notice, PreferenceForm
from duelpool.files.notices import Tally
from duelpool.files.source import Readable, Source
from duelpool.records import Judgment, PhaseClosed
from duelpool.store import Reading, Writing, holdings, imports, log
from duelpool.strategies.base import InPhases, Shortfall, Strategy
from duelpool.strategies.elimination import Elimination
from duelpool.strategies.phases import short_phase

Phases: TypeAlias = Literal["as-given", "blocks"]
"""Where phases come from: the file itself, or the order of its rows."""

AT_ONCE = 2000  # lines of a transaction: others wait about a tenth of a second for it
BREATH_SECONDS = 0.02  # between two transactions, so that others can write
_TRIES = 5
_ASSESSOR = AT["assessor"]


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
    path: Readable,
    *,
    form: PreferenceForm | None = None,
    rows: Sequence[tuple[int, int]] = (),
    phases: Phases = "as-given",
    skip_finals: int = 0,
    skip_unknown: bool = False,
    assessor: str = "",
    by_model: bool = False,
    again: bool = False,
) -> ImportSummary:
    """Import a file's judgments into a campaign's log.

    `rows` are ranges of rows to import in this order, from 1, both ends included; by default all. Unknown topics and
    items are refused with their line, or left out and counted with `skip_unknown`. `assessor` is the pseudonym of
    judgments that name none, and `by_model` says that the judges are models, where the file doesn't. Where systems
    compete, a file of votes between systems is one of judgments between their answers. A file that was imported
    before is refused, unless it is to count `again`. With `phases="blocks"` the first `skip_finals` finals of each
    topic are left out, so that a later one takes their place.
    """
    if skip_finals < 0 or (skip_finals and phases != "blocks"):
        raise BadParameter(
            "Finals can be left out only where the rows are read as phases.",
            remedy="Give --phases blocks, and --skip-finals 1 or more.",
        )
    tally = Tally()
    models: frozenset[str] | None = None
    if by_model and not assessor:
        assessor = UNNAMED_MODEL
    if campaign.live.goal.of_systems and form is None:
        path, has_votes = look_for_votes(path)
        if has_votes:
            votes = judgments_of_votes(
                path,
                campaign.read(campaign_answers),
                skip_unknown=skip_unknown,
                assessor=assessor,
                by_model=by_model,
            )
            path, models = votes.source, votes.models
            for notice in votes.notices:
                tally.add(notice.what, notice.first_line, notice.count)
    known = campaign.read(lambda tx: read_ids(tx, campaign.live.goal))
    file = read_rows(path, known, tally, form=form, rows=rows, skip_unknown=skip_unknown, assessor=assessor)
    if models is None:
        models = _judges_of(file) if by_model else frozenset()
    if models:
        known_judges = campaign.read(holdings.assessors)
        before = [name for name in models if name in known_judges and known_judges[name].kind == "imported"]
        tally.add("judges of earlier imports, which are models from now on", None, len(before))
    batch = Batch(file.source.name, file.digest, again, models)
    if not file.topics:
        raise BadFile.at(
            file.source.name,
            None,
            "No line of the file belongs to this campaign.",
            "Check its topics and items.",
        )
    written = campaign.read(batch.interrupted)
    if not again:
        campaign.read(lambda tx: refuse_overlap(tx, file, written or {}))
    _warn_of_missing_phases(campaign, file.topics, phases, tally)
    how = _HowToPlan(file.source, known, phases, skip_finals)
    plan = _plan_and_write(campaign, batch, file, how, written)
    if skip_finals:
        given = sum(file.topics[topic].judgments for topic in plan)
        tally.add(
            "judgments of finals left out", None, given - sum(part.rows.judgments for part in plan.values())
        )
    for topic in plan:
        campaign.live.forget(topic)
    lines = file.topics | {topic: part.rows for topic, part in plan.items()}
    judgments = sum(own.judgments for own in lines.values())
    others = sum(map(len, lines.values())) - judgments
    closings = sum(own.closings for own in lines.values())
    return ImportSummary(judgments, others, len(file.topics), closings, tally.notices)


def _judges_of(file: FileRows) -> frozenset[str]:
    """Return the assessors that a file names."""
    return frozenset(row[_ASSESSOR] for rows in file.topics.values() for row in rows if row[_ASSESSOR])


def _plan_and_write(
    campaign: Campaign, batch: Batch, file: FileRows, how: _HowToPlan, written: Mapping[str, int] | None
) -> dict[str, Part]:
    """Plan an import and write it; plan again when a topic was judged in between."""
    topics = {  # where it was interrupted, complete topics are planned no more
        topic: own for topic, own in file.topics.items() if not written or written.get(topic) != len(own)
    }
    for _ in range(_TRIES):
        plan = campaign.read(lambda tx: _plan(tx, campaign, topics, how))
        if written is not None or sum(len(part.rows) for part in plan.values()) > AT_ONCE:
            return _write_pieces(campaign, batch, topics, how, plan)
        with suppress(Changed):
            campaign.write(partial(write_batch, batch=batch, plan=plan))
            return plan
    raise Changed("The campaign was judged during every try.", remedy="Pause it, or try again.")


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some rows of a topic, after those that are written already."""

    topic: str
    start: int
    rows: Sequence[Row]


def _write_pieces(
    campaign: Campaign,
    batch: Batch,
    topics: Mapping[str, TopicRows],
    how: _HowToPlan,
    plan: dict[str, Part],
) -> dict[str, Part]:
    """Write a large file in pieces, each with its progress; others may write between two pieces."""
    lines = sum(len(part.rows) for part in plan.values())
    progress = campaign.write(lambda tx: batch.enter(tx, lines, done=False))
    taken = imports.Taken()
    together: list[_Piece] = []  # topics that are written in one transaction, for they are short
    for topic in sorted(plan):
        own, written = topics[topic], progress.written.get(topic, 0)
        if how.phases == "blocks" or own.depend:
            if not written:
                plan[topic] = _write_whole_topic(campaign, topic, own, how, progress, plan[topic])
            continue
        rest = own.after(written)
        if len(own) - written > AT_ONCE:
            for start in range(written, len(own), AT_ONCE):
                piece = _Piece(topic, start, list(islice(rest, AT_ONCE)))
                _write_together(campaign, progress, [piece], taken)
        elif len(own) > written:
            if sum(len(piece.rows) for piece in together) + len(own) - written > AT_ONCE:
                _write_together(campaign, progress, together, taken)
                together = []
            together.append(_Piece(topic, written, list(rest)))
    if together:
        _write_together(campaign, progress, together, taken)
    campaign.write(progress.finish)
    return plan


def _write_together(
    campaign: Campaign, progress: Progress, pieces: Sequence[_Piece], taken: imports.Taken
) -> None:
    """Write some pieces in one transaction, and let others write after it."""
    tries = count()

    def work(tx: Writing) -> None:
        if next(tries):  # what the last try has taken was undone
            taken.forget()
        for piece in pieces:
            write_part(tx, progress.batch, piece.topic, piece.rows, taken=taken)
            progress.advance(tx, piece.topic, piece.start, piece.start + len(piece.rows))

    began = time.monotonic()
    campaign.write(work)
    time.sleep(min(BREATH_SECONDS, time.monotonic() - began))


def _write_whole_topic(  # noqa: PLR0917
    campaign: Campaign, topic: str, own: TopicRows, how: _HowToPlan, progress: Progress, part: Part
) -> Part:
    """Write a topic whose lines depend on each other at once; plan it again when it was judged meanwhile."""
    for _ in range(_TRIES):

        def work(tx: Writing, part: Part) -> None:
            write_part(tx, progress.batch, topic, list(part.rows), after=part.after)
            progress.advance(tx, topic, 0, len(own))

        with suppress(Changed):
            campaign.write(partial(work, part=part))
            return part
        part = campaign.read(lambda tx: _plan(tx, campaign, {topic: own}, how)[topic])
    raise Changed(
        f"Topic '{topic}' was judged during every try.",
        remedy="Pause the campaign and import again: the import continues.",
    )


def _warn_of_missing_phases(
    campaign: Campaign, topics: Mapping[str, TopicRows], phases: Phases, tally: Tally
) -> None:
    """Count the judgments without a phase for strategies that score phase by phase."""
    if phases == "blocks":
        if any(own.judgments < len(own) for own in topics.values()):
            raise BadParameter(
                "The file is a log that closes its phases itself.", remedy="Leave out --phases blocks."
            )
        return
    lost = 0
    if not campaign.settings.plan:
        specs = campaign.read(holdings.topic_strategies)
        for topic, own in topics.items():
            part = part_class(campaign.live.goal, specs.get(topic) or campaign.settings.strategy)
            lost += 0 if part.pools_judgments else own.without_phase
    tally.add("judgments without a phase, which this strategy can't score (see --phases blocks)", None, lost)


# ---- planning


def _plan(
    tx: Reading, campaign: Campaign, topics: Mapping[str, TopicRows], how: _HowToPlan
) -> dict[str, Part]:
    """Try the import on the topics' strategies, so that nothing is written that could not be replayed."""
    plan: dict[str, Part] = {}
    heads = log.heads(tx)
    for topic, own in topics.items():
        planned = own
        if how.phases == "blocks":
            strategy = own_strategy(read_topic(tx, campaign, topic).strategy)
            entries = _in_phases(strategy, own.entries(topic), how)
            planned = TopicRows.of(map(row_of, entries))
        elif own.depend:
            entries = own.entries(topic)
        if planned.depend:
            _refuse_inconsistent_lines(tx, campaign, topic, entries, how)
        plan[topic] = Part(heads[topic], planned)
    return plan


def _refuse_inconsistent_lines(
    tx: Reading, campaign: Campaign, topic: str, entries: Sequence[Entry], how: _HowToPlan
) -> None:
    """Replay the log as it would be; refuse a closing or a rewind that the strategy can't follow."""
    if not any(entry.event in (log.PHASE_CLOSED, log.REWIND) for entry in entries):
        return
    lines = list(log.read_lines(tx, topic))
    after = lines[-1].seq if lines else 0
    seqs = seqs_of((entry.seq for entry in entries), after)
    lines += [as_line(entry, after + at, seqs) for at, entry in enumerate(entries, 1)]
    newcomers = newcomers_of(entries)

    def place(line: log.Line) -> int | None:
        return line_of(how.source, entries[line.seq - after - 1].line) if line.seq > after else None

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
            line = line_of(how.source, counts[error.row].line)
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
