"""ODBC without installing it: unixODBC's driver manager and three drivers, from Debian's packages, unpacked."""

from pathlib import Path

from sensorbench.errors import FailedError
from sensorbench.lab.software import DebianPackages

# Libraries of drivers by what they reach; PostgreSQL also by its driver that is not for Unicode.
DRIVERS = {
    "postgresql": "psqlodbcw.so",
    "postgresql-ansi": "psqlodbca.so",
    "mariadb": "libmaodbc.so",
    "sqlite": "libsqlite3odbc.so",
}

_MANAGER = ("libodbc2", "libodbcinst2", "libltdl7")
_DRIVERS = ("odbc-postgresql", "odbc-mariadb", "libsqliteodbc", "libpq5", "libmariadb3", "libsqlite3-0")

# What these packages need besides (OpenSSL, Kerberos, LDAP), the system has to have.
SOFTWARE = DebianPackages("odbc", "debian", (*_MANAGER, *_DRIVERS))


def libraries() -> Path:
    """The folder of the libraries, got first if they are not there; what the system has not is taken from it. Raises FailedError."""
    return manager().parent


def manager() -> Path:
    """The driver manager's library, for the URL option `manager` or for SENSORBENCH_ODBC_MANAGER. Raises FailedError."""
    found = sorted(SOFTWARE.get().glob("usr/lib/*/libodbc.so.2"))
    if not found:
        raise FailedError(
            f"there is no libodbc.so.2 below {SOFTWARE.folder}/usr/lib; remove {SOFTWARE.folder}: the next command gets it again"
        )
    return found[0]


def driver(name: str) -> Path:
    """The library of a driver, one of DRIVERS, for the URL option `driver`. Raises FailedError."""
    return libraries() / "odbc" / DRIVERS[name]
