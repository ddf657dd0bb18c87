"""Drafts of campaigns that are being set up: files, options and the dry run.

They are kept in a folder, since there may be several server processes, and deleted after two days without a change.
"""

import dataclasses
import hashlib
import os
import re
import secrets
import shutil
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from duelpool.campaign import Campaign
from duelpool.campaign.views.watch import NotFound
from duelpool.durable import give_name
from duelpool.errors import BadParameter, DuelpoolError
from duelpool.setup import Comparison, Draft, Inputs, Observed, build_draft, observe, planned_cost
from duelpool.setup.checks import PoolCheck, pool_checks
from duelpool.setup.contents import KindContents, contents_of
from duelpool.setup.reading import read_uploads
from duelpool.setup.uploads import Limits, UploadFolder
from duelpool.store import Store, StoreError, holdings, log
from duelpool.store.folder_lock import locked_folder
from duelpool.web.setup.options import Options
from duelpool.web.setup.simulations import Simulations

KEPT_SECONDS = 2 * 86400.0
DRAFTS_AT_MOST = 200
_ID = re.compile(r"[A-Za-z0-9_-]{8,40}")


def folder_for(place: str) -> Path:
    """Return the default folder of a store's uploads, in the system's folder for temporary files."""
    name = hashlib.blake2b(place.encode(), digest_size=8).hexdigest()
    return Path(tempfile.gettempdir(), f"duelpool-setup-{name}")


@dataclass(frozen=True, slots=True)
class DryRun:
    """The result of a dry run: the draft with its pools, or the error in its way."""

    draft: Draft | None
    trouble: DuelpoolError | None
    observed: Observed | None = None
    comparison: Comparison | None = None
    contents: list[KindContents] = field(default_factory=list)
    checks: list[PoolCheck] = field(default_factory=list)


