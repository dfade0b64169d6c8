"""Which kinds of database the lab can start, and what else. Adding one is one file and one line here."""

from sensorbench.errors import UsageError
from sensorbench.lab.database import LabCluster, LabDatabase
from sensorbench.lab.databases import chdb
from sensorbench.lab.databases.cassandra import Cassandra
from sensorbench.lab.databases.clickhouse import Clickhouse
from sensorbench.lab.databases.ferretdb import Ferretdb, FerretdbPostgresql
from sensorbench.lab.databases.hbase import Hbase
from sensorbench.lab.databases.influxdb import Influxdb
from sensorbench.lab.databases.influxdb2 import Influxdb2
from sensorbench.lab.databases.iotdb import Iotdb
from sensorbench.lab.databases.mariadb import Mariadb
from sensorbench.lab.databases.opentsdb import Opentsdb
from sensorbench.lab.databases.postgresql import Postgresql
from sensorbench.lab.databases.prometheus import Prometheus
from sensorbench.lab.databases.questdb import Questdb
from sensorbench.lab.databases.redis import Redis, RedisCluster
from sensorbench.lab.databases.victoriametrics import Victoriametrics
from sensorbench.lab.hdfs import Hdfs
from sensorbench.lab.software import Source
from sensorbench.lab.spark import Spark

LAB_DATABASES: dict[str, LabDatabase] = {
    database.name: database
    for database in (
        Mariadb(),
        Postgresql(),
        Questdb(),
        Redis(),
        RedisCluster(),
        Cassandra(),
        Ferretdb(),
        FerretdbPostgresql(),
        Hbase(),
        Influxdb(),
        Influxdb2(),
        Victoriametrics(),
        Prometheus(),
        Opentsdb(),
        Clickhouse(),
        Iotdb(),
    )
}

# Libraries of embedded databases that are got when a target first needs them.
LIBRARIES: dict[str, Source] = {chdb.NAME: chdb.SOFTWARE}

# What the lab starts: databases, and what computes and stores files beside them, which is no target.
LAB_SERVERS: dict[str, LabDatabase] = {**LAB_DATABASES, Spark.name: Spark(), Hdfs.name: Hdfs()}


def require_server(name: str) -> LabDatabase:
    """A kind of server by name. Raises UsageError."""
    if name not in LAB_SERVERS:
        raise UsageError(f"the lab cannot start {name!r}; it can start {', '.join(LAB_SERVERS)} (see: sensorbench lab databases)")
    return LAB_SERVERS[name]


def has_library(name: str) -> bool:
    """Whether nothing has to be got before a database is opened in this process."""
    return name not in LIBRARIES or LIBRARIES[name].is_there


def clusters() -> list[str]:
    """The kinds of database whose nodes can join and leave."""
    return [name for name, database in LAB_DATABASES.items() if isinstance(database, LabCluster)]


def databases_on_hosts() -> list[str]:
    """The kinds of database whose nodes may be on hosts."""
    return [name for name, database in LAB_DATABASES.items() if database.runs_on_hosts]


def keeps_data(name: str) -> bool:
    """Whether nodes of a kind of database can start with the data of others."""
    return name in LAB_DATABASES and LAB_DATABASES[name].kept_files is not None
