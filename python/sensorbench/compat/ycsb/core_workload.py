"""What a properties file says of YCSB's core workload (site.ycsb.workloads.CoreWorkload and site.ycsb.Client, version 0.18).

Keys that say how YCSB itself is to work (its measurements, its threads' Java machine) have no meaning here; they are told, and so is every
key that nobody knows. A wrong value is an error, which in YCSB some are not.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeVar, get_args

from sensorbench.compat.ycsb.properties import Properties, Property
from sensorbench.errors import UsageError
from sensorbench.schemas.operations import WORD

RequestDistribution = Literal["uniform", "zipfian", "latest", "hotspot", "sequential", "exponential"]
LengthDistribution = Literal["constant", "uniform", "zipfian"]
ScanDistribution = Literal["uniform", "zipfian"]
InsertOrder = Literal["hashed", "ordered"]

# Classes that are this workload, by their names in old and new versions.
CLASSES = ("site.ycsb.workloads.CoreWorkload", "com.yahoo.ycsb.workloads.CoreWorkload")
# The table of all schemas.
TABLE = "usertable"
# Keys that YCSB has and that say nothing of the load.
WITHOUT_MEANING = (
    "columnfamily",
    "db",
    "dotransactions",
    "exporter",
    "exportfile",
    "fieldlengthhistogram",
    "hdrhistogram.fileoutput",
    "hdrhistogram.output.path",
    "hdrhistogram.percentiles",
    "histogram.buckets",
    "label",
    "latencytrackederrors",
    "measurement.histogram.verbose",
    "measurement.interval",
    "measurement.raw.output_file",
    "measurement.trackjvm",
    "measurementtype",
    "readallfieldsbyname",
    "reportlatencyforeacherror",
    "status.interval",
    "timeseries.granularity",
)


@dataclass(frozen=True)
class CoreWorkload:
    """The core workload. Field names are YCSB's keys, with _ for a dot. `insertcount` is None if all from `insertstart` on are inserted.

    `target` are operations per second, `maxexecutiontime` seconds; 0 is no limit for both.
    """

    recordcount: int = 0
    operationcount: int = 0
    insertstart: int = 0
    insertcount: int | None = None
    table: str = TABLE
    fieldcount: int = 10
    fieldnameprefix: str = "field"
    fieldlength: int = 100
    minfieldlength: int = 1
    fieldlengthdistribution: LengthDistribution = "constant"
    readallfields: bool = True
    writeallfields: bool = False
    readproportion: float = 0.95
    updateproportion: float = 0.05
    insertproportion: float = 0.0
    scanproportion: float = 0.0
    readmodifywriteproportion: float = 0.0
    requestdistribution: RequestDistribution = "uniform"
    minscanlength: int = 1
    maxscanlength: int = 1000
    scanlengthdistribution: ScanDistribution = "uniform"
    insertorder: InsertOrder = "hashed"
    zeropadding: int = 1
    hotspotdatafraction: float = 0.2
    hotspotopnfraction: float = 0.8
    exponential_percentile: float = 95.0
    exponential_frac: float = 0.8571428571
    target: float = 0.0
    threadcount: int = 1
    maxexecutiontime: float = 0.0

    @property
    def loaded(self) -> int:
        """How many records the load phase inserts: those from the first on, if nothing else is said."""
        return max(0, self.recordcount - self.insertstart) if self.insertcount is None else self.insertcount

    @property
    def field_names(self) -> tuple[str, ...]:
        """The names of a record's fields."""
        return tuple(f"{self.fieldnameprefix}{number}" for number in range(self.fieldcount))

    @property
    def proportions(self) -> dict[str, float]:
        """The weight of each kind of operation that has one, by YCSB's names for them."""
        weights = {
            "READ": self.readproportion,
            "UPDATE": self.updateproportion,
            "INSERT": self.insertproportion,
            "SCAN": self.scanproportion,
            "READ-MODIFY-WRITE": self.readmodifywriteproportion,
        }
        return {kind: weight for kind, weight in weights.items() if weight > 0.0}


