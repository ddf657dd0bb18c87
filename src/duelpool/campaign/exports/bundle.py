"""A campaign as a release: labels, preferences, duplicates, guidelines, settings and a data statement."""

import json
import platform
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import copy
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import func, select

from duelpool import __version__
from duelpool.campaign.campaign import Campaign
from duelpool.campaign.exports.codebook import PREFERENCES, croissant, data_card
from duelpool.campaign.exports.files import (
    CSV_COLUMNS,
    Progress,
    Written,
    ignore,
    write_csv,
    write_levels,
    write_log,
    write_prefs,
    write_qrels,
)
from duelpool.campaign.log import campaign_events
from duelpool.campaign.settings import SETTINGS
from duelpool.campaign.views import summaries
from duelpool.campaign.views.status import CampaignStatus, status
from duelpool.deciders import DECIDERS
from duelpool.durable import give_name
from duelpool.errors import BadFile
from duelpool.files import Notice, write_lines, write_topics
from duelpool.files.parquet import write_parquet
from duelpool.files.source import unwritable, written_whole
from duelpool.store import CampaignStore, Reading, Store, holdings, log, schema
from duelpool.strategies import STRATEGIES
from duelpool.strategies.parameters import split_spec

_NO_GUIDELINES = (
    f"(None of its own: the judging page showed the guide that comes with Duelpool {__version__}.)"
)

T = TypeVar("T")

_NO_TIME = (1980, 1, 1, 0, 0, 0)  # the same content gives the same bytes


def write_bundle(campaign: Campaign, path: str, *, progress: Progress = ignore, **qrels: Any) -> Written:
    """Write a release into a new folder, or into a .zip file; it appears when it is complete."""
    with release_folder(path) as place:
        summaries.work_out(campaign)
        rows, notices = campaign.read(lambda tx: _fill(as_of_now(campaign, tx), place, progress, qrels))
        names = sorted(each.name for each in place.iterdir())
    return Written(tuple(str(Path(path) / name) for name in names), rows, notices)


@contextmanager
def release_folder(path: str) -> Iterator[Path]:
    """Yield a folder to fill; it gets its name, or is packed into a .zip file, when it is complete."""
    target = Path(path)
    packed = target.suffix.lower() == ".zip"
    if not packed and target.exists():
        raise BadFile.at(path, None, "The folder exists already.", "Name a new one, or remove it.")
    if not target.absolute().parent.is_dir():
        raise BadFile.at(path, None, "Its parent folder doesn't exist.", "Make it first.")
    try:
        place = Path(tempfile.mkdtemp(dir=target.absolute().parent, prefix=f".{target.name}."))
    except OSError as error:
        raise unwritable(path, error) from None
    try:
        yield place
        if packed:
            _pack(place, target)
        else:
            place.chmod(0o755)
            give_name(place, target)
    except BadFile as error:
        error.place = error.place.replace(str(place), path)
        raise
    except OSError as error:
        if not str(error.filename).startswith(str(place)):
            raise  # about another file
        raise unwritable(path, error) from None
    finally:
        with suppress(OSError):
            shutil.rmtree(place)


class _Snapshot(CampaignStore):
    """A campaign's part of a store as of one moment: every read comes from the same snapshot."""

    __slots__ = ("_tx",)

    def __init__(self, store: Store, tx: Reading) -> None:
        super().__init__(store, tx.campaign)
        self._tx = tx

    def read(self, work: Callable[[Reading], T], *, once: bool = False) -> T:
        """Run work on the snapshot."""
        return work(self._tx)


def as_of_now(campaign: Campaign, tx: Reading) -> Campaign:
    """Return the campaign as of this snapshot, so that all files of a bundle agree while people judge."""
    frozen = copy(campaign)
    frozen.own_store = _Snapshot(campaign.store, tx)
    return frozen


def _fill(
    campaign: Campaign, place: Path, progress: Progress, qrels: Mapping[str, Any]
) -> tuple[int, tuple[Notice, ...]]:
    written = [
        write_qrels(campaign, place / "best.qrels", progress=progress, **qrels),
        write_prefs(campaign, place / "preferences.txt"),
        write_levels(campaign, place / "levels.json"),
        write_log(campaign, place / "log.jsonl"),
    ]
    write_csv(campaign, place / "judgments.parquet")
    with (place / "preferences.txt").open(encoding="utf-8") as listed:
        write_parquet(place / "preferences.parquet", tuple(PREFERENCES), (line.split() for line in listed))
    topics, passages = campaign.read(_topics)
    write_topics(place / "topics.jsonl", topics.values())
    write_lines(place / "guidelines.md", [campaign.settings.guidelines or _NO_GUIDELINES])
    write_lines(place / "settings.json", [json.dumps(settings_of(campaign), indent=1, ensure_ascii=False)])
    if events := campaign.read(campaign_events.events):
        write_lines(place / "events.jsonl", [json.dumps(each.as_json()) for each in events])
    dates = campaign.read(_dates)
    now = status(campaign, turns=summaries.Turns(0))
    write_lines(place / "DATA-STATEMENT.md", statement(campaign, now, dates, passages))
    _describe(campaign, place, dates)
    return sum(each.rows for each in written), tuple(notice for each in written for notice in each.notices)


