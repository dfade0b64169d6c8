"""YCSB's properties: read as Java reads them, and what the core workload makes of them."""

from pathlib import Path

import pytest

from sensorbench.errors import UsageError
from sensorbench.stress.ycsb import CoreWorkload, core_workload, overridden, read_properties
from sensorbench.stress.ycsb.properties import Properties


def properties(tmp_path: Path, text: str, *options: str) -> Properties:
    file = tmp_path / "workload"
    file.write_bytes(text.encode("latin-1"))
    return overridden(read_properties(file), options)


# As java.util.Properties documents its format.
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb = 2\nc:3\nd : 4\ne 5\nf\n", {"a": "1", "b": "2", "c": "3", "d": "4", "e": "5", "f": ""}),
        ("# no\n  ! no\n\n \t\na=1 # no comment\n", {"a": "1 # no comment"}),
        ("fruits  apple, \\\n    banana, \\\n    pear\nb=1", {"fruits": "apple, banana, pear", "b": "1"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a\\ b\\:c\\=d=1\\=2", {"a b:c=d": "1=2"}),
        ("a=\\u0041\\t\\n\\q", {"a": "A\t\nq"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\na=2", {"a": "2"}),
        ("a==1", {"a": "=1"}),
        ("a=1\\\n# goes on", {"a": "1# goes on"}),
        ("a=\xe4", {"a": "\xe4"}),
        ("a=1\\", {"a": "1"}),
    ],
)
def test_properties_are_read_as_java_does(tmp_path: Path, text: str, expected: dict[str, str]) -> None:
    assert {key: one.value for key, one in properties(tmp_path, text).items()} == expected


def test_a_value_knows_its_place(tmp_path: Path) -> None:
    found = properties(tmp_path, "# first\na=1\nb=\\\n2\nc=3\n", "c= 4 ", "d=5=6")
    file = tmp_path / "workload"
    assert {key: (one.value, one.place) for key, one in found.items()} == {
        "a": ("1", f"{file}, line 2"),
        "b": ("2", f"{file}, line 3"),
        "c": ("4", "-p c"),
        "d": ("5=6", "-p d"),
    }


@pytest.mark.parametrize("option", ["recordcount", "=3", " =3"])
def test_an_option_is_a_key_and_a_value(option: str) -> None:
    with pytest.raises(UsageError, match="expected key=value"):
        overridden({}, [option])


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nothing: No such file"):
        read_properties(tmp_path / "nothing")


def test_what_nobody_says_is_as_in_ycsb(tmp_path: Path) -> None:
    workload, notes = core_workload(properties(tmp_path, "recordcount=1000\noperationcount=2000\n"))
    assert workload == CoreWorkload(recordcount=1000, operationcount=2000)
    assert (workload.loaded, workload.proportions, notes) == (1000, {"READ": 0.95, "UPDATE": 0.05}, [])
    assert workload.field_names == tuple(f"field{number}" for number in range(10))


def test_what_is_said_counts_and_what_does_not_is_told(tmp_path: Path) -> None:
    text = """
    workload=com.yahoo.ycsb.workloads.CoreWorkload
    recordcount=500
    insertstart=100
    insertcount=200
    readallfields=FALSE
    readproportion=0.5
    updateproportion=0
    scanproportion=0.45
    insertproportion=0.05
    requestdistribution=exponential
    exponential.percentile=90
    exponential.frac=0.5
    fieldnameprefix=f
    fieldcount=2
    measurementtype=hdrhistogram
    cassandra.readconsistencylevel=ONE
    """
    workload, notes = core_workload(properties(tmp_path, text))
    assert (workload.loaded, workload.insertstart, workload.readallfields) == (200, 100, False)
    assert workload.proportions == {"READ": 0.5, "INSERT": 0.05, "SCAN": 0.45}
    assert (workload.requestdistribution, workload.exponential_percentile, workload.exponential_frac) == (
        "exponential",
        90.0,
        0.5,
    )
    assert workload.field_names == ("f0", "f1")
    assert notes == [
        "measurementtype: about YCSB's own output or client, without meaning here",
        "cassandra.readconsistencylevel: no keys of the core workload, not used",
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("recordcount=many", "line 1, recordcount: 'many': expected a whole number"),
        ("recordcount=-1", "line 1, recordcount: '-1': expected at least 0"),
        ("readproportion=half", "readproportion: 'half': expected a number"),
        ("readproportion=nan", "readproportion: 'nan': expected at least 0"),
        ("readallfields=yes", "readallfields: 'yes': expected true or false"),
        ("requestdistribution=zipf", "expected one of uniform, zipfian, latest, hotspot, sequential, exponential"),
        ("fieldlengthdistribution=histogram", "expected one of constant, uniform, zipfian"),
        ("insertorder=random", "expected one of hashed, ordered"),
        ("fieldcount=0", "expected at least 1"),
        ("hotspotdatafraction=1.5", "expected a share, from 0 to 1"),
        ("exponential.percentile=100", "expected above 0 and below 100"),
        ("workload=site.ycsb.workloads.TimeSeriesWorkload", "expected site.ycsb.workloads.CoreWorkload"),
        ("readproportion=0\nupdateproportion=0", "no operation has a proportion above 0"),
        ("minscanlength=5\nmaxscanlength=4", "minscanlength 5 is above maxscanlength 4"),
        ("fieldlengthdistribution=uniform\nminfieldlength=5\nfieldlength=4", "minfieldlength 5 is above fieldlength 4"),
        ("recordcount=10\ninsertstart=5\ninsertcount=6", "insertstart 5 + insertcount 6 is above recordcount 10"),
    ],
)
def test_a_wrong_value_is_told_with_its_place(tmp_path: Path, line: str, expected: str) -> None:
    with pytest.raises(UsageError) as raised:
        core_workload(properties(tmp_path, line))
    assert expected in str(raised.value)
