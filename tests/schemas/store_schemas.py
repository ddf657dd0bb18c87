"""Store the schemas beside their module: python tests/schemas/store_schemas.py."""

from pathlib import Path

import duelpool.schemas
from duelpool.schemas.made import MAKERS, made_text

for name in MAKERS:
    place = Path(duelpool.schemas.__file__).parent / f"{name}.json"
    place.write_text(made_text(name), encoding="utf-8")
