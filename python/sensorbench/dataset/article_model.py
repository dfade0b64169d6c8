"""A generator of articles fitted to a collection of them: its distribution of sizes, and how often each word is there.

The one in the package was fitted to what its `source` says by `sensorbench data fit`; see the README.md beside it.
"""

import json
from functools import partial
from pathlib import Path
from typing import Any, Literal

import duckdb
import numpy as np
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field, field_validator

from sensorbench._engine import generate_articles
from sensorbench.dataset.dataset import ARTICLE_READINGS, ARTICLE_SCHEMA, ARTICLES, Dataset, DatasetWriter, Description
from sensorbench.dataset.generated import WriteFiles
from sensorbench.dataset.wikipedia import NAME, SHIPPED_FOLDER
from sensorbench.errors import UsageError

KIND: Literal["articles"] = "articles"
FORMAT = 1
GENERATOR_VERSION = 1

# The dataset of articles that the package's generator makes: as many as the MapReduce study had.
GENERATED_NAME = f"{NAME}-generated"
# The first is the name of the sample in the package, too: it is that which is opened by it.
DATASETS = (NAME, GENERATED_NAME)
SHIPPED_MODEL = SHIPPED_FOLDER / "generator.json"
ARTICLES_OF_THE_STUDY = 19_580

# Shares of the sizes that are kept: each hundredth, and more where articles are longest.
SHARES = [*(hundredth / 100 for hundredth in range(100)), 0.995, 0.998, 0.999, 1.0]
# The most frequent words are kept, but for those that are longer than words are; the others are as many as they are.
MAX_WORDS = 20_000
LONGEST_WORD_BYTES = 48
# Articles of a generated collection of which the sizes are compared with the fitted ones.
COMPARED = 20_000


