"""Tests of significance hold their level, intervals cover, and docs/statistics.md states both as they are."""

from pathlib import Path

import pytest

from calibration.cases import COVERAGE, LEVELS, PLANNED_POWER, POWER, Case
from calibration.page import figures, row

HIGHEST_LEVEL = 0.065
LOWEST_COVERAGE = 0.90
POWER_OFF = 0.05
OFF = 0.006  # what other versions of the libraries may change


def held_to_the_page(case: Case, share: float) -> None:
    stated = figures()[case.name]
    assert abs(stated - share) <= OFF, f"docs/statistics.md says {stated}. Write: {row(case, share)}"


def simulated(cases: list[Case]) -> list[Case]:
    return [case for case in cases if not case.data]


def real(cases: list[Case]) -> list[Case]:
    return [case for case in cases if case.data]


def level_held(case: Case, data: Path | None) -> None:
    share = case.share(data)
    held_to_the_page(case, share)
    assert not case.holds or share <= HIGHEST_LEVEL


def covered(case: Case, data: Path | None) -> None:
    share = case.share(data)
    held_to_the_page(case, share)
    assert not case.holds or share >= LOWEST_COVERAGE


@pytest.mark.statistics
@pytest.mark.parametrize("case", simulated(LEVELS), ids=lambda case: case.name)
def test_level_holds_on_null_data(case: Case) -> None:
    level_held(case, None)


@pytest.mark.statistics
@pytest.mark.parametrize("case", real(LEVELS), ids=lambda case: case.name)
def test_level_holds_on_real_null_data(case: Case, data: Path) -> None:
    level_held(case, data)


@pytest.mark.statistics
@pytest.mark.parametrize("case", simulated(COVERAGE), ids=lambda case: case.name)
def test_interval_covers(case: Case) -> None:
    covered(case, None)


@pytest.mark.statistics
@pytest.mark.parametrize("case", real(COVERAGE), ids=lambda case: case.name)
def test_interval_covers_on_real_data(case: Case, data: Path) -> None:
    covered(case, data)


@pytest.mark.statistics
@pytest.mark.parametrize("case", POWER, ids=lambda case: case.name)
def test_power_is_as_planned(case: Case) -> None:
    share = case.share(None)
    held_to_the_page(case, share)
    assert abs(share - PLANNED_POWER) <= POWER_OFF


def test_page_states_every_case_and_no_other() -> None:
    assert sorted(figures()) == sorted(case.name for case in LEVELS + COVERAGE + POWER)


def test_page_states_levels_and_coverage_that_hold() -> None:
    stated = figures()
    assert [case.name for case in LEVELS if case.holds and stated[case.name] > HIGHEST_LEVEL] == []
    assert [case.name for case in COVERAGE if case.holds and stated[case.name] < LOWEST_COVERAGE] == []
    assert [case.name for case in POWER if abs(stated[case.name] - PLANNED_POWER) > POWER_OFF] == []