def _describe(campaign: Campaign, place: Path, dates: tuple[str, str]) -> None:
    """Write the data card and the Croissant metadata of the files that are there."""
    tables = {"judgments.parquet": CSV_COLUMNS, "preferences.parquet": tuple(PREFERENCES)}
    about = f"Preferences between the candidates of topics, from the campaign {campaign.name}; see DATA-STATEMENT.md."
    write_lines(place / "README.md", data_card(campaign.name, about, tables))
    described = croissant(campaign.name, about, place, tables, published=dates[1], version="1.0.0")
    write_lines(place / "croissant.json", [described])


def _topics(tx: Reading) -> tuple[dict[str, Any], int]:
    passages = tx.connection.execute(
        select(func.count()).select_from(schema.passage).where(schema.passage.c.campaign == tx.campaign)
    ).scalar_one()
    return dict(holdings.topics(tx)), int(passages)


def _dates(tx: Reading) -> tuple[str, str]:
    columns = schema.log.c
    first, last = tx.connection.execute(
        select(func.min(columns.time), func.max(columns.time)).where(
            columns.campaign == tx.campaign, columns.event == log.JUDGMENT
        )
    ).one()
    return ("", "") if first is None else (log.iso_time(first)[:10], log.iso_time(last)[:10])


def settings_of(campaign: Campaign) -> dict[str, Any]:
    """Return what a campaign depends on: settings, seed and versions."""
    name, _ = split_spec(campaign.settings.strategy)
    by = DECIDERS if campaign.live.goal.of_systems else STRATEGIES
    version = by[name].version
    return {
        "campaign": campaign.name,
        "settings": {
            name: value
            for name, value in campaign.settings.as_json().items()
            if not SETTINGS[name].about.private
        },
        "seed": campaign.settings.seed,
        "versions": {
            "duelpool": __version__,
            "strategy": f"{name}/{version}",
            "schema": schema.SCHEMA_VERSION,
            "python": platform.python_version(),
        },
    }


def statement(campaign: Campaign, now: CampaignStatus, dates: tuple[str, str], passages: int) -> list[str]:
    """Return the data statement: what the figures say, and what only people can add."""
    settings = campaign.settings
    excluded = sum(person.state == "excluded" for person in now.assessors)
    judged = [person for person in now.assessors if person.judgments]
    kinds = sorted({person.kind for person in judged})
    made = sum(person.judgments for person in judged)
    spent = now.money
    lines = [
        f"# Data statement: {campaign.name}",
        "",
        "## What it is",
        "",
        f"Preferences between the candidates of {len(now.topics)} topics ({now.total('items')} items), collected "
        f"{f'from {dates[0]} to {dates[1]}' if dates[0] else 'not yet'} with Duelpool {__version__}.",
        "",
        f"- strategy: `{settings.strategy}`, seed {settings.seed}, at most {settings.cap} judgments of a pair",
        f"- judgments given: {made}; that count: {now.total('judgments')}",
        f"- topics that are done: {now.total('done')} of {len(now.topics)}",
        f"- texts: {passages} passages were shown; they are not part of this bundle",
        "",
        "## Who judged",
        "",
        f"- assessors: {len(judged)} ({', '.join(kinds) or 'none yet'}), of whom {excluded} were excluded",
        f"- test pairs: {settings.tests} an assignment; assessors below {settings.test_share:.0%} are excluded"
        if settings.judges == "crowd"
        else "- dedicated assessors, without test pairs",
        f"- paid: {spent.rewards / 100:,.2f} {spent.currency} and {spent.fees / 100:,.2f} in fees",
        "- recruitment, languages, training, consent and ethical review: [to be added]",
        "",
        "## Files",
        "",
        "- `best.qrels`: the best items; a duplicate has the value of its canonical item",
        "- `preferences.txt`: the preferences that count, `topic left right winner`, '=' a tie; by canonical ids",
        "- `preferences.twins.txt`, where there are twins: `topic canonical twin`",
        "- `levels.json`: all items of each topic in levels, the best first",
        "- `log.jsonl`: every line of the log, retractions and closed phases included; assessors by pseudonym",
        "- `events.jsonl`, where there are any: what changed decisions as a whole, such as weights of assessors",
        "- `topics.jsonl`, `guidelines.md`, `settings.json`: what was asked, how, and under which settings",
        "- `judgments.parquet`, `preferences.parquet`: the same as tables, which pandas, polars and `datasets` read",
        "- `README.md`, `croissant.json`: what the columns mean, for people and for catalogues of datasets",
        "",
        "## Known limits, licence and contact",
        "",
        "[to be added]",
    ]
    if now.blocks:
        lines += ["", *(f"- {block}" for block in now.blocks)]
    return lines


def _pack(place: Path, target: Path) -> None:
    with (
        written_whole(target, private=True) as partial,
        zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as bundle,
    ):
        for each in sorted(place.iterdir()):
            about = zipfile.ZipInfo(f"{target.stem}/{each.name}", _NO_TIME)
            about.compress_type = zipfile.ZIP_DEFLATED
            about.external_attr = 0o644 << 16
            with each.open("rb") as source, bundle.open(about, "w", force_zip64=True) as packed:
                shutil.copyfileobj(source, packed)
