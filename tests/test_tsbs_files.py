"""TSBS's own files: what is imported is what they say, line protocol that is exported is imported again, and bad lines are named."""

import bz2
import gzip
import json
import re
import shutil
import tracemalloc
from pathlib import Path

import pytest

from sensorbench.dataset import Dataset, compressed, open_dataset
from sensorbench.dataset.export import export
from sensorbench.dataset.registry import import_files
from sensorbench.dataset.tsbs import CPU_FIELDS
from sensorbench.dataset.tsbs_devops import FIELDS as DEVOPS_FIELDS
from sensorbench.errors import UsageError
from tests.conftest import Cli

FIELDS = ",".join(CPU_FIELDS)
TAGS = ["hostname", "region", "datacenter", "rack", "os", "arch", "team", "service", "service_version", "service_environment"]
HOST_0 = "hostname=host_0,region=sa-east-1,datacenter=sa-east-1c,rack=12,os=Ubuntu16.10,arch=x64,team=LON,service=3,service_version=0,service_environment=production"
HOST_1 = "hostname=host_1,region=us-west-2,datacenter=us-west-2b,rack=70,os=Ubuntu16.04LTS,arch=x86,team=CHI,service=11,service_version=1,service_environment=test"
NS = 1_451_606_400_000_000_000
HEADER = f"tags,{','.join(f'{tag} string' for tag in TAGS)}\ncpu,{FIELDS}\n\n"
PAIRS = f"{HEADER}tags,{HOST_0}\ncpu,{NS},10,11,12,13,14,15,16,17,18,19\ntags,{HOST_1}\ncpu,{NS},20,21,22,,24,25,26,27,28,29\n"


def line(host: str, ns: int, values: dict[str, str]) -> str:
    return f"cpu,{host} {','.join(f'{name}={value}' for name, value in values.items())} {ns}\n"


LINES = line(HOST_0, NS, {name: f"{10 + number}i" for number, name in enumerate(CPU_FIELDS)}) + line(
    HOST_1, NS, {name: f"{20 + number}i" for number, name in enumerate(CPU_FIELDS) if number != 3}
)


def imported(tmp_path: Path, content: str | bytes, *, skip_bad_rows: bool = False) -> Dataset:
    file = tmp_path / "data.txt"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return import_files([str(file)], tmp_path / "imported", skip_bad_rows=skip_bad_rows)


@pytest.mark.parametrize(
    "content",
    [PAIRS, LINES, LINES.rstrip("\n"), gzip.compress(PAIRS.encode()), bz2.compress(LINES.encode())],
    ids=["pairs", "lines", "no newline at the end", "gzip", "bzip2"],
)
def test_both_forms_say_the_same(tmp_path: Path, content: str | bytes) -> None:
    dataset = imported(tmp_path, content)
    described = dataset.describe()
    assert (described.name, described.readings, described.values_per_reading) == ("tsbs", 2, 10)
    assert described.counted == {"rows": 2, "metrics": 20, "metrics_not_null": 19, "bad_lines": 0}
    with dataset.connect() as connection:
        rows = connection.sql("SELECT * EXCLUDE (time), epoch_us(time) * 1000 FROM cpu ORDER BY zone").fetchall()
        assert rows == [
            (9, 0, *map(float, range(10, 20)), NS),
            (3, 1, 20.0, 21.0, 22.0, None, *map(float, range(24, 30)), NS),
        ]
        hosts = connection.sql("SELECT * FROM hosts").fetchall()
        assert [",".join(map("=".join, zip(TAGS, host[2:], strict=True))) for host in hosts] == [HOST_0, HOST_1]
        assert connection.sql("SELECT count(*) FROM measurements").fetchall() == [(19,)]


