"""The tables of a release: read back by pandas, polars and `datasets`, described by a card and by Croissant."""

import json
import re
from pathlib import Path

import polars as pl
import pytest

from duelpool.campaign.exports.bundle import write_bundle
from duelpool.campaign.exports.codebook import JUDGMENTS
from duelpool.campaign.exports.files import CSV_COLUMNS, write_csv, write_prefs, write_qrels
from duelpool.files import read_preferences, read_qrels
from duelpool.records import Pool
from duelpool.store import open_store
from support.campaigns import judge_all, make_campaign


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data-card")
    with open_store(str(folder / "x.db"), create=True) as store:
        campaign = make_campaign(
            store, [Pool("one", tuple("abc"), twins={"a": ("a2",)}), Pool("two", tuple("de"))]
        )
        judge_all(campaign)
        write_bundle(campaign, str(folder / "release"))
        for name in ("q.parquet", "q.txt"):
            write_qrels(campaign, folder / name)
        for name in ("p.parquet", "p.txt"):
            write_prefs(campaign, folder / name)
        write_csv(campaign, folder / "j.csv")
    return folder / "release"


def test_the_parquet_forms_hold_what_the_text_forms_do(release: Path) -> None:
    folder = release.parent
    assert read_qrels(folder / "q.parquet") == read_qrels(folder / "q.txt")
    frame = pl.read_parquet(folder / "p.parquet")
    lines = [" ".join(row) for row in frame.iter_rows()]
    assert lines == (folder / "p.txt").read_text().splitlines()
    assert len(read_preferences(folder / "p.txt")) == frame.height
    judged = pl.read_parquet(release / "judgments.parquet")
    assert judged.columns == list(CSV_COLUMNS)
    assert judged.height == len((folder / "j.csv").read_text().splitlines()) - 1
    assert judged.get_column("seq").dtype == pl.Float64


def test_every_column_is_described(release: Path) -> None:
    assert set(CSV_COLUMNS) <= set(JUDGMENTS)
    card = (release / "README.md").read_text()
    assert re.findall(r"^- config_name: (\w+)$", card, re.MULTILINE) == ["judgments", "preferences"]
    assert all(f"| `{name}` |" in card for name in CSV_COLUMNS)
    described = json.loads((release / "croissant.json").read_text())
    files = {each["@id"]: each["sha256"] for each in described["distribution"]}
    assert set(files) == {path.name for path in release.iterdir()} - {"croissant.json"}


@pytest.mark.peer("pyarrow")
def test_pandas_reads_the_tables(release: Path) -> None:
    import pandas

    assert list(pandas.read_parquet(release / "judgments.parquet").columns) == list(CSV_COLUMNS)


@pytest.mark.peer("datasets")
@pytest.mark.filterwarnings("ignore")
def test_datasets_reads_the_tables_by_the_card(release: Path, tmp_path: Path) -> None:
    import datasets

    datasets.disable_progress_bars()
    for name in ("judgments", "preferences"):
        loaded = datasets.load_dataset(str(release), name, cache_dir=str(tmp_path))
        assert loaded["train"].num_rows == pl.read_parquet(release / f"{name}.parquet").height


@pytest.mark.peer("mlcroissant")
@pytest.mark.filterwarnings("ignore")
def test_croissant_validates_and_yields_the_records(release: Path) -> None:
    import mlcroissant

    described = mlcroissant.Dataset(jsonld=str(release / "croissant.json"))
    assert not described.metadata.ctx.issues.errors
    records = list(described.records(record_set="preferences"))
    assert len(records) == pl.read_parquet(release / "preferences.parquet").height
    broken = json.loads((release / "croissant.json").read_text())
    broken["recordSet"][0]["field"][0]["source"] = {"fileObject": {"@id": "missing.csv"}}
    with pytest.raises(mlcroissant.ValidationError):
        mlcroissant.Dataset(jsonld=broken)
