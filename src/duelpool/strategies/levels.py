"""From scores to levels, the result of every strategy."""

from collections.abc import Iterable, Sequence

from duelpool.arrays import Floats
from duelpool.records import Levels
from duelpool.strategies.tables.win_table import Scores


def levels_by_score(
    table: Scores,
    score: Floats,
    groups: Iterable[Sequence[int]] | None = None,
    *,
    split: int | None = None,
) -> Levels:
    """Return levels of equal score, group by group, and below all of them the Bad items.

    Only the first `split` groups (all when None) are split by score; each later one is one level.
    """
    bad = table.bad
    size = len(table.items)
    levels: list[tuple[str, ...]] = []
    for at, group in enumerate(groups if groups is not None else [range(size)]):
        by_score: dict[float, list[int]] = {}
        for i in sorted(group):
            if not bad[i]:
                by_score.setdefault(float(score[i]) if split is None or at < split else 0.0, []).append(i)
        levels.extend(tuple(table.items[i] for i in by_score[s]) for s in sorted(by_score, reverse=True))
    if bad.any():
        levels.append(tuple(item for item, is_bad in zip(table.items, bad, strict=True) if is_bad))
    return Levels(tuple(levels))
