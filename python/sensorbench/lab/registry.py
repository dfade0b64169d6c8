"""Which kinds of database the lab can start. Adding one is one file and one line here."""

from sensorbench.errors import UsageError
from sensorbench.lab.database import LabDatabase
from sensorbench.lab.databases.cassandra import Cassandra
from sensorbench.lab.databases.ferretdb import Ferretdb, FerretdbPostgresql
from sensorbench.lab.databases.hbase import Hbase
from sensorbench.lab.databases.mariadb import Mariadb
from sensorbench.lab.databases.postgresql import Postgresql
from sensorbench.lab.databases.redis import Redis, RedisCluster

LAB_DATABASES: dict[str, LabDatabase] = {
    database.name: database
    for database in (Mariadb(), Postgresql(), Redis(), RedisCluster(), Cassandra(), Ferretdb(), FerretdbPostgresql(), Hbase())
}


def require_database(name: str) -> LabDatabase:
    """A kind of database by name. Raises UsageError."""
    if name not in LAB_DATABASES:
        raise UsageError(
            f"the lab cannot start {name!r}; it can start {', '.join(LAB_DATABASES)} (see: sensorbench lab databases)"
        )
    return LAB_DATABASES[name]
