"""Options of load generators."""

from sensorbench.options import OptionModel, option

MAX_GENERATORS = 64


class GeneratorOptions(OptionModel):
    """How many processes send the load, and where."""

    generators: int | None = option(
        None,
        "Number of load generators: processes that share operations, arrivals and requests in flight. Each has its own --threads. "
        " [default: 1; with --hosts, one on each]",
        ge=1,
        le=MAX_GENERATORS,
    )
    hosts: str | None = option(
        None,
        "Hosts for load generators, and for nodes of servers that the lab starts: a file (hosts.toml), local:N, ssh://USER@HOST:PORT (several with commas), or the address of a dask scheduler.",
    )