@dataclass(slots=True)
class SavedDraft:
    """One campaign that is being set up: its uploads, its options and its dry run."""

    id: str
    folder: Path
    uploads: UploadFolder
    store: Store
    simulations: Simulations
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _inputs: tuple[object, Inputs] | None = None
    _last_run: tuple[object, DryRun] | None = None

    # ---- options

    @property
    def options(self) -> Options:
        """The options as they were last saved."""
        try:
            return Options.model_validate_json((self.folder / "options.json").read_text("utf-8"))
        except FileNotFoundError:
            return Options()

    def save(self, options: Options) -> None:
        """Save the options."""
        options.settings(bool(self.uploads.of("answers")))  # refuses invalid settings
        _write(self.folder / "options.json", options.model_dump_json())

    # ---- the dry run

    def dry_run(self) -> DryRun:
        """Return the dry run of the present files and options; it is cached."""
        options = self.options
        with self._lock:
            files = tuple(
                (str(path), about.st_mtime_ns, about.st_size) for path, about in self.uploads.found()
            )
            key = (files, options.model_dump_json(exclude={"name"}), self._pilot_lines(options.learn_from))
            if self._last_run is None or self._last_run[0] != key:
                self._last_run = (key, self._run(files, options))
            return self._last_run[1]

    def _run(self, files: object, options: Options) -> DryRun:
        try:
            with self.uploads.without_folder():
                named = self.uploads.files(options.tests or None, fields=options.fields, pages=options.pages)
                if not named:
                    raise BadParameter(
                        "There is nothing to pool yet.", remedy="Upload answers, runs, qrels or preferences."
                    )
                key = (files, options.fields)
                if self._inputs is None or self._inputs[0] != key:
                    self._inputs = (key, read_uploads(named))
                inputs = dataclasses.replace(self._inputs[1], files=named)
                settings = options.settings(named.of_systems)
                draft = build_draft(inputs, settings, options.rules(), share=options.share)
                shown = contents_of(inputs), pool_checks(draft)
                observed = self._observed(options.learn_from)
                if settings.goal != "best":  # there is nothing to compare by simulation
                    planned_cost(draft)  # refuses systems with which the goal can't be reached
                    return DryRun(draft, self._not_ready(draft), None, None, *shown)
                comparison = Comparison.of(draft.whole.values(), draft.settings, options.max_cost, observed)
                return DryRun(draft, self._not_ready(draft), observed, comparison, *shown)
        except DuelpoolError as error:
            return DryRun(None, error)

    def _not_ready(self, draft: Draft) -> DuelpoolError | None:
        try:
            with self.uploads.without_folder():
                draft.ready()
        except DuelpoolError as error:
            return error
        return None

    def _pilot_lines(self, campaign: str) -> int:
        """Return the number of lines in a pilot's log, which grows with every judgment; 0 without a pilot."""
        return self.store.of(campaign).read(log.line_count) if campaign else 0

    def _observed(self, campaign: str) -> Observed | None:
        if not campaign:
            return None
        row = self.store.read(lambda connection: holdings.find_campaign(connection, campaign))
        return observe(Campaign(self.store, row))

    def simulated(self) -> dict[str, Any] | None:
        """Return the state of the simulation, and start it if needed; None without a draft."""
        dry_run = self.dry_run()
        if dry_run.comparison is None:
            return None
        return self.simulations.state_of(self.folder / "compared.json", dry_run.comparison)

    # ---- the end

    def create(self, name: str, paused: bool) -> tuple[Campaign, str]:
        """Create the campaign, and discard the draft."""
        dry_run = self.dry_run()
        if dry_run.trouble is not None:
            raise dry_run.trouble
        if dry_run.draft is None:  # pragma: no cover (without an error there is a draft)
            raise BadParameter("The draft has no pools to create a campaign from.")
        with self.uploads.without_folder():
            ready = dry_run.draft.ready()
        campaign, held = ready.create(self.store, name, "paused" if paused else "open")
        self.clear()
        return campaign, f"Created the campaign '{campaign.name}': {held}."

    def clear(self) -> None:
        """Discard the draft."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _write(place: Path, text: str) -> None:
    """Write a small file atomically."""
    part = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
    part.touch(mode=0o600)
    part.write_text(text, encoding="utf-8")
    give_name(part, place)


@dataclass(slots=True)
class SavedDrafts:
    """The drafts of a store."""

    store: Store
    folder: Path
    limits: Limits = field(default_factory=Limits)
    simulations: Simulations = field(default_factory=Simulations)
    _known: dict[str, SavedDraft] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def new(self) -> SavedDraft:
        """Start a new draft; old ones are deleted."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if hasattr(os, "getuid") and self.folder.stat().st_uid != os.getuid():
            raise StoreError(
                "Another user owns the folder for uploads.",
                remedy="Name another: `duelpool serve --uploads DIR`.",
            )
        self.sweep()
        name = secrets.token_urlsafe(12)
        with locked_folder(self.folder):
            if sum(1 for _ in self.folder.iterdir()) >= DRAFTS_AT_MOST:
                raise BadParameter(
                    f"{DRAFTS_AT_MOST} campaigns are being set up already.",
                    remedy="Finish or discard some of them.",
                )
            (self.folder / name).mkdir(mode=0o700)
        return self.of(name)

    def of(self, name: str) -> SavedDraft:
        """Return a draft by its id."""
        place = self.folder / name
        if not _ID.fullmatch(name) or not place.is_dir():
            raise NotFound("This draft doesn't exist any more.", remedy="Start a new one.")
        with self._lock:
            if name not in self._known:
                uploads = UploadFolder(place / "files", self.limits)
                self._known[name] = SavedDraft(name, place, uploads, self.store, self.simulations)
            return self._known[name]

    def all(self) -> list[SavedDraft]:
        """Return all drafts, the newest first."""
        if not self.folder.is_dir():
            return []
        changed: list[tuple[float, SavedDraft]] = []
        for each in self.folder.iterdir():
            with suppress(FileNotFoundError, NotFound):  # discarded meanwhile, or no draft
                changed.append((each.stat().st_mtime, self.of(each.name)))
        return [draft for _, draft in sorted(changed, key=lambda each: -each[0])]

    def sweep(self) -> None:
        """Delete drafts that haven't changed for long."""
        for each in self.folder.iterdir():
            with suppress(FileNotFoundError):  # another process sweeps, too
                if time.time() - each.stat().st_mtime > KEPT_SECONDS:
                    shutil.rmtree(each, ignore_errors=True)
        with self._lock:
            for name in [name for name, draft in self._known.items() if not draft.folder.is_dir()]:
                del self._known[name]

    def close(self) -> None:
        """Stop the simulations."""
        self.simulations.close()
