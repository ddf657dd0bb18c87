"""Stores with damaged bytes: a short run; `python tests/fuzz_stores.py` goes on for as long as you like."""

from pathlib import Path

import pytest

from fuzz_stores import COMMANDS, fuzz, sound_store, tried, write_inputs


@pytest.mark.slow
def test_every_command_works_on_a_sound_store(tmp_path: Path) -> None:
    sound, path = sound_store(tmp_path), tmp_path / "store.db"
    write_inputs(tmp_path)
    for command in COMMANDS:
        path.write_bytes(sound.whole)
        assert tried(command, path) == ("worked", ""), command


@pytest.mark.long
def test_commands_on_damaged_stores_work_or_are_refused_with_a_remedy(tmp_path: Path) -> None:
    results = fuzz(3, tmp_path, count=8)
    assert results.failures == {}
    assert {each.split(": ")[1] for each in results.outcomes} == {"worked", "refused"}
