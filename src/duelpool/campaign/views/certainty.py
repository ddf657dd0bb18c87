"""What a result's certainty says, in the words of every page, command, report and export."""

from collections.abc import Sequence

from duelpool.records import Certainty

NOT_FROM_CHANCE = "These answers can't be told from chance: no best item is stated with a percentage."
NOTHING_STATED = "–"
_SHARES = {0.5: "half", 0.25: "quarter", 0.2: "fifth", 0.1: "tenth"}


def percent(chance: float) -> str:
    """Return a chance in whole percent that never says more than the chance: 0.997 is over 99 %, 0.899 is 89 %."""
    if chance >= 0.995:
        return "over 99 %"
    return "under 1 %" if chance < 0.01 else f"{int(100 * chance + 1e-9)} %"


def in_short(certainty: Certainty | None) -> str:
    """Return the chance that a best item is among those named, for a table; `chance` where none can be stated."""
    if certainty is not None and certainty.by_chance:
        return "chance"
    return NOTHING_STATED if certainty is None or certainty.best is None else percent(certainty.best)


def in_words(certainty: Certainty | None, named: int, *, briefly: bool = False) -> str:
    """Return what is stated of the items `named` as best, in sentences or briefly in one; empty where nothing is."""
    if certainty is None or not named:
        return ""
    if certainty.by_chance:
        return NOT_FROM_CHANCE
    sentences = []
    if certainty.best is not None:
        what = "The first is the best" if named == 1 else f"The best is among these {named}"
        sentences.append(f"{what} with a chance of {percent(certainty.best)}.")
    further = [
        (certainty.top_five, "among the five best"),
        (certainty.top_share, f"in the top {_share(certainty.share)}"),
        (certainty.near_best, f"as good as the best within {_points(certainty.epsilon)}"),
    ]
    parts = [f"{what} with {percent(chance)}" for chance, what in further if chance is not None]
    if parts:
        sentences.append(f"{'It' if named == 1 and sentences else 'The first'} is {_listed(parts)}.")
    return " ".join(sentences[:1] if briefly else sentences)


def on_what(certainty: Certainty | None) -> str:
    """Return a sentence on what the chances rest, empty where that isn't said or no chance is stated."""
    if certainty is None or certainty.by_chance or not certainty.assumption:
        return ""
    said = certainty.assumption.rstrip(".")
    beginnings = {"if": "The chances hold", "that": "The chances assume"}
    return f"{beginnings.get(said.split()[0], 'The chances rest on an assumption:')} {said}."


def _listed(parts: Sequence[str]) -> str:
    *others, last = parts
    return f"{', '.join(others)}{',' if others[1:] else ''} and {last}" if others else last


def _share(share: float) -> str:
    return _SHARES.get(share, f"{100 * share:g} %")


def _points(epsilon: float) -> str:
    points = f"{100 * epsilon:g}"
    return f"{points} point" if points == "1" else f"{points} points"