_KEYS = {field.name.replace("exponential_", "exponential."): field for field in fields(CoreWorkload)}
_NOT_NEGATIVE = (
    "recordcount",
    "operationcount",
    "insertstart",
    "insertcount",
    "target",
    "maxexecutiontime",
    "readproportion",
    "updateproportion",
    "insertproportion",
    "scanproportion",
    "readmodifywriteproportion",
)
_AT_LEAST_ONE = ("fieldcount", "fieldlength", "minfieldlength", "minscanlength", "maxscanlength", "zeropadding", "threadcount")
_SHARES = ("hotspotdatafraction", "hotspotopnfraction", "exponential.frac")

Value = TypeVar("Value")


def parse_core_workload(properties: Properties) -> tuple[CoreWorkload, list[str]]:
    """The workload that properties describe, and what to report of those that were not used. Raises UsageError for a wrong value."""
    _check_class(properties)
    values = {field.name: _value(key, field.type, properties[key]) for key, field in _KEYS.items() if key in properties}
    workload = CoreWorkload(**values)
    _check_together(workload)
    return workload, _notes(properties)


def _check_class(properties: Properties) -> None:
    named = properties.get("workload")
    if named is not None and named.value not in CLASSES:
        raise _wrong("workload", named, f"expected {CLASSES[0]}")


def _value(key: str, of_type: Any, said: Property) -> Any:
    if of_type is bool:
        return _boolean(key, said)
    if get_args(of_type) and all(isinstance(choice, str) for choice in get_args(of_type)):
        if said.value not in get_args(of_type):
            raise _wrong(key, said, f"expected one of {', '.join(get_args(of_type))}")
        return said.value
    if of_type is str:
        if not re.match(WORD, said.value):
            raise _wrong(key, said, "expected a word: letters, digits and underscores, no digit first")
        return said.value
    return _number(key, said, float if of_type is float else int)


def _boolean(key: str, said: Property) -> bool:
    if said.value.lower() not in ("true", "false"):
        raise _wrong(key, said, "expected true or false")
    return said.value.lower() == "true"


def _number(key: str, said: Property, kind: Callable[[str], Value]) -> Value:
    try:
        number: Any = kind(said.value.strip())
    except ValueError:
        raise _wrong(key, said, f"expected a {'whole ' if kind is int else ''}number") from None
    limits = {
        "at least 0": key in _NOT_NEGATIVE and not number >= 0,
        "at least 1": key in _AT_LEAST_ONE and not number >= 1,
        "a share, from 0 to 1": key in _SHARES and not 0.0 <= number <= 1.0,
        "above 0 and below 100": key == "exponential.percentile" and not 0.0 < number < 100.0,
    }
    for expected, is_broken in limits.items():
        if is_broken:
            raise _wrong(key, said, f"expected {expected}")
    found: Value = number
    return found


def _wrong(key: str, said: Property, expected: str) -> UsageError:
    return UsageError(f"{said.place}, {key}: {said.value!r}: {expected}")


def _check_together(workload: CoreWorkload) -> None:
    """What can only be wrong of several keys together."""
    if not workload.proportions:
        raise UsageError("no operation has a proportion above 0: expected one of readproportion, updateproportion, …")
    if workload.minfieldlength > workload.fieldlength and workload.fieldlengthdistribution != "constant":
        raise UsageError(f"minfieldlength {workload.minfieldlength} is above fieldlength {workload.fieldlength}")
    if workload.minscanlength > workload.maxscanlength:
        raise UsageError(f"minscanlength {workload.minscanlength} is above maxscanlength {workload.maxscanlength}")
    if workload.insertstart + workload.loaded > workload.recordcount:
        keys = f"insertstart {workload.insertstart} + insertcount {workload.loaded}"
        raise UsageError(f"{keys} is above recordcount {workload.recordcount}: expected a part of the records")


def _notes(properties: Properties) -> list[str]:
    """What was said and does not count."""
    idle = [key for key in properties if key in WITHOUT_MEANING]
    unknown = [key for key in properties if key not in _KEYS and key not in WITHOUT_MEANING and key != "workload"]
    notes = [f"{', '.join(idle)}: about YCSB's own output or client, without meaning here"] if idle else []
    if "table" in properties and properties["table"].value != TABLE:
        notes.append(f"table: not used; records are in the table {TABLE} of the target's namespace")
    return notes + ([f"{', '.join(unknown)}: no keys of the core workload, not used"] if unknown else [])
