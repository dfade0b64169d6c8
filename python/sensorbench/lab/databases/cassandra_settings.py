"""Settings of Cassandra: what the lab sets itself, what users may set, and the cassandra.yaml that follows from both."""

from collections.abc import Mapping, Sequence

from sensorbench.errors import UsageError
from sensorbench.lab.jvm import size_of_setting

TOKENS_PER_NODE = "16"
_JVM = "jvm."
_HEAP, _PROCESSORS = "jvm.heap", "jvm.processors"
# Whether tables that do not say are compressed: cassandra.yaml has no key for it, the server reads a property of its virtual machine.
_COMPRESSION = "jvm.sstable_compression"
_DEFAULT_HEAP = "512M"

# Whoever changes these would leave the addresses of the lab, or its way of making a cluster of fresh nodes.
_OF_THE_LAB = {
    "auto_bootstrap",
    "broadcast_address",
    "broadcast_rpc_address",
    "cluster_name",
    "initial_token",
    "listen_address",
    "listen_interface",
    "listen_on_broadcast_address",
    "native_transport_port",
    "native_transport_port_ssl",
    "partitioner",
    "rpc_address",
    "rpc_interface",
    "seed_provider",
    "ssl_storage_port",
    "start_native_transport",
    "storage_port",
}

# As in the file that comes with Cassandra, where the server itself has no default or another one; but a commit log for a small disk,
# and no snapshots of dropped tables, which nobody would ever remove. Sizes of memory are left to the server: they follow from the heap.
_DEFAULTS = {
    "num_tokens": TOKENS_PER_NODE,
    "endpoint_snitch": "SimpleSnitch",
    "commitlog_sync": "periodic",
    "commitlog_sync_period": "10000ms",
    "commitlog_total_space": "512MiB",
    "disk_failure_policy": "stop",
    "auto_snapshot": "false",
}


def check(settings: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
    """Settings that nobody knows, each with why. Raises UsageError for those that cannot be as they are."""
    for key, value in settings.items():
        if _names(key) & _OF_THE_LAB or known.get(key) in _OF_THE_LAB:
            raise UsageError(
                f"--server-setting {key}: the lab sets it itself: each node has its own address, and tokens are shared evenly"
            )
        if len(value.splitlines()) != 1:
            raise UsageError(
                f"--server-setting {key}: expected a value of one line as it stands in cassandra.yaml, e.g. {{enabled: true}}"
            )
    _check_number("num_tokens", settings.get("num_tokens", TOKENS_PER_NODE), limit=256)
    _check_number(_PROCESSORS, settings.get(_PROCESSORS, "1"), limit=1024)
    heap_bytes(settings)
    if settings.get(_COMPRESSION, "true") not in ("true", "false"):
        raise UsageError(f"--server-setting {_COMPRESSION}={settings[_COMPRESSION]}: expected true or false")
    return {
        key: f"neither a key of its cassandra.yaml nor {_HEAP}, {_PROCESSORS} or {_COMPRESSION}"
        for key in settings
        if key not in known and key not in (_HEAP, _PROCESSORS, _COMPRESSION)
    }


def _names(key: str) -> set[str]:
    """A key, and the one that it lies in."""
    return {key, key.split(".")[0]}


def _check_number(key: str, value: str, limit: int) -> None:
    if not (value.isascii() and value.isdigit() and 1 <= int(value) <= limit):
        raise UsageError(f"--server-setting {key}={value}: expected a number from 1 to {limit}")


def jvm_options(settings: Mapping[str, str], cpus: Sequence[int] | None) -> list[str]:
    """The heap and the processors of the virtual machine, and whether tables are compressed unless they say; processors as many as the
    instance may use, unless they are set.
    """
    heap = settings.get(_HEAP, _DEFAULT_HEAP)
    processors = settings.get(_PROCESSORS) or (str(len(cpus)) if cpus else None)
    return [
        f"-Xms{heap}",
        f"-Xmx{heap}",
        *([f"-XX:ActiveProcessorCount={processors}"] if processors else []),
        *([f"-Dcassandra.sstable_compression_default={settings[_COMPRESSION]}"] if _COMPRESSION in settings else []),
    ]


def heap_bytes(settings: Mapping[str, str]) -> int:
    """The heap of a node. Raises UsageError for what is not a size."""
    return size_of_setting(_HEAP, settings.get(_HEAP, _DEFAULT_HEAP))


def first_tokens(index: int, nodes: int, per_node: int) -> list[int]:
    """Tokens of a node (counted from 0) of a fresh cluster, such that all nodes have equal shares of the ring."""
    count = nodes * per_node
    return [-(2**63) + 1 + position * 2**64 // count for position in range(index, count, nodes)]


def cassandra_yaml(of_the_lab: Mapping[str, str], settings: Mapping[str, str], known: Mapping[str, str]) -> str:
    """The file: values are written as they are given. What users set replaces a default, also by the name that it had before."""
    users = {key: value for key, value in settings.items() if not key.startswith(_JVM)}
    replaced = {known.get(key, key) for key in users}
    if users.get("commitlog_sync", "periodic") != "periodic":
        replaced.add("commitlog_sync_period")
    defaults = {key: value for key, value in _DEFAULTS.items() if key not in replaced}
    return "".join(f"{key}: {value}\n" for key, value in {**defaults, **of_the_lab, **users}.items())
