"""The demo collection written as files: topics, passages, qrels and runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from duelpool.demo.collection import grades, load_collection
from duelpool.demo.rankers import RANKERS, rank_all
from duelpool.files import Qrels, Run, write_passages, write_qrels, write_run, write_topics


@dataclass(frozen=True, slots=True)
class DemoFiles:
    """Where the demo collection was written."""

    topics: Path
    passages: Path
    qrels: Path
    runs: Mapping[str, Path]


def write_collection(folder: Path, seed: int) -> DemoFiles:
    """Write the demo collection as the files that an evaluation has: topics, passages, qrels and runs."""
    collection = load_collection()
    (folder / "runs").mkdir(parents=True, exist_ok=True)
    files = DemoFiles(
        topics=folder / "topics.jsonl",
        passages=folder / "passages.jsonl",
        qrels=folder / "qrels.txt",
        runs={name: folder / "runs" / f"{name}.run" for name in RANKERS},
    )
    write_topics(files.topics, collection.topics)
    write_passages(files.passages, collection.passages.values())
    write_qrels(files.qrels, Qrels.from_grades(grades(collection, seed)))
    for name, path in files.runs.items():
        write_run(path, Run.from_rankings(name, rank_all(collection, name, seed)))
    return files
