"""What takes seconds of a leaderboard that is looked at again and again: worked out in the background, and kept.

That is the noise of labels, and which runs are behind at every look. No page waits for it. Whoever looks meanwhile gets
the last one, with the number of judgments that it rests on; while judgments come in, it is worked out in a small part
of the time.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from duelpool.background import start_in_background
from duelpool.errors import DuelpoolError
from duelpool.leaderboard.noise import LabelNoise
from duelpool.measures import Measure
from duelpool.measures.external import External
from duelpool.measures.preference import OverPreferences

logger = logging.getLogger(__name__)

REST = 9
"""Times as long as the noise took to work out, the last one is kept however many judgments come in."""


@dataclass(frozen=True, slots=True, eq=False)
class SlowFigures:
    """The noise of labels, where a measure has it, and the runs that aren't first, right at every look."""

    noise: LabelNoise | None = None
    behind: frozenset[str] = frozenset()


MakeFigures: TypeAlias = Callable[[], SlowFigures]


@dataclass(frozen=True, slots=True, eq=False)
class KeptFigures:
    """Figures as of one state of the campaign, after this many judgments."""

    state: object
    judgments: int
    figures: SlowFigures
    until: float  # when they may be worked out again


def has_label_noise(measure: Measure) -> bool:
    """Whether the noise of labels is known for a measure: it scores by labels, under rules of this package."""
    return not isinstance(measure, OverPreferences | External)


@dataclass(slots=True)
class LiveNoise:
    """The slow figures of one campaign, by measure."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _kept: dict[str, KeptFigures] = field(default_factory=dict)
    _working: threading.Thread | None = None

    def look(
        self,
        measure: Measure,
        state: object,
        judgments: int,
        prepare: Callable[[], MakeFigures],
        *,
        wait: bool,
    ) -> KeptFigures | None:
        """Return what is known, and see to it that more will be; with `wait`, return that of this very state.

        `prepare` reads all that is needed, so that the rest needs no store.
        """
        name = str(measure)
        kept = self._kept.get(name)
        if kept is not None and kept.state == state:
            return kept
        if wait:
            return self._work_out(name, state, judgments, prepare())
        with self._lock:
            resting = kept is not None and time.monotonic() < kept.until
            if not resting and (self._working is None or not self._working.is_alive()):
                self._working = start_in_background(self._work_in_thread, name, state, judgments, prepare)
        return kept

    def _work_in_thread(
        self, name: str, state: object, judgments: int, prepare: Callable[[], MakeFigures]
    ) -> None:
        try:
            make = prepare()
        except DuelpoolError as error:  # of the store: the next look tries again
            logger.warning("while reading for the noise of labels: %s", error)
        else:
            self._work_out(name, state, judgments, make)

    def _work_out(
        self, name: str, state: object, judgments: int, make: Callable[[], SlowFigures]
    ) -> KeptFigures:
        start, figures = time.monotonic(), SlowFigures()
        try:
            figures = make()
        except DuelpoolError as error:
            logger.warning("while working out the noise of labels: %s", error)
        now = time.monotonic()
        kept = KeptFigures(state, judgments, figures, now + REST * (now - start))
        self._kept[name] = kept
        return kept
