"""`sensorbench ycsb`: YCSB's core workloads on any database, by its own properties files."""

from pathlib import Path
from typing import Annotated

import typer

from sensorbench.cli.options import Metrics, Out, Replace
from sensorbench.cli.output import new_folder
from sensorbench.compat.ycsb import (
    Phase,
    YcsbSpec,
    as_text,
    carry_out,
    operations_of_phase,
    overridden,
    parse_core_workload,
    read_all_properties,
)
from sensorbench.progress import ProgressReporter
from sensorbench.results.files import write_text
from sensorbench.runner import FILE_URL, SERVER_URL, observers

app = typer.Typer(help="Run YCSB's core workloads by its properties files.", no_args_is_help=True)

TEXT_FILE = "ycsb.txt"

Files = Annotated[
    list[Path] | None,
    typer.Option("-P", help="A properties file. May be given several times; the later one counts.", show_default=False),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "-p", help="A property, key=value; it counts before those of files. May be given several times.", show_default=False
    ),
]
TargetOption = Annotated[str, typer.Option("--target", help=f"lab:NAME or a URL: {SERVER_URL}, {FILE_URL}.")]
Seed = Annotated[int, typer.Option("--seed", help="From which all operations follow.")]
YcsbZipfian = Annotated[
    bool,
    typer.Option("--ycsb-zipfian", help="Choose zipfian records as YCSB's own generator does; else by the exact distribution."),
]


@app.command("load")
def load(
    target: TargetOption,
    files: Files = None,
    properties: Overrides = None,
    seed: Seed = 1,
    metrics: Metrics = None,
    out: Out = None,
    replace: Replace = False,
) -> None:
    """Insert the records of a workload, one operation each."""
    _carry_out("load", target, files, properties, seed, metrics, out, ycsb_zipfian=False, replace=replace)


@app.command("run")
def run(
    target: TargetOption,
    files: Files = None,
    properties: Overrides = None,
    seed: Seed = 1,
    ycsb_zipfian: YcsbZipfian = False,
    metrics: Metrics = None,
    out: Out = None,
) -> None:
    """Carry out the transactions of a workload on records that were loaded."""
    _carry_out("run", target, files, properties, seed, metrics, out, ycsb_zipfian=ycsb_zipfian, replace=False)


def _carry_out(
    phase: Phase,
    target: str,
    files: list[Path] | None,
    options: list[str] | None,
    seed: int,
    metrics: str | None,
    out: Path | None,
    *,
    ycsb_zipfian: bool,
    replace: bool,
) -> None:
    workload, notes = parse_core_workload(overridden(read_all_properties(files or ()), options or []))
    reporter = ProgressReporter()
    for note in notes:
        reporter.warn(note)
    folder = out or new_folder(f"ycsb-{phase}")
    spec = YcsbSpec(workload, phase, target, seed, ycsb_zipfian=ycsb_zipfian, replace=replace)
    with observers(metrics) as watching:
        result = carry_out(spec, folder, reporter, watching)
    text = as_text(result, operations_of_phase(workload, phase))
    write_text(folder / TEXT_FILE, text)
    typer.echo(text, nl=False)
    reporter.say(f"results: {folder}")
