"""Datasets of Hugging Face: `OWNER/NAME[@CONFIGURATION][:SPLIT]`, or a folder that `datasets` has saved or can read."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from duelpool.errors import BadFile, MissingExtra

_NAME = re.compile(r"(?P<place>[^@:]+)(?:@(?P<config>[^:]+))?(?::(?P<split>.+))?")


def hugging_face_rows(name: str) -> Iterable[dict[str, Any]]:
    """Return the rows of one split of a dataset."""
    try:
        import datasets
    except ImportError:
        raise MissingExtra("datasets", "hf") from None
    parts = _NAME.fullmatch(name)
    if parts is None:
        raise BadFile.at(
            f"hf:{name}",
            None,
            "This names no dataset.",
            "Write hf:OWNER/NAME, or hf:OWNER/NAME@CONFIG:SPLIT.",
        )
    place, config, split = parts["place"], parts["config"], parts["split"]
    saved = any((Path(place) / each).is_file() for each in ("dataset_dict.json", "state.json"))
    loaded: Any = datasets.load_from_disk(place) if saved else datasets.load_dataset(place, config)
    if isinstance(loaded, datasets.DatasetDict):
        if split is None and len(loaded) == 1:
            split = next(iter(loaded))
        if split not in loaded:
            problem = f"It has no split '{split}'." if split else "It has several splits."
            first = next(iter(loaded))
            remedy = f"Name one of {', '.join(loaded)}: hf:{place}{f'@{config}' if config else ''}:{first}"
            raise BadFile.at(f"hf:{name}", None, problem, remedy)
        loaded = loaded[split]
    return _rows(loaded)


def _rows(loaded: Any) -> Iterator[dict[str, Any]]:
    yield from loaded
