"""Nodes that start with the data of others: what is linked, what is copied, and that a ring of Cassandra has all rows and leaves the others' files alone."""

import errno
import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from sensorbench import lab
from sensorbench._engine import Target
from sensorbench.benchmarks.stress import Means, RecordWork, with_mix
from sensorbench.compat.ycsb import Property, parse_core_workload
from sensorbench.errors import FailedError, UsageError
from sensorbench.lab import kept_data
from sensorbench.lab.database import KeptFiles
from sensorbench.lab.databases import cassandra_nodetool as nodetool
from sensorbench.lab.processes import wait_until
from sensorbench.lab.state_dirs import calling_user, server_user
from sensorbench.progress import ProgressReporter
from sensorbench.results.ownership import Owner, new_id
from sensorbench.runner import Servers, parse_target, run_plan

FILES = KeptFiles(("data",), ("-Data.db",))


def written(folder: Path) -> Path:
    """A folder with a file that is never written again, and one that is."""
    (folder / "table").mkdir(parents=True)
    (folder / "table" / "big-Data.db").write_text("rows")
    (folder / "table" / "big-TOC.txt").write_text("Data.db")
    return folder


def test_files_that_are_never_written_again_are_linked_and_others_are_copied(tmp_path: Path) -> None:
    source = written(tmp_path / "kept")
    kept_data._take(source, tmp_path / "new", FILES, calling_user())
    shared = {path.name: path.stat().st_nlink for path in (tmp_path / "new" / "table").iterdir()}
    assert shared == {"big-Data.db": 2, "big-TOC.txt": 1}
    assert (tmp_path / "new" / "table" / "big-TOC.txt").read_text() == "Data.db"


def test_where_there_are_no_links_files_are_copied_and_other_errors_are_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = written(tmp_path / "kept")

    def fails(number: int) -> None:
        def link(*_: object) -> NoReturn:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "link", link)

    fails(errno.EXDEV)
    kept_data._take(source, tmp_path / "copied", FILES, calling_user())
    assert (tmp_path / "copied" / "table" / "big-Data.db").read_text() == "rows"
    assert (source / "table" / "big-Data.db").stat().st_nlink == 1
    fails(errno.ENOSPC)
    with pytest.raises(OSError, match="No space left"):
        kept_data._take(source, tmp_path / "full", FILES, calling_user())


def hashed(folder: Path) -> dict[str, str]:
    """What lies in a folder: a hash of each file by its place."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_node_of_cassandra_starts_with_the_rows_of_another_whose_files_stay_as_they_are(lab_home: Path, tmp_path: Path) -> None:
    """A node with other settings writes over the rows, and compacts all files into one."""
    wanted = {"recordcount": "2000", "fieldcount": "1", "fieldlength": "100"}
    records, _ = parse_core_workload({key: Property(value, "test") for key, value in wanted.items()})
    workload = with_mix(records, {"write": 1.0})
    work = RecordWork(parse_target("cassandra?replication=1"), workload, tmp_path, seed=1, replace=False)
    more = RecordWork(parse_target("cassandra"), replace(workload, recordcount=2001), tmp_path, seed=1, replace=False)
    owner, quiet = Owner.of(new_id(), tmp_path), ProgressReporter(quiet=True)

    def ready(instance: lab.Instance, folder: str) -> bool:
        """Has the rows be there; whether they had to be added."""
        servers = Servers({work.variant.target.server: instance})
        (at,) = servers.at_their_urls([work.variant])
        work.make_ready(at, at.engine_target(), Means(servers, tmp_path / folder, quiet, owner))
        work.check_count(at.engine_target())
        return (tmp_path / folder).exists()

    with lab.borrowed(lab.ServerSpec("cassandra", nodes=1, stays=False)) as kept:
        with pytest.raises(UsageError, match="is running; nodes start with the data of an instance that was kept"):
            lab.up(lab.ServerSpec("cassandra", nodes=1, stays=False, data_of=kept.name))
        assert ready(kept, "loaded")
        lab.keep(kept.name)
        with pytest.raises(UsageError, match=f"{kept.name} has 1 node of cassandra"):
            kept_data.check_kept(lab.find_instance(kept.name), lab.LAB_DATABASES["cassandra"], kept.version, 2)
        folders = [kept.data_folder(node) / "data" for node in kept.nodes]
        before = [hashed(folder) for folder in folders]
        tables = [folder / "sensorbench" for folder in folders]
        assert all(any(table.rglob("*-Data.db")) for table in tables)
        spec = lab.ServerSpec("cassandra", nodes=1, settings={"key_cache_size": "1MiB"}, stays=False, data_of=kept.name)
        with lab.borrowed(spec) as other:
            assert [node.host for node in other.nodes] == [node.host for node in kept.nodes]
            assert not ready(other, "linked")
            with pytest.raises(FailedError, match="2,000 of 2,001 records are there"):
                more.check_count(Target(lab.url_of(other)))
            linked = [path for node in other.nodes for path in other.data_folder(node).rglob("*-Data.db")]
            assert any(path.stat().st_nlink > 1 for path in linked)
            write_over(work, other, tmp_path / "written")
            assert not ready(other, "again")
        assert [hashed(folder) for folder in folders] == before


def write_over(work: RecordWork, instance: lab.Instance, folder: Path) -> None:
    """Writes over rows, and has all files of each node become one."""
    servers = Servers({work.variant.target.server: instance})
    (at,) = servers.at_their_urls([work.variant])
    plan = work.plan()
    run = run_plan(
        at.engine_target(),
        at,
        {
            "operations": plan["operations"],
            "parameter_sources": plan.get("parameter_sources", []),
            "order": "random",
            "seed": 2,
            "phases": [{"name": "over", "operations": 1000}],
            "concurrency": 8,
            "threads": 1,
            "timeout_s": 60.0,
        },
        work.tables(),
        folder,
        servers,
        lambda *_: None,
    )
    assert run.manifest.phase_figures[0].started == 1000
    for node in instance.nodes:
        nodetool.ask(instance, node, server_user(), "flush")
        linked = files_of(instance, node)
        assert len(linked) > 1
        nodetool.ask(instance, node, server_user(), "compact", "sensorbench")
        # Files go a moment after the one that takes their place is there.
        assert wait_until(lambda node=node: len(files_of(instance, node)) == 1, timeout_s=60.0, every_s=0.2)  # type: ignore[misc]
        assert not files_of(instance, node) & linked


def files_of(instance: lab.Instance, node: lab.Node) -> set[str]:
    """The files with rows of the records' table."""
    return {path.name for path in instance.data_folder(node).glob("data/sensorbench/usertable-*/*-Data.db")}


def test_only_a_database_that_says_how_keeps_data() -> None:
    assert lab.keeps_data("cassandra")
    assert not lab.keeps_data("redis")
    assert not lab.keeps_data("sqlite")
    with pytest.raises(FailedError, match="redis: nodes cannot start with the data of others"):
        lab.LAB_DATABASES["redis"].write_all(*[None] * 3)  # type: ignore[arg-type]
