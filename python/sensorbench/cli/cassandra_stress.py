"""`sensorbench cassandra-stress`: profiles of cassandra-stress' user mode, on sensorbench's engine."""

from pathlib import Path
from typing import Annotated

import typer

from sensorbench.cli.options import Metrics, Out, Replace, length_s
from sensorbench.cli.output import new_folder
from sensorbench.compat.cassandra_stress import (
    CassandraStressSpec,
    Partitions,
    as_text,
    carry_out,
    parse_operations,
    parse_partitions,
    parse_rate,
    read_profile,
)
from sensorbench.errors import UsageError
from sensorbench.progress import ProgressReporter
from sensorbench.results.files import write_text
from sensorbench.runner import SERVER_URL, observers

TEXT_FILE = "cassandra-stress.txt"
CONSISTENCIES = ("any", "one", "two", "three", "quorum", "all", "local_one", "local_quorum", "each_quorum")


def cassandra_stress(
    profile: Annotated[Path, typer.Argument(help="The profile, a YAML file.", show_default=False)],
    target: Annotated[str, typer.Option("--target", help=f"lab:NAME or a URL: {SERVER_URL}.")],
    ops: Annotated[str, typer.Option("--ops", help="What is done how often: insert=1,QUERY=2.")] = "insert=1",
    operations: Annotated[
        int | None, typer.Option("--operations", "-n", min=1, help="How many operations.", show_default=False)
    ] = None,
    duration: Annotated[str | None, typer.Option("--duration", help="How long: 30s, 5m.", show_default=False)] = None,
    population: Annotated[
        str | None,
        typer.Option(
            "--population",
            help="Partitions: 1..N one after the other, or a distribution: 'gaussian(1..N)'. If not given, insertions alone "
            "write to as many as they need, and other operations are gaussian over those.",
            show_default=False,
        ),
    ] = None,
    rate: Annotated[
        str | None, typer.Option("--rate", help="Operations a second, whether or not others are answered.", show_default=False)
    ] = None,
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Operations in flight (with --rate, at most).")] = 64,
    consistency: Annotated[str, typer.Option("--cl", help="Consistency level.")] = "local_one",
    seed: Annotated[int, typer.Option("--seed", help="From which all rows and operations follow.")] = 1,
    metrics: Metrics = None,
    out: Out = None,
    replace: Replace = False,
) -> None:
    """Run a profile of cassandra-stress: insertions alone make the table, other operations go on with what they left."""
    read, notes = read_profile(profile)
    spec = CassandraStressSpec(
        profile=read,
        weights=parse_operations(ops, read),
        target=target,
        operations=operations,
        duration_s=None if duration is None else length_s("--duration", duration),
        partitions=_partitions(population),
        rate_per_s=None if rate is None else parse_rate(rate),
        concurrency=concurrency,
        consistency=_level(consistency),
        seed=seed,
        replace=replace,
    )
    if operations is None and duration is None:
        raise UsageError("the run has no end: expected --operations or --duration")
    reporter = ProgressReporter()
    for note in notes:
        reporter.warn(note)
    reporter.say(
        f"the keyspace {read.keyspace.name} of the profile is sensorbench's own here (namespace= in the URL names another)"
    )
    folder = out or new_folder("cassandra-stress")
    with observers(metrics) as watching:
        result, planned = carry_out(spec, folder, reporter, watching)
    text = as_text(result, planned)
    write_text(folder / TEXT_FILE, text)
    typer.echo(text, nl=False)
    reporter.say(f"results: {folder}")


def _partitions(text: str | None) -> Partitions | None:
    try:
        return None if text is None else parse_partitions(text)
    except ValueError as error:
        raise UsageError(f"--population {text}: expected FIRST..LAST or a distribution ({error})") from None


def _level(text: str) -> str:
    if text.lower() not in CONSISTENCIES:
        raise UsageError(f"--cl {text}: expected one of {', '.join(CONSISTENCIES)}")
    return text.lower()
