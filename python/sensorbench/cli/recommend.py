"""`sensorbench recommend`: which schema for a need, from measurements."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sensorbench.advisor import (
    EvidenceBundle,
    Prices,
    Recommendation,
    RecommendOptions,
    bytes_of,
    length_s,
    rate_per_s,
    use_cases,
)
from sensorbench.advisor.recommend import recommend as recommended
from sensorbench.analysis.advice import Needs
from sensorbench.analysis.sizing import Assumptions, Load
from sensorbench.cli.evidence import own_evidence
from sensorbench.cli.options import Evidence, Json
from sensorbench.cli.printing import print_json
from sensorbench.cli.recommended import print_recommendation, print_use_cases
from sensorbench.cli.recommended_json import as_json, use_cases_as_json
from sensorbench.errors import UsageError


class HowMany(StrEnum):
    """Of writes or reads."""

    HIGH = "high"
    LOW = "low"


class YesOrNo(StrEnum):
    """An answer."""

    YES = "yes"
    NO = "no"


_DEFAULT = Assumptions()


def recommend(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="Folder of your own results; if not given, bundles of evidence, else the packaged reference.", show_default=False
        ),
    ] = None,
    evidence: Evidence = None,
    writes: Annotated[
        HowMany | None, typer.Option("--writes", help="Rate of writes: are many readings written per second?", show_default=False)
    ] = None,
    reads: Annotated[HowMany | None, typer.Option("--reads", help="Whether much is read.", show_default=False)] = None,
    fresh: Annotated[
        YesOrNo | None,
        typer.Option(
            "--fresh", help="Whether the newest readings are needed at once, not when a batch is full.", show_default=False
        ),
    ] = None,
    read_range: Annotated[
        str | None,
        typer.Option("--range", help="Usual size of a read: a number of readings, or a length of time: 1d.", show_default=False),
    ] = None,
    question: Annotated[
        list[str] | None,
        typer.Option(
            "--question",
            help="Operation of the results that counts as reading. May be given several times.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option("--target", help="Only layouts at this target. May be given several times.", show_default=False),
    ] = None,
    sensors: Annotated[int | None, typer.Option("--sensors", help="How many sensors write.", min=1, show_default=False)] = None,
    rate: Annotated[
        str | None,
        typer.Option("--rate", help="Readings of each sensor: 10 (per second), 1/min, 4/h.", show_default=False),
    ] = None,
    read_rate: Annotated[
        str | None, typer.Option("--read-rate", help="Reads of all clients: 50 (per second), 10/min.", show_default=False)
    ] = None,
    retention: Annotated[
        str | None, typer.Option("--retention", help="Retention of readings: 90d, 2y.", show_default=False)
    ] = None,
    replicas: Annotated[int, typer.Option("--replicas", help="Copies of each reading.", min=1)] = _DEFAULT.copies,
    headroom: Annotated[
        float, typer.Option("--headroom", help="Share of the measured rates to keep free.", min=0.0, max=0.99)
    ] = _DEFAULT.headroom,
    disk_fill: Annotated[
        float,
        typer.Option(
            "--disk-fill",
            help="Maximum fill of a disk (of memory, if all data are there).",
            min=0.01,
            max=1.0,
        ),
    ] = _DEFAULT.fill,
    node_disk: Annotated[str, typer.Option("--node-disk", help="Disk of a node.")] = "1TB",
    node_memory: Annotated[str, typer.Option("--node-memory", help="Memory of a node.")] = "64GB",
    node_price: Annotated[
        float | None,
        typer.Option("--node-price", help="Price of a node, in any currency and period.", show_default=False),
    ] = None,
    disk_price: Annotated[
        float | None,
        typer.Option(
            "--disk-price", help="Price of a GB of disk, on top of the node, in the same currency.", min=0.0, show_default=False
        ),
    ] = None,
    list_use_cases: Annotated[
        bool, typer.Option("--use-cases", help="List the six use cases of the sensor-schema study, with its advice and ours.")
    ] = False,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Explain the ranking: how scores come about, what was left out and why, and the runs behind each."
        ),
    ] = False,
    extrapolate: Annotated[
        bool,
        typer.Option("--extrapolate", help="Also answer needs more than ten times outside what was measured."),
    ] = False,
    json: Json = False,
) -> None:
    """Recommend a schema for a need, from your own results (FOLDER), bundles of evidence, or the packaged reference. Without --writes,
    --reads and --fresh: the six use cases of the sensor-schema study.
    """
    targets = tuple(target or ())
    if folder is not None and evidence:
        raise UsageError("--evidence: give either a folder of results or bundles of evidence; bundle the results to use both")
    bundles = own_evidence(evidence)
    if list_use_cases or (writes is None and reads is None and fresh is None):
        _print_use_cases(folder, targets, bundles, json=json)
        return
    if writes is None or reads is None or fresh is None:
        missing = [f"{name} {values}" for name, value, values in _options(writes, reads, fresh) if value is None]
        raise UsageError(f"expected {' and '.join(missing)} as well; or none of the three, for a list of use cases")
    sensor_per_s = rate_per_s(rate, "--rate") if rate is not None else None
    range_readings, range_s = _range(read_range)
    options = RecommendOptions(
        needs=Needs(writes.value, reads.value, fresh is YesOrNo.YES, range_readings, tuple(dict.fromkeys(question or ()))),
        range_s=range_s,
        sensor_per_s=sensor_per_s,
        load=_load(sensors, sensor_per_s, read_rate, retention),
        assumed=Assumptions(
            replicas,
            headroom,
            disk_fill,
            bytes_of(node_disk, "--node-disk"),
            bytes_of(node_memory, "--node-memory"),
        ),
        prices=_prices(node_price, disk_price),
        targets=targets,
        sensors=sensors,
        extrapolates=extrapolate,
    )
    _check(options)
    recommendation: Recommendation = recommended(options, folder, bundles)
    if json:
        print_json(as_json(recommendation))
    else:
        print_recommendation(recommendation, explain=explain)


def _print_use_cases(folder: Path | None, targets: tuple[str, ...], bundles: Sequence[EvidenceBundle], *, json: bool) -> None:
    source, outcomes = use_cases(folder, targets, bundles)
    if json:
        print_json(use_cases_as_json(source, outcomes))
    else:
        print_use_cases(source, outcomes)


def _options(
    writes: HowMany | None, reads: HowMany | None, fresh: YesOrNo | None
) -> list[tuple[str, HowMany | YesOrNo | None, str]]:
    return [("--writes", writes, "high|low"), ("--reads", reads, "high|low"), ("--fresh", fresh, "yes|no")]


def _range(text: str | None) -> tuple[float | None, float | None]:
    """The range in readings, or in seconds."""
    if text is None:
        return None, None
    if not text.isdigit():
        try:
            return None, length_s(text, "--range")
        except UsageError:
            raise UsageError(
                f"--range {text}: expected a number of readings, or a length of time such as 30m, 12h or 1d"
            ) from None
    if int(text) == 0:
        raise UsageError("--range 0: expected at least one reading")
    return float(text), None


def _load(sensors: int | None, sensor_per_s: float | None, read_rate: str | None, retention: str | None) -> Load | None:
    """The load, which needs both the sensors and their rate."""
    if sensors is not None and sensor_per_s is None:
        raise UsageError("--sensors: give the readings of each sensor with --rate, for example --rate 1/min")
    if sensors is None:
        for name, value in (("--retention", retention), ("--read-rate", read_rate)):
            if value is not None:
                raise UsageError(f"{name} {value}: for nodes, disk and memory, give --sensors and --rate as well")
        return None
    return Load(
        readings_per_s=sensors * (sensor_per_s or 0.0),
        reads_per_s=rate_per_s(read_rate, "--read-rate") if read_rate is not None else None,
        retention_s=length_s(retention, "--retention") if retention is not None else None,
    )


def _prices(node: float | None, disk_gb: float | None) -> Prices | None:
    if node is None and disk_gb is not None:
        raise UsageError("--disk-price is the price of disk on top of that of a node: give --node-price as well")
    if node is not None and node <= 0.0:
        raise UsageError(f"--node-price {node:g}: expected a price above 0")
    return None if node is None else Prices(node, disk_gb or 0.0)


def _check(options: RecommendOptions) -> None:
    """Raises UsageError for options that have no use without others."""
    if options.prices is not None and options.load is None:
        raise UsageError("--node-price needs a load, from which the number of nodes follows: give --sensors and --rate as well")
    if options.sensor_per_s is not None and options.load is None and options.range_s is None:
        raise UsageError("--rate: give the number of sensors that write at this rate with --sensors")
