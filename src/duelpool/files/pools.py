"""Pools as JSON lines: one topic a line with its candidates, their grades and their duplicates (`twins`)."""

import json
import os
from collections.abc import Iterable

from duelpool.errors import BadFile, BadRecord
from duelpool.files.jsonlines import Row, json_rows, text_of
from duelpool.files.source import Readable, Source, read_source, write_lines
from duelpool.records import Pool


def write_pools(path: str | os.PathLike[str], pools: Iterable[Pool]) -> None:
    """Write pools as JSON lines."""
    write_lines(path, (json.dumps(pool_to_json(pool), ensure_ascii=False) for pool in pools))


def read_pools(path: Readable) -> tuple[Pool, ...]:
    """Read pools from JSON lines, plain or gzip, from a path or from standard input ("-")."""
    return pools_of(read_source(path))


def pools_of(source: Source) -> tuple[Pool, ...]:
    """Read pools from a source."""
    pools: dict[str, Pool] = {}
    for line, row in json_rows(source):
        try:
            pool = pool_from_json(row)
        except BadRecord as error:
            raise BadFile.at(source.name, line, error.problem, error.remedy) from None
        if pool.topic in pools:
            raise BadFile.at(source.name, line, f"Topic '{pool.topic}' has a pool already.", "Keep one.")
        pools[pool.topic] = pool
    return tuple(pools.values())


def pool_to_json(pool: Pool) -> dict[str, object]:
    """Return a pool as a JSON object."""
    values: dict[str, object] = {"topic": pool.topic, "items": list(pool.items)}
    if pool.grades:
        values["grades"] = dict(pool.grades)
    if pool.twins:
        values["twins"] = {item: list(others) for item, others in pool.twins.items()}
    return values


def pool_from_json(row: Row) -> Pool:
    """Return the pool that a JSON object describes, or raise BadRecord."""
    items, grades, twins = row.get("items"), row.get("grades", {}), row.get("twins", {})
    if not isinstance(items, list) or not all(isinstance(item, str) and item for item in items):
        raise BadRecord('"items" must be a list of ids.', remedy='{"topic": "1", "items": ["a", "b"]}')
    if not isinstance(grades, dict) or not all(
        isinstance(grade, int | float) and not isinstance(grade, bool) for grade in grades.values()
    ):
        raise BadRecord('"grades" must give a number per item.')
    if not isinstance(twins, dict) or not all(isinstance(others, list) for others in twins.values()):
        raise BadRecord('"twins" must give a list of ids per item.')
    return Pool(
        text_of(row, "topic") or "",
        tuple(items),
        {item: float(grade) for item, grade in grades.items()},
        {item: tuple(map(str, others)) for item, others in twins.items()},
    )
