"""Nearly right requests on every route: a short run; `python tests/fuzz_requests.py` sends a hundred thousand."""

from pathlib import Path

import pytest

from duelpool.web.judging import routes
from fuzz_requests import Fuzz, replay
from support.fuzz_recipes import RECIPES
from support.routes import routes_of
from support.stores import BACK_ENDS
from support.visitors import new_store, served


def test_the_fuzz_knows_every_route(tmp_path: Path) -> None:
    new_store(tmp_path / "empty.db").close()
    with served(tmp_path / "empty.db") as app:
        assert sorted(RECIPES) == sorted(routes_of(app))


@pytest.mark.long
@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_no_request_breaks_the_server(back_end: str, tmp_path: Path) -> None:
    fuzz = Fuzz(back_end, 7, tmp_path)
    results = fuzz.run(200)
    assert [each.what for each in results.failures] == []
    assert results.unreached(fuzz.routes) == []
    assert results.acknowledged > 0


@pytest.mark.long
def test_a_failure_is_found_with_one_request_and_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(values: object, name: str) -> int:
        raise ZeroDivisionError(name)

    with monkeypatch.context() as patch:
        patch.setattr(routes, "scale_point", broken)
        results = Fuzz("sqlite", 7, tmp_path, tries=3).run(130)
        (failure,) = results.failures
        assert "ZeroDivisionError" in failure.what
        (((call,)),) = failure.calls
        assert call.route == "POST /j/{campaign}/feedback"
        path = failure.save(tmp_path, 9)
        assert replay(path, tmp_path / "again") == 1
    assert replay(path, tmp_path / "fixed") == 0
    assert "FAILED" in capsys.readouterr().out
