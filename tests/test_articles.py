"""Generated articles, and what is asked of articles in each embedded database."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from sensorbench._engine import generate_articles
from sensorbench.dataset import open_dataset
from sensorbench.dataset.article_model import shipped_model
from sensorbench.schemas import load_operations, load_schema, shipped_schemas
from sensorbench.schemas.shipped import SHIPPED_FOLDER
from tests.conftest import Cli

DATABASES = sorted(folder.name for folder in (SHIPPED_FOLDER / "articles").iterdir() if folder.is_dir())


def texts(folder: Path) -> list[str]:
    found: list[str] = pq.read_table(next(folder.glob("articles*")))["text"].to_pylist()
    return found


def test_generated_articles_have_the_sizes_and_words_that_were_measured(cli: Cli, tmp_path: Path) -> None:
    generated = cli("data", "generate", "wikipedia", "--articles", "3000", "--out", tmp_path / "out", "--json")
    assert generated.exit_code == 0, generated.err
    assert generated.json["generated"] is True
    assert generated.json["relations"]["articles"]["rows"] == 3000
    model = shipped_model()
    sizes = sorted(len(text.encode()) for text in texts(tmp_path / "out"))
    shares, quantiles = zip(*model.sizes, strict=True)
    found = np.searchsorted(sizes, quantiles, side="right") / len(sizes)
    # Kolmogorov's bound for 3,000 sizes, exceeded once in a thousand times.
    assert np.abs(found - np.array(shares)).max() < 1.95 / np.sqrt(len(sizes))
    words = " ".join(texts(tmp_path / "out")[:1000]).split()
    every = sum(model.words.values()) + model.other_words
    for word in list(model.words)[:5]:
        assert words.count(word) / len(words) == pytest.approx(model.words[word] / every, rel=0.05)


def test_an_article_is_a_function_of_seed_and_id(cli: Cli, tmp_path: Path) -> None:
    for name, more in {
        "few": ("--articles", "200"),
        "many": ("--articles", "300"),
        "other": ("--articles", "200", "--seed", "1"),
    }.items():
        assert cli("data", "generate", "wikipedia", *more, "--out", tmp_path / name).exit_code == 0
    few = texts(tmp_path / "few")
    assert texts(tmp_path / "many")[:200] == few
    assert texts(tmp_path / "other") != few
    # A partition, made by itself.
    part = generate_articles(shipped_model().plan(200), 42, 51, 61).rows(threads=3).read_all()
    assert (part["id"].to_pylist(), part["text"].to_pylist()) == (list(range(51, 61)), few[50:60])


def test_copies_are_the_same_articles_under_new_ids(cli: Cli, tmp_path: Path) -> None:
    twice = cli("data", "generate", "wikipedia", "--articles", "150", "--copies", "2", "--out", tmp_path / "out", "--json").json
    assert twice["relations"]["articles"]["rows"] == 300
    assert texts(tmp_path / "out")[:150] == texts(tmp_path / "out")[150:]
    with open_dataset(str(tmp_path / "out")).connect() as connection:
        assert connection.sql("SELECT min(id), max(id), count(DISTINCT id) FROM articles").fetchall() == [(1, 300, 300)]


def test_a_share_is_of_as_many_articles_as_the_study_had(cli: Cli, tmp_path: Path) -> None:
    described = cli("data", "describe", "wikipedia-generated", "--scale", "0.001", "--json").json
    assert (described["relations"]["articles"]["rows"], described["scale"]) == (20, 0.001)
    assert cli("data", "generate", "wikipedia", "--scale", "0.001", "--out", tmp_path / "out", "--json").json == described


def test_a_generator_is_fitted_to_articles(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # This many sizes are off by 0.02 at most, as Kolmogorov has it.
    monkeypatch.setattr("sensorbench.dataset.article_model.COMPARED", 5_000)
    fitted = cli("data", "fit", "wikipedia", "--out", tmp_path / "model.json", "--json")
    assert fitted.exit_code == 0, fitted.err
    assert fitted.json["articles"] == 126
    assert fitted.json["sizes_ks"] < 0.05
    model = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    with open_dataset("wikipedia").connect() as connection:
        texts_of_one = connection.sql("SELECT text FROM articles WHERE wiki = 'enwiki'").fetchall()
    english = [word for (text,) in texts_of_one for word in re.findall(r"[^ \t\r\n\f]+", text)]
    assert model["words"]["the"] == english.count("the")
    assert sum(model["words"].values()) + model["other_words"] == len(english)
    generated = cli("data", "generate", tmp_path / "model.json", "--articles", "30", "--out", tmp_path / "out", "--json")
    assert generated.json["relations"]["articles"]["rows"] == 30
    model["sizes"][0] = [0.5, 1]
    (tmp_path / "model.json").write_text(json.dumps(model), encoding="utf-8")
    refused = cli("data", "generate", tmp_path / "model.json", "--out", tmp_path / "none")
    assert refused.exit_code == 2
    assert "expected shares that rise from 0 to 1" in refused.err
    refused = cli("data", "generate", "machine-log", "--articles", "3", "--out", tmp_path / "none")
    assert "--articles: machine-log generates none" in refused.err


@pytest.mark.parametrize(
    ("database", "name"), [(database, name) for database in DATABASES for name in shipped_schemas("articles", database)]
)
def test_every_schema_can_be_used(database: str, name: str) -> None:
    operations = load_operations("articles")
    schema = load_schema(name, operations="articles", database=database)
    assert set(schema.file.operation) == set(operations.operation)
    with open_dataset("wikipedia").connect() as workbench:
        assert schema.driver_schema(operations, list(schema.file.operation), schema.loaded_columns(workbench))


EXPERIMENT = """\
dataset = "wikipedia"
scale = 0.3
operations = "articles"
[[target]]
url = "sqlite"
schema = "by_id"
[[target]]
url = "fjall"
schema = "by_id"
[workload]
mix = {mix}
operations = 200
repetitions = 1
schedule = {{ concurrency = 2 }}
"""
VARIANTS = {"sqlite-by_id", "fjall-by_id"}


def run(cli: Cli, tmp_path: Path, mix: str) -> dict[str, Any]:
    (tmp_path / "experiment.toml").write_text(EXPERIMENT.format(mix=mix), encoding="utf-8")
    ended = cli("run", tmp_path / "experiment.toml", "--out", tmp_path / "out", "--no-open")
    assert ended.exit_code == 0, ended.err
    found: dict[str, Any] = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    return found


def test_articles_are_read_and_added(cli: Cli, tmp_path: Path) -> None:
    summary = run(cli, tmp_path, "{ read_article = 8, insert_article = 2 }")
    assert summary["answers_equal"] is True
    assert summary["result"]["contents"].keys() == VARIANTS
    for checks in summary["result"]["contents"].values():
        assert (checks["wrong"], checks["lost_writes"]) == (0, 0)
        assert checks["queried"] > 0
        assert checks["read_back"] == checks["acknowledged_writes"] > 0


def test_articles_become_longer(cli: Cli, tmp_path: Path) -> None:
    summary = run(cli, tmp_path, "{ read_article = 4, append_character = 1 }")
    assert summary["result"]["contents"].keys() == summary["result"]["client_health"].keys() == VARIANTS
    for checks in summary["result"]["contents"].values():
        assert "append_character changed rows that were there" in checks["not_checked"]
    assert [(facts["ok"], facts["errors"]) for facts in summary["result"]["client_health"].values()] == [(200, 0)] * 2
