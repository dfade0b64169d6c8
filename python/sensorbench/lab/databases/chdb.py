"""The library of chDB, which is ClickHouse inside the client's process, from its npm package."""

from pathlib import Path

from sensorbench.lab.software import NpmPackage

NAME = "chdb"
_LIBRARY = "libchdb.so"

# The Python package has the same engine, but its extension exports no C API.
SOFTWARE = NpmPackage(
    NAME,
    "26.7.3",
    package="@chdb/lib-linux-x64-gnu@26.7.3-stable.1",
    sha256="c0d32b129e988f2b9a9a31c9141aecf5e1e2453f9a079efc4d36ab8e3f92b2ad",
    files=(_LIBRARY,),
)


def library() -> Path:
    """The library, which the driver opens; got first if it is not there (178 MB). Raises FailedError."""
    return SOFTWARE.get() / _LIBRARY