class ArticleModel(BaseModel):
    """A fitted generator of articles, as it is kept in a file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["articles"] = KIND
    format: int = FORMAT
    name: str
    title: str
    source: str
    license: str
    # What was measured: articles, their mean size, and how far the sizes of generated ones differ (Kolmogorov and Smirnov's
    # distance).
    articles: int = Field(ge=1)
    mean_bytes: float
    sizes_ks: float = 0.0
    # Share of the articles, and up to how many bytes (UTF-8) their texts have.
    sizes: list[tuple[float, float]] = Field(min_length=2)
    # Words are what stands between blanks and ends of lines, of the wiki that the first article is of.
    words_a_line: float = Field(ge=1)
    other_words: int = Field(ge=0)
    words: dict[str, int]

    @field_validator("sizes")
    @classmethod
    def _rise(cls, sizes: list[tuple[float, float]]) -> list[tuple[float, float]]:
        shares = [share for share, _ in sizes]
        if shares != sorted(set(shares)) or (shares[0], shares[-1]) != (0.0, 1.0) or min(size for _, size in sizes) < 0:
            raise ValueError("expected shares that rise from 0 to 1, and sizes that are not below zero")
        return sizes

    def plan(self, distinct: int) -> str:
        """What the engine needs to know to make this many different texts."""
        plan = {
            "sizes": self.sizes,
            "words": list(self.words.items()),
            "other_words": self.other_words,
            "words_a_line": self.words_a_line,
            "distinct": distinct,
        }
        return json.dumps(plan)


def fit_articles(dataset: Dataset, seed: int) -> ArticleModel:
    """Fits a generator to a dataset with articles."""
    description = dataset.describe()
    with dataset.connect() as connection:
        sizes = connection.sql(f"SELECT strlen(text) AS bytes FROM {ARTICLES}").to_arrow_table()["bytes"].to_numpy()
        words, other_words, words_a_line = _words(connection)
    model = ArticleModel(
        name=f"{description.name}-fitted",
        title=f"Generated articles with sizes and words like those of: {description.title}",
        source=f"{len(sizes):,} articles of {description.source}",
        license=description.license,
        articles=len(sizes),
        mean_bytes=round(float(sizes.mean()), 1),
        sizes=[(share, round(float(np.quantile(sizes, share)), 1)) for share in SHARES],
        words_a_line=round(words_a_line, 2),
        other_words=other_words,
        words=words,
    )
    made = [
        size
        for batch in generate_articles(model.plan(COMPARED), seed, 1, COMPARED + 1).rows(threads=1)
        for size in pc.binary_length(batch["text"]).to_pylist()
    ]
    return model.model_copy(update={"sizes_ks": round(_ks(sizes, np.array(made)), 4)})


def _words(connection: duckdb.DuckDBPyConnection) -> tuple[dict[str, int], int, float]:
    """The most frequent words, how many others there are, and words a line."""
    is_of_one_wiki = ""
    if "wiki" in connection.table(ARTICLES).columns:
        is_of_one_wiki = f"WHERE wiki = (SELECT wiki FROM {ARTICLES} ORDER BY id LIMIT 1)"
    counted = connection.sql(
        f"""
        SELECT word, count(*) AS times FROM (
            SELECT unnest(string_split_regex(trim(text, E' \\t\\r\\n'), '\\s+')) AS word FROM {ARTICLES} {is_of_one_wiki})
        WHERE word <> '' GROUP BY word
        """
    )
    every, lines = connection.sql(
        f"""
        SELECT (SELECT sum(times) FROM counted), sum(len(string_split_regex(text, '\\n+'))) FROM {ARTICLES} {is_of_one_wiki}
        """
    ).fetchall()[0]
    if not every:
        raise UsageError("the articles have no words to fit a generator to")
    listed = counted.filter(f"strlen(word) <= {LONGEST_WORD_BYTES}").order("times DESC, word").limit(MAX_WORDS)
    words = dict(listed.fetchall())
    return words, int(every) - sum(words.values()), max(1.0, every / lines)


def _ks(a: Any, b: Any) -> float:
    a, b = np.sort(a), np.sort(b)
    both = np.unique(np.concatenate([a, b]))
    return float(np.max(np.abs(np.searchsorted(a, both, "right") / len(a) - np.searchsorted(b, both, "right") / len(b))))


def shipped_model() -> ArticleModel:
    """The generator in the package."""
    model = ArticleModel.model_validate_json(SHIPPED_MODEL.read_text(encoding="utf-8"))
    return model.model_copy(update={"name": GENERATED_NAME, "title": "Generated articles with sizes and words of Wikipedia"})


def generate_like(
    model: ArticleModel,
    out: Path,
    *,
    seed: int,
    articles: int,
    copies: int,
    write: WriteFiles,
    scale: float = 1.0,
) -> Dataset:
    """Generates this many different articles, and the same again under new ids for each further copy. `scale` is what is said of it."""
    writer = DatasetWriter(out)
    generator = partial(generate_articles, model.plan(articles), seed, 1, articles * copies + 1)
    writer.add_generated(ARTICLE_READINGS, ARTICLE_SCHEMA, generator, write)
    again = f", {copies} times under new ids" if copies > 1 else ""
    return writer.finish(
        Description(
            name=model.name,
            title=model.title,
            generated=True,
            source=f"generated by sensorbench (generator version {GENERATOR_VERSION}, seed {seed}) after {model.source}",
            license=model.license,
            how_made=(
                f"{articles:,} articles{again}. Sizes are quantiles of the {model.articles:,} articles that were measured; texts are words drawn by "
                "their frequencies there, rare ones made up. They are synthetic and have no meaning."
            ),
            seed=seed,
            scale=scale,
            notes=[
                f"Sizes of generated and of measured articles differ by at most {model.sizes_ks:.3f} (Kolmogorov and Smirnov's distance); the mean of "
                f"those that were measured is {model.mean_bytes:,.0f} bytes.",
                "An article is a function of the seed and its id alone: fewer articles are the first ones of more.",
            ],
        )
    )


def generate(out: Path, seed: int, scale: float, write: WriteFiles) -> Dataset:
    """Generates a share of as many articles as the MapReduce study had, by the generator in the package."""
    articles = articles_at(scale)
    return generate_like(shipped_model(), out, seed=seed, articles=articles, copies=1, write=write, scale=scale)


def articles_at(scale: float) -> int:
    """How many articles a scale stands for, at least one."""
    return max(1, round(ARTICLES_OF_THE_STUDY * scale))