@pytest.mark.parametrize(
    ("content", "number", "why"),
    [
        (PAIRS.replace(",24,", ",x,"), 7, "expected a time in ns and 10 numbers"),
        (PAIRS.replace(",19\n", "\n"), 5, "expected a time in ns and 10 numbers"),
        (PAIRS.replace("host_1", "server_1"), 7, "expected host_ and a number"),
        (PAIRS.replace("sa-east-1,", "mars,"), 5, "region=mars; expected one of us-east-1"),
        (PAIRS.replace(f"tags,{HOST_1}\n", ""), 6, "expected tags,hostname"),
        (PAIRS.replace(f"tags,{HOST_0}\n", 2 * f"tags,{HOST_0}\n"), 5, "the line before has its tags"),
        (PAIRS + f"tags,{HOST_0}\n", 9, "the file ends after the tags"),
        (PAIRS.replace(f"{NS},20", f"{NS + 1},20"), 7, "whole microseconds"),
        (
            PAIRS + f"tags,{HOST_1.replace('rack=70', 'rack=71')}\ncpu,{NS},1,2,3,4,5,6,7,8,9,10\n",
            9,
            "other tags than in a row before",
        ),
        (LINES.replace("usage_idle=12i", "usage_idel=12i"), 1, "no field 'usage_idel'"),
        (LINES.replace(f" {NS}", "", 1), 1, "with a blank between"),
        (LINES.replace("usage_user=20i", "usage_user=often"), 2, "10 numbers"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, content: str, number: int, why: str) -> None:
    with pytest.raises(UsageError, match=f"data.txt, line {number}: .*{re.escape(why)}"):
        imported(tmp_path, content)
    assert not (tmp_path / "imported").exists()
    assert imported(tmp_path, content, skip_bad_rows=True).describe().counted["bad_lines"] == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no dataset that is known|line 1"),
        (PAIRS.replace("rack string", "shelf string"), "line 1: the tags are"),
        (PAIRS.replace("usage_steal,", ""), "line 2: the fields of cpu are"),
        (gzip.compress(PAIRS.encode())[:-30], "end too early|line 1"),
        (HEADER, "no row of the measurement cpu"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: str | bytes, message: str) -> None:
    file = tmp_path / "data.txt"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(UsageError, match=message):
        import_files(["tsbs", str(file)], tmp_path / "imported", skip_bad_rows=False)


def test_rows_of_other_measurements_are_counted(tmp_path: Path) -> None:
    more = f"tags,{HOST_0}\nweather,{NS},1,2\n" * 3
    notes = imported(tmp_path, PAIRS + more).describe().notes
    assert "left out: 3 of weather." in notes[0]


# Rows of two measurements, of which one has tags of its own.
DISK_TAGS = "path=/dev/sda3,fstype=ext4"
MEM = "8589934592,6000000000,2589934592,6000000000,1,2,30.150813609361649,69.84918639063835,2.3283064365386963e-08"
DEVOPS_PAIRS = (
    f"tags,{','.join(f'{tag} string' for tag in TAGS)}\ncpu,{FIELDS}\n"
    + "".join(f"{name},{','.join(fields)}\n" for name, fields in DEVOPS_FIELDS.items() if name != "cpu")
    + "\n"
    + PAIRS.partition("\n\n")[2]
    + f"tags,{HOST_0},{DISK_TAGS}\ndisk,{NS},1099511627776,10,1099511627766,99,268435456,0,268435456\ntags,{HOST_1}\nmem,{NS},{MEM}\n"
)
DEVOPS_LINES = (
    LINES
    + f"disk,{HOST_0},{DISK_TAGS} total=1099511627776i,free=10i,used=1099511627766i,used_percent=99i,inodes_total=268435456i,inodes_free=0i,"
    + f"inodes_used=268435456i {NS}\n"
    + f"mem,{HOST_1} {','.join(f'{name}={value}' for name, value in zip(DEVOPS_FIELDS['mem'], MEM.split(','), strict=True))} {NS}\n"
)


@pytest.mark.parametrize("content", [DEVOPS_PAIRS, DEVOPS_LINES], ids=["pairs", "lines"])
def test_files_with_more_than_cpu_become_all_relations_of_servers(tmp_path: Path, content: str) -> None:
    described = imported(tmp_path, content).describe()
    rows = {name: relation.rows for name, relation in described.relations.items()}
    assert rows == {**dict.fromkeys(DEVOPS_FIELDS, 0), "cpu": 2, "disk": 1, "mem": 1, "hosts": 2}
    assert (described.readings, described.counted["metrics"], described.counted["metrics_not_null"]) == (4, 36, 35)
    with Dataset.at(tmp_path / "imported").connect() as connection:
        assert connection.sql("SELECT free, used FROM disk").fetchall() == [(10.0, 1099511627766.0)]
        assert connection.sql("SELECT zone, used_percent, buffered_percent FROM mem").fetchall() == [
            (1, 30.150813609361649, 2.3283064365386963e-08)
        ]
        hosts = connection.sql("SELECT name, disk_path, disk_fstype, redis_port FROM hosts").fetchall()
        # What no row says is null.
        assert hosts == [("host_0", "/dev/sda3", "ext4", None), ("host_1", None, None, None)]
        assert connection.sql("SELECT count(*) FROM measurements").fetchall() == [(35,)]


def test_a_bad_line_of_a_measurement_is_named(tmp_path: Path) -> None:
    for content, number, why in (
        (DEVOPS_LINES.replace("fstype=ext4", "fstype=ext9") + f"disk,{HOST_0},{DISK_TAGS} total=1i {NS}\n", 5, "other tags than in a row before"),
        (DEVOPS_LINES.replace("inodes_free=0i", "inodes=0i"), 3, "disk has no field 'inodes'"),
        (DEVOPS_PAIRS.replace("disk,total", "disk,whole"), 4, "the fields of disk are whole"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=f"data.txt, line {number}: .*{re.escape(why)}"):
            imported(tmp_path, content)


def test_exported_lines_of_servers_come_in_tsbs_order_and_are_imported_again(cli: Cli, tmp_path: Path) -> None:
    name = "tsbs-devops:hosts=5,duration=10m"
    ended = cli("data", "export", name, "--format", "influx", "--out", tmp_path / "lines")
    assert ended.exit_code == 0, ended.err
    file = tmp_path / "lines" / "devops.lp"
    lines = file.read_text(encoding="utf-8").splitlines()
    # Interval by interval, measurement by measurement, host by host.
    order = [re.match(r"(\w+),hostname=host_(\d+),", line) for line in lines[: 2 * 9 * 5]]
    assert [(found[1], int(found[2])) for found in order if found] == [
        (of, host) for of in DEVOPS_FIELDS for host in range(5)
    ] * 2
    assert re.fullmatch(
        r"disk,.*,path=/dev/sda\d,fstype=\w+ total=1099511627776i,free=549755813888i,.* 1451606400000000000", lines[10]
    )
    assert re.fullmatch(
        r"mem,.* total=\d+i(,\w+=\d+i){5},used_percent=[\d.]+,available_percent=[\d.]+,buffered_percent=[\d.]+ \d+", lines[20]
    )
    ended = cli("data", "import", file, "--out", tmp_path / "imported", "--json")
    assert ended.exit_code == 0, ended.err
    with open_dataset(name).connect() as generated, open_dataset(str(tmp_path / "imported")).connect() as again:
        for relation in (*DEVOPS_FIELDS, "hosts"):
            query = f"SELECT * FROM {relation} ORDER BY ALL"
            assert again.sql(query).fetchall() == generated.sql(query).fetchall(), relation


def test_files_of_one_metric_are_a_dataset_of_their_own(tmp_path: Path) -> None:
    generated = open_dataset("tsbs-cpu-single:hosts=3,duration=10m")
    (file,) = export(generated, "influx", tmp_path / "lines")
    assert re.match(r"cpu,hostname=host_0,region=\S+ usage_user=\d+i 1451606400000000000\n", file.read_text(encoding="utf-8"))
    pairs = f"tags,{','.join(f'{tag} string' for tag in TAGS)}\ncpu,usage_user\n\ntags,{HOST_0}\ncpu,{NS},10\n"
    assert imported(tmp_path, pairs).describe().counted["metrics"] == 1
    again = import_files([str(file)], tmp_path / "again", skip_bad_rows=False)
    with generated.connect() as before, again.connect() as after:
        query = "SELECT * FROM cpu ORDER BY ALL"
        assert after.sql(query).fetchall() == before.sql(query).fetchall()


def test_exported_lines_of_trucks_are_imported_again(tmp_path: Path) -> None:
    generated = open_dataset("tsbs-iot:trucks=7,duration=20m")
    (file,) = export(generated, "influx", tmp_path / "lines")
    again = import_files([str(file)], tmp_path / "imported", skip_bad_rows=False)
    with generated.connect() as before, again.connect() as after:
        for relation in ("readings", "diagnostics"):
            # Rows without a name have numbers, but no lines.
            query = f"SELECT * EXCLUDE (arrival) FROM {relation} ORDER BY arrival"
            assert after.sql(query).fetchall() == before.sql(query).fetchall()
        query = "SELECT * FROM trucks ORDER BY zone"
        assert after.sql(query).fetchall() == before.sql(query).fetchall()


def test_exported_lines_are_imported_again(cli: Cli, tmp_path: Path) -> None:
    name = "tsbs-cpu-only:hosts=7,duration=20m"
    ended = cli("data", "export", name, "--format", "influx", "--out", tmp_path / "lines")
    assert ended.exit_code == 0, ended.err
    file = tmp_path / "lines" / "cpu.lp"
    first = file.read_text(encoding="utf-8").split("\n", 1)[0]
    assert re.fullmatch(r"cpu,hostname=host_0,region=\S+ usage_user=\d+i(,usage_\w+=\d+i){9} 1451606400000000000", first)
    ended = cli("data", "import", file, "--out", tmp_path / "imported", "--json")
    assert ended.exit_code == 0, ended.err
    assert json.loads(ended.out)["relations"]["cpu"]["rows"] == 7 * 120
    with open_dataset(name).connect() as generated, open_dataset(str(tmp_path / "imported")).connect() as again:
        for query in ("SELECT * FROM cpu ORDER BY time, zone", "SELECT * FROM hosts ORDER BY zone"):
            assert again.sql(query).fetchall() == generated.sql(query).fetchall()


def test_memory_does_not_grow_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compressed, "CHUNK_BYTES", 32 << 10)

    def peak(times: int) -> int:
        file = tmp_path / f"{times}.lp"
        file.write_text(LINES * (250 * times), encoding="utf-8")
        tracemalloc.start()
        try:
            import_files([str(file)], tmp_path / str(times), skip_bad_rows=False)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    # What is loaded once is not counted.
    peak(1)
    shutil.rmtree(tmp_path / "1")
    assert peak(8) < 1.5 * peak(1)


def test_null_fields_are_left_out_of_lines(tmp_path: Path) -> None:
    dataset = imported(tmp_path, PAIRS)
    (file,) = export(dataset, "influx", tmp_path / "lines")
    assert file.read_text(encoding="utf-8") == LINES


TRUCK_TAGS = ["name", "fleet", "driver", "model", "device_version", "load_capacity", "fuel_capacity", "nominal_fuel_consumption"]
TRUCK_HEADER = (
    f"tags,{','.join(f'{tag} string' for tag in TRUCK_TAGS[:5])},{','.join(f'{tag} float32' for tag in TRUCK_TAGS[5:])}\n"
    f"diagnostics,fuel_state,current_load,status\nreadings,latitude,longitude,elevation,velocity,heading,grade,fuel_consumption\n\n"
)
# The first row lacks the fleet that its site is of, the third one the name, and the last one a field.
TRUCK_PAIRS = (
    TRUCK_HEADER
    + f"tags,name=truck_7,fleet=,driver=Seth,model=H-2,device_version=v2.3,load_capacity=1500,fuel_capacity=150,nominal_fuel_consumption=12\n"
    f"readings,{NS},52.5,13.1,100,3,9,0,25.5\n"
    f"tags,name=truck_7,fleet=North,driver=Seth,model=H-2,device_version=v2.3,load_capacity=1500,fuel_capacity=150,nominal_fuel_consumption=12\n"
    f"diagnostics,{NS},0.9,400,0\n"
    f"tags,name=,fleet=North,driver=Seth,model=H-2,device_version=v2.3,load_capacity=1500,fuel_capacity=150,nominal_fuel_consumption=12\n"
    f"diagnostics,{NS + 10**10},0.9,400,0\n"
    f"tags,name=truck_7,fleet=North,driver=Seth,model=H-2,device_version=v2.3,load_capacity=1500,fuel_capacity=,nominal_fuel_consumption=12\n"
    f"readings,{NS - 10**10},52.5,13.2,,3,9,0,25.5\n"
)
_NUMBERS = "load_capacity=1500,fuel_capacity=150,nominal_fuel_consumption=12"
TRUCK_LINES = (
    f"readings,name=truck_7,driver=Seth,model=H-2,device_version=v2.3 {_NUMBERS},latitude=52.5,longitude=13.1,elevation=100,velocity=3,heading=9,grade=0,fuel_consumption=25.5 {NS}\n"
    f"diagnostics,name=truck_7,fleet=North,driver=Seth,model=H-2,device_version=v2.3 {_NUMBERS},fuel_state=0.9,current_load=400,status=0i {NS}\n"
    f"diagnostics,fleet=North,driver=Seth,model=H-2,device_version=v2.3 {_NUMBERS},fuel_state=0.9,current_load=400,status=0i {NS + 10**10}\n"
    f"readings,name=truck_7,fleet=North,driver=Seth,model=H-2,device_version=v2.3 load_capacity=1500,nominal_fuel_consumption=12,latitude=52.5,longitude=13.2,velocity=3,heading=9,grade=0,fuel_consumption=25.5 {NS - 10**10}\n"
)


@pytest.mark.parametrize("content", [TRUCK_PAIRS, TRUCK_LINES], ids=["pairs", "lines"])
def test_rows_of_trucks_keep_their_order_and_may_lack_a_tag(tmp_path: Path, content: str) -> None:
    dataset = imported(tmp_path, content)
    described = dataset.describe()
    assert described.counted == {"rows": 3, "metrics": 17, "metrics_not_null": 16, "bad_lines": 0, "nameless_rows": 1}
    with dataset.connect() as connection:
        columns = "* EXCLUDE (time), epoch_us(time) * 1000"
        assert connection.sql(f"SELECT {columns} FROM readings").fetchall() == [
            (3, 7, 1, 52.5, 13.1, 100.0, 3.0, 9.0, 0.0, 25.5, NS),
            (3, 7, 4, 52.5, 13.2, None, 3.0, 9.0, 0.0, 25.5, NS - 10**10),
        ]
        assert connection.sql(f"SELECT {columns} FROM diagnostics").fetchall() == [(3, 7, 2, 0.9, 400.0, 0.0, NS)]
        assert connection.sql("SELECT * FROM trucks").fetchall() == [
            (3, 7, "truck_7", "North", "Seth", "H-2", "v2.3", 1500.0, 150.0, 12.0)
        ]
        assert connection.sql("SELECT count(*) FROM measurements").fetchall() == [(16,)]


@pytest.mark.parametrize(
    ("content", "number", "why"),
    [
        (TRUCK_LINES.replace("fleet=North", "fleet=Up", 1), 2, "fleet=Up; expected one of East"),
        (TRUCK_LINES.replace("fleet=North,driver=Seth", "fleet=North,driver=Andy", 1), 2, "other tags than in a row before"),
        (TRUCK_LINES.replace("velocity=3,", "velocity=fast,", 1), 1, "7 numbers"),
        (TRUCK_LINES.replace(",fleet=North", ""), 1, "no row of truck_7 has the tag fleet"),
        (TRUCK_LINES.replace("name=truck_7", "name=host_7", 1), 1, "expected truck_ and a number"),
    ],
)
def test_a_bad_line_of_a_truck_is_named(tmp_path: Path, content: str, number: int, why: str) -> None:
    with pytest.raises(UsageError, match=f"data.txt, line {number}: .*{re.escape(why)}"):
        imported(tmp_path, content)


def test_files_of_both_use_cases_are_not_one_dataset(tmp_path: Path) -> None:
    for name, content in (("cpu.txt", PAIRS), ("trucks.txt", TRUCK_PAIRS)):
        (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(
        UsageError, match=r"trucks\.txt: it has readings and diagnostics of trucks, and .*cpu\.txt has metrics of servers"
    ):
        import_files([str(tmp_path / "cpu.txt"), str(tmp_path / "trucks.txt")], tmp_path / "imported", skip_bad_rows=False)
