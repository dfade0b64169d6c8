"""The job of the MapReduce study on Spark: an inverted index for one word, as two chained jobs whose intermediate result lies in the database."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensorbench.spark.connector import JAVA_FOLDER, Place, compiled
from sensorbench.spark.stages import Stages, stages_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ARTICLES, OCCURRENCES, COUNTS = "articles", "occurrences", "counts"
# Columns of the tables, in the words of Spark's SQL.
COLUMNS = {
    ARTICLES: "id bigint, text string",
    OCCURRENCES: "word string, part bigint, ids string",
    COUNTS: "word string, id bigint, n bigint",
}
# The list of a word lies in parts, each of the ids of this many articles: that of a very frequent word in whole is larger than what
# databases take as one value (MongoDB 16 MB, HBase 10 MB, Cassandra half of a segment of its log).
ARTICLES_A_PART = 100
FIRST_JOB, SECOND_JOB = "job 1", "job 2"


@dataclass(frozen=True)
class Word:
    """What is looked for: the word, and the regular expression that whole tokens are compared with (`mapreduce.words`)."""

    text: str
    pattern: str


@dataclass(frozen=True)
class Counted:
    """What came through a connector, counted row by row by an accumulator. `bytes` are those of the text column in UTF-8."""

    rows: int
    bytes: int


@dataclass(frozen=True)
class JobFigures:
    """One of the two jobs: what it took in all (s), its stages, what it read, and of the second how many elements the lists had."""

    name: str
    duration_s: float
    read: Counted
    elements: int
    stages: Stages


def tally_jar() -> Path:
    """The jar with the counter, which every application needs. Raises FailedError."""
    return compiled(JAVA_FOLDER / "Tally.java", [])


class InvertedIndex:
    """Carries the jobs out on tables at a place, which must be empty but for the articles."""

    def __init__(self, spark: "SparkSession", place: Place, articles: int, splits: int, blanks: str) -> None:
        """`articles`: how many, with ids from 1 on; `splits`: into how many a table is split by a connector that takes their number; `blanks`: a regular expression."""
        self._spark = spark
        self._place = place
        self._articles = articles
        self._splits = splits
        self._blanks = blanks

    def empty(self) -> None:
        """Removes what earlier jobs stored."""
        for table in (OCCURRENCES, COUNTS):
            self._place.empty(self._spark, table, COLUMNS[table])

    def first_job(self, word: Word) -> JobFigures:
        """Map 1 and Reduce 1: the ids of the articles in which the word occurs, once for each occurrence, stored as lists."""
        from pyspark.sql import functions as f

        with self._job(FIRST_JOB) as job:
            articles = job.counted(self._read(ARTICLES, "id", 1, self._articles + 1), "text")
            tokens = articles.select("id", f.explode(f.split("text", self._blanks)).alias("token"))
            occurrences = tokens.where(f.col("token").rlike(word.pattern)).select(
                f.lit(word.text).alias("word"), f.expr(f"id div {ARTICLES_A_PART}").alias("part"), "id"
            )
            lists = occurrences.groupBy("word", "part").agg(
                f.concat_ws(" ", f.collect_list(f.col("id").cast("string"))).alias("ids")
            )
            self._place.append(lists, OCCURRENCES)
        return job.figures()

    def second_job(self, word: Word) -> JobFigures:
        """Map 2 and Reduce 2: the stored lists are read again, and the occurrences in each article are summed and stored."""
        from pyspark.sql import functions as f

        with self._job(SECOND_JOB) as job:
            lists = job.counted(self._read(OCCURRENCES, "part", 0, self._articles // ARTICLES_A_PART + 1), "ids")
            split = lists.where(f.col("word") == word.text).select("word", f.explode(f.split("ids", " ")).alias("id"))
            elements = job.with_elements(split, "id")
            ones = elements.select("word", f.col("id").cast("bigint").alias("id"), f.lit(1).cast("bigint").alias("one"))
            self._place.append(ones.groupBy("word", "id").agg(f.sum("one").alias("n")), COUNTS)
        return job.figures()

    def counts(self) -> dict[int, int]:
        """The final pairs, read from the database."""
        return {row["id"]: row["n"] for row in self._read(COUNTS, "id", 1, self._articles + 1).select("id", "n").collect()}

    def _read(self, table: str, key: str, low: int, high: int) -> "DataFrame":
        return self._place.read(
            self._spark, table, COLUMNS[table], key=key, low=str(low), high=str(high), splits=str(self._splits)
        )

    @contextmanager
    def _job(self, name: str) -> Iterator["_Job"]:
        job = _Job(self._spark, name)
        yield job
        job.end()


class _Job:
    """A job under way: its jobs of Spark are distinguished from others by a group, and what passes is counted by accumulators."""

    def __init__(self, spark: "SparkSession", name: str) -> None:
        context: Any = spark.sparkContext
        self._spark: Any = spark
        self._context = context
        self._name = name
        self._group = f"{name} {context._jsc.sc().newRddId()}"
        self._begun_s = time.monotonic()
        self._ended_s = self._begun_s
        self._read = _Tally(spark, "tally_rows")
        self._elements = _Tally(spark, "tally_elements")
        context.setJobGroup(self._group, name)

    def counted(self, rows: "DataFrame", column: str) -> "DataFrame":
        """The same rows, counted as they come, with the bytes of a column."""
        return self._read.over(rows, column)

    def with_elements(self, rows: "DataFrame", column: str) -> "DataFrame":
        """The same rows, counted as elements of lists."""
        return self._elements.over(rows, column)

    def end(self) -> None:
        self._ended_s = time.monotonic()

    def figures(self) -> JobFigures:
        return JobFigures(
            self._name,
            self._ended_s - self._begun_s,
            Counted(self._read.rows, self._read.sum),
            self._elements.rows,
            stages_of(self._context, self._group),
        )


class _Tally:
    """A condition of Spark's SQL that is always true, and counts. It is not deterministic, so that it stays where it is in the plan."""

    def __init__(self, spark: Any, name: str) -> None:
        context = spark.sparkContext
        self._name = name
        self._rows, self._sum = (context._jsc.sc().longAccumulator(f"{name} {what}") for what in ("rows", "sum"))
        java = context._jvm
        tally = java.sensorbench.Tally(self._rows, self._sum)
        java.sensorbench.Tally.register(spark._jsparkSession, name, tally)

    def over(self, rows: "DataFrame", column: str) -> "DataFrame":
        return rows.where(f"{self._name}(octet_length({column}))")

    @property
    def rows(self) -> int:
        return int(self._rows.value())

    @property
    def sum(self) -> int:
        return int(self._sum.value())
