"""Variants: a target and a schema, which together make one side of a comparison."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from sensorbench import _engine, lab
from sensorbench.errors import EngineUsageError, UsageError
from sensorbench.results import VariantManifest
from sensorbench.results.estimate import Place
from sensorbench.runner.registered import Database, databases
from sensorbench.runner.user_cluster.cluster import UserCluster
from sensorbench.runner.workload import Workload
from sensorbench.runner.write_batches import WriteBatches
from sensorbench.schemas import Schema
from sensorbench.toml_file import error_at


@dataclass(frozen=True)
class TargetSpec:
    """A target as the user named it.

    `place`: an embedded database in the results folder, a server that the lab starts for this run alone, an instance of the lab
    that stays, or a URL. `options` are those of a URL, where the address is not the user's to give.
    """

    text: str
    database: Database
    place: Literal["folder", "started", "lab", "url"]
    options: str = ""
    # What a study calls it, where it names systems: a database with variants and a size.
    system: str | None = None
    # Of a server that the lab starts: how many nodes, and its settings.
    nodes: int | None = None
    server_settings: tuple[tuple[str, str], ...] = ()
    # The database's own tool that loads, instead of the driver.
    loader: str = ""
    # Of a URL: how the nodes behind it are set and restarted.
    cluster: UserCluster | None = field(default=None, compare=False)
    # Of a server that the lab starts: the kept instance with whose data its nodes start.
    data_of: str | None = field(default=None, compare=False)
    # Of a server that the lab starts: where its nodes are placed, in the words of `--hosts`; on this machine if None.
    hosts: str | None = None

    @property
    def url_options(self) -> dict[str, str]:
        """The options of its URL, by name."""
        options = self.text.partition("?")[2] if self.place == "url" else self.options
        return dict(option.partition("=")[::2] for option in options.split("&") if option)

    @property
    def server(self) -> str:
        """The server, whatever the options: targets that differ in them share it."""
        nodes = [f"{self.nodes} nodes"] if self.nodes else []
        text = self.cluster.path.name if self.cluster else self.text.partition("?")[0]
        return " ".join([text, *nodes, *(f"{key}={value}" for key, value in self.server_settings)])

    @property
    def is_url(self) -> bool:
        """Whether what is loaded there stays there."""
        return self.place in {"lab", "url"}

    @property
    def label(self) -> str:
        """A short name, without address and options."""
        return self.system or (self.server.removeprefix("lab:") if self.place == "lab" else self.database.name)

    def with_options(self, options: str) -> "TargetSpec":
        """The same with more options of a URL; those that it has itself come first in it."""
        loader, options = split_loader(self.database.name, options)
        if loader:
            return replace(_loaded_by(self, loader).with_options(options), text=_joined(self.text, f"load={loader}"))
        if not options:
            return self
        if self.place == "url":
            return replace(self, text=_joined(self.text, options))
        return replace(self, options="&".join(filter(None, [options, self.options])))

    def with_option(self, key: str, value: str) -> "TargetSpec":
        """The same with an option at another value. Raises UsageError for one that makes no sense."""
        loader, _ = split_loader(self.database.name, f"{key}={value}")
        if loader:
            return replace(_loaded_by(self, loader), text=_with_option(self.text, key, value))
        if self.place == "folder":
            raise UsageError(f"--sweep {key}={value}: {self.label} in the results folder has no options; name a path")
        if self.place == "url":
            text = _with_option(self.text, key, value)
            _check_url(text)
            return replace(self, text=text)
        options = _with_option(f"?{self.options}", key, value).removeprefix("?")
        _check_options(self.database.name, f"{key}={value}")
        return replace(self, options=options)


@dataclass(frozen=True)
class VariantSpec:
    """What becomes a variant: a target and a schema. `label` distinguishes it from others with the same ones. A spec that `only_loads` is
    loaded and looked at, but not asked. `concurrency` is how many operations it has in flight, where that is not as the workload says, and
    `operations_share` the share of the workload's operations that it executes. One that `may_lose_rows` is there to see how many a loader
    loses. `operations` are those that the schema can answer, where it cannot answer all. `batches` are those that it is loaded in, where
    each is acknowledged by itself.
    """

    target: TargetSpec
    schema: Schema
    label: str = ""
    only_loads: bool = False
    concurrency: int | None = None
    operations_share: float = 1.0
    may_lose_rows: bool = False
    operations: tuple[str, ...] | None = None
    batches: WriteBatches | None = None


@dataclass(frozen=True)
class Variant:
    """One side of a comparison. The URL is not known before the lab has started what it is to start."""

    id: str
    target: TargetSpec
    schema: Schema
    url: str | None
    temporary: Path | None
    # Where several schemas share a server, each has a namespace of its own.
    namespace: str | None = None
    label: str = ""
    only_loads: bool = False
    concurrency: int | None = None
    operations_share: float = 1.0
    may_lose_rows: bool = False
    operations: tuple[str, ...] | None = None
    batches: WriteBatches | None = None

    @property
    def namespace_at_url(self) -> str:
        """The namespace that its URL names, or the usual one."""
        options = dict(option.partition("=")[::2] for option in (self.url or "").partition("?")[2].split("&") if option)
        return options.get("namespace", _NAMESPACE)

    def workload(self, of_all: Workload) -> Workload:
        """The workload as this variant gets it."""
        changes: dict[str, object] = {}
        schedule = of_all.schedule
        if self.concurrency is not None:
            schedule = schedule.model_copy(update={"concurrency": self.concurrency})
        mix = {name: weight for name, weight in of_all.mix.items() if self.answers(name)}
        share = self.operations_share
        if mix != of_all.mix:
            # What it cannot answer is left out: all others come as often as they do elsewhere.
            of_mix = sum(mix.values()) / sum(of_all.mix.values())
            changes["mix"] = mix
            schedule = schedule.with_share(of_mix)
            share *= of_mix
        if schedule != of_all.schedule:
            changes["schedule"] = schedule
        if of_all.operations is not None and share < 1.0:
            changes["operations"] = max(1, round(of_all.operations * share))
        return of_all.model_copy(update=changes)

    def answers(self, operation: str) -> bool:
        """Whether it is asked an operation, or an instance of one."""
        return not self.only_loads and (self.operations is None or operation.partition(".")[0] in self.operations)

    @property
    def is_whole(self) -> bool:
        """Whether it is asked everything."""
        return not self.only_loads and self.operations is None

    def at(self, url: str) -> "Variant":
        """The same at a URL, with the target's options and in its own namespace there."""
        for option in filter(None, self.target.options.split("&")):
            url = _with_option(url, *option.split("=", 1))
        return replace(self, url=_with_namespace(url, self.namespace) if self.namespace else url)

    def beside(self, namespace: str) -> "Variant":
        """The same place with another namespace."""
        return self.with_option("namespace", namespace)

    def in_namespace(self, suffix: str) -> "Variant":
        """The same at its server, in a namespace of its own that no other variant has."""
        namespace = _namespace(f"{self.id}_{suffix}")
        return replace(self, namespace=namespace, url=_with_option(self.url, "namespace", namespace) if self.url else None)

    def with_option(self, key: str, value: str) -> "Variant":
        """The same place, asked with another option of its URL."""
        if self.url is None:
            raise AssertionError("a variant's server is started before it is used")
        return replace(self, url=_with_option(self.url, key, value))

    def engine_target(self) -> _engine.Target:
        """The target; nothing is asked of it yet."""
        if self.url is None:
            raise AssertionError("a variant's server is started before it is used")
        return _engine.Target(self.url)

    def manifest(self, statements: dict[str, object]) -> VariantManifest:
        """What results say of it. The URL is shown without secrets; that of a server of the lab changes with every start."""
        width = self.schema.row_width()
        return VariantManifest(
            id=self.id,
            target=self.target.label,
            database=self.target.database.name,
            system=self.target.system or "",
            embedded=self.target.database.embedded,
            url=self.target.text if self.target.place in {"started", "lab"} else self.engine_target().url,
            schema_name=self.schema.name,
            schema_summary=self.schema.summary,
            schema_file=str(self.schema.path),
            schema_parameters=dict(self.schema.parameters),
            schema_digest=self.schema.digest,
            label=self.label,
            only_loads=self.only_loads,
            concurrency=self.concurrency,
            operations_share=self.operations_share,
            operations=None if self.operations is None else list(self.operations),
            row_bytes=width.wanted_bytes if width else None,
            promises=self.schema.file.promises,
            statements=statements,
        )


def place_of(target: TargetSpec) -> Place:
    """Whether a target is embedded, a server that the lab starts, or one of the user's."""
    if target.database.embedded:
        return "embedded"
    return "lab" if target.place == "started" else "yours"


# The namespace of a URL that names none, as the engine has it.
_NAMESPACE = "sensorbench"
# Which option says how rows are loaded.
_LOAD = "load"


def split_loader(database: str, options: str) -> tuple[str, str]:
    """The tool that options of a URL name for loading, if they do, and the options without it: drivers know nothing of tools.

    Raises:
        UsageError: for one that cannot be had here.

    """
    tools = lab.load_tools(database)
    parts = [option.partition("=") for option in options.split("&") if option]
    named = [value for key, _, value in parts if key == _LOAD and value in tools]
    rest = "&".join("".join(part) for part in parts if not (part[0] == _LOAD and part[2] in tools))
    return (lab.require_tool(database, named[-1]).name if named else ""), rest


def _loaded_by(target: TargetSpec, loader: str) -> TargetSpec:
    """The target with a tool that loads it. Raises UsageError unless it is a server of the lab."""
    if target.place not in {"started", "lab"}:
        raise UsageError(
            f"load={loader}: a tool of the database's own loads servers of the lab alone; name {target.database.name} without an address, or lab:NAME"
        )
    tool = lab.require_tool(target.database.name, loader)
    if target.place == "started":
        settings = {**tool.server_settings, **dict(target.server_settings)}
        target = replace(target, server_settings=tuple(settings.items()))
    else:
        settings = lab.find_instance(target.text.removeprefix(_LAB).partition("?")[0]).settings
    if why := tool.refusal(settings):
        raise UsageError(f"--target {target.text}: load={loader}: {why}")
    return replace(target, loader=loader)


_SCHEME = re.compile(r"(?P<scheme>[A-Za-z0-9+]+):")
_LAB = "lab:"
# What URLs look like, for help and messages.
FILE_URL = "sqlite:PATH"
SERVER_URL = "cassandra://HOST"


def parse_target(text: str) -> TargetSpec:
    """A target by a database's bare name, by the name of an instance of the lab, or by URL. Raises UsageError, showing no user
    info.
    """
    known = databases()
    if text.startswith(_LAB):
        name, _, options = text.removeprefix(_LAB).partition("?")
        instance = lab.find_instance(name)
        if instance.database not in known:
            raise UsageError(f"--target {text}: {instance.database} is not a database; use it as {lab.used_as(instance)}")
        loader, rest = split_loader(instance.database, options)
        _check_url(_joined(lab.url_of(instance), rest))
        target = TargetSpec(text, known[instance.database], "lab", rest)
        return _loaded_by(target, loader) if loader else target
    scheme = _SCHEME.match(text)
    name, _, options = (scheme["scheme"], "", "") if scheme else text.partition("?")
    if name not in known:
        shown = f"{name}:…" if scheme else name
        raise UsageError(
            f"--target {shown}: expected the name of a database ({', '.join(known)}), lab:NAME, or a URL, for example {FILE_URL}"
        )
    if scheme:
        loader, _ = split_loader(name, text.partition("?")[2])
        target = TargetSpec(text, known[name], "url")
        if loader:
            _loaded_by(target, loader)
        _check_url(text)
        return target
    if known[name].embedded:
        if options:
            raise UsageError(f"--target {text}: options need an address, for example {name}:data.db?{options}")
        return TargetSpec(text, known[name], "folder")
    if name not in lab.LAB_DATABASES:
        place = "odbc:DSN" if name == "odbc" else f"{name}://HOST"
        raise UsageError(
            f"--target {name}: the lab cannot start {name} (it starts {', '.join(lab.LAB_DATABASES)}); give the URL of a server: {place}"
        )
    return started_target(name, options)


def cluster_target(file: Path, options: str = "") -> TargetSpec:
    """A target that is a cluster of the user's, by its file; `options` are those of its URL where that has none. Raises UsageError."""
    cluster = UserCluster.load(file)
    try:
        target = parse_target(cluster.file.url)
    except UsageError as error:
        raise error_at(file, "url", str(error)) from None
    if target.place != "url":
        raise error_at(file, "url", f"expected the URL of servers, such as {SERVER_URL}")
    known = target.url_options
    more = "&".join(option for option in options.split("&") if option and option.partition("=")[0] not in known)
    return replace(target.with_options(more) if more else target, cluster=cluster)


def started_target(
    database: str,
    options: str = "",
    *,
    system: str | None = None,
    nodes: int | None = None,
    server_settings: Mapping[str, str] = MappingProxyType({}),
) -> TargetSpec:
    """A target that the lab starts. Raises UsageError for options that make no sense, as far as can be known before it is up."""
    loader, rest = split_loader(database, options)
    _check_options(database, rest)
    text = _joined(database, options)
    target = TargetSpec(text, databases()[database], "started", rest, system, nodes, tuple(server_settings.items()))
    return _loaded_by(target, loader) if loader else target


def placed_on(target: TargetSpec, hosts: str | None) -> TargetSpec:
    """The target with its nodes on hosts, if any are named, of which one may have nodes, and if the lab starts it and can have its nodes there. What else
    hosts are named for does not suffer from it that a target stays where it is.
    """
    if hosts is None or target.place != "started" or target.database.name not in lab.databases_on_hosts():
        return target
    return replace(target, hosts=hosts) if lab.may_have_nodes(hosts) else target


def require_on(target: TargetSpec, hosts: str | None) -> TargetSpec:
    """The same, where hosts are named for nodes alone. Raises UsageError if the target's nodes cannot be there."""
    if hosts is None:
        return target
    if target.place != "started":
        raise UsageError(
            f"--hosts: {target.label} is not started for this run, so its nodes are where they are; leave it out, or name one of "
            f"{', '.join(lab.databases_on_hosts())}"
        )
    if target.database.name not in lab.databases_on_hosts():
        raise UsageError(
            f"--hosts: the lab starts {target.database.name} on this machine alone; expected one of {', '.join(lab.databases_on_hosts())}"
        )
    if not lab.may_have_nodes(hosts):
        raise UsageError(f'--hosts {hosts}: no host has the role "node"; add it to the roles of one')
    return replace(target, hosts=hosts)


def _check_options(database: str, options: str) -> None:
    """Checks options of a server that is not up yet. Raises UsageError for those that make no sense, as far as can be known."""
    of_its_own = lab.LAB_DATABASES[database].options_of_its_own
    of_driver = []
    for option in filter(None, options.split("&")):
        key, _, value = option.partition("=")
        values = [*of_its_own.get(key, ()), *(lab.load_tools(database) if key == _LOAD else ())]
        if not values:
            of_driver.append(option)
        elif value not in values:
            raise UsageError(f"--target {database}?{option}: expected {' or '.join(values)} for {key}")
    _check_url(_joined(f"{database}://127.0.0.1", "&".join(of_driver)))


def _check_url(url: str) -> None:
    try:
        _engine.Target(url)
    except EngineUsageError as error:
        raise UsageError(str(error)) from None


def _joined(url: str, options: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}{options}" if options else url


def make_variants(specs: list[VariantSpec], data_folder: Path) -> list[Variant]:
    """Variants with ids of their own. An embedded database by its bare name gets a place below `data_folder`, which goes when
    the work is done. A schema needs a database to itself: where several share a path, each gets the schema's name appended;
    where they share a server, each gets a namespace.
    """
    variants: list[Variant] = []
    for spec in specs:
        target, schema = spec.target, spec.schema
        shares_target = sum(other.target.server == target.server for other in specs) > 1
        wanted = "-".join(filter(None, [target.label, schema.name, spec.label]))
        variant_id = _free_id(wanted, [variant.id for variant in variants])
        namespace = _namespace(variant_id) if shares_target and not target.database.embedded else None
        variant = Variant(
            variant_id,
            target,
            schema,
            None,
            None,
            namespace,
            spec.label,
            spec.only_loads,
            spec.concurrency,
            spec.operations_share,
            spec.may_lose_rows,
            spec.operations,
            spec.batches,
        )
        if target.place == "folder":
            path = data_folder / variant_id
            variant = replace(variant, url=f"{target.database.name}:{path}", temporary=path)
        elif target.place == "url":
            suffix = "-".join(filter(None, [schema.name, spec.label]))
            variant = variant.at(_with_suffix(target.text, suffix) if shares_target and target.database.embedded else target.text)
        variants.append(variant)
    return variants


def _free_id(wanted: str, taken: list[str]) -> str:
    candidates = [wanted, *(f"{wanted}-{number}" for number in range(2, len(taken) + 3))]
    return next(candidate for candidate in candidates if candidate not in taken)


# Databases cut longer names, each at another length.
_LONGEST_NAMESPACE = 48


def _namespace(variant_id: str) -> str:
    whole = re.sub(r"[^a-z0-9_]", "_", f"sensorbench_{variant_id.lower()}")
    if len(whole) <= _LONGEST_NAMESPACE:
        return whole
    suffix = hashlib.sha256(variant_id.encode()).hexdigest()[:8]
    return f"{whole[: _LONGEST_NAMESPACE - 9]}_{suffix}"


def _with_namespace(url: str, namespace: str) -> str:
    """The URL with a namespace; one that the URL names already comes first in it."""
    named = [option.removeprefix("namespace=") for option in url.partition("?")[2].split("&") if option.startswith("namespace=")]
    whole = f"{named[0]}_{namespace.removeprefix('sensorbench_')}"[:_LONGEST_NAMESPACE] if named else namespace
    return _with_option(url, "namespace", whole)


def _with_option(url: str, key: str, value: str) -> str:
    """The URL with an option set."""
    address, _, options = url.partition("?")
    kept = [option for option in options.split("&") if option and not option.startswith(f"{key}=")]
    return f"{address}?{'&'.join([*kept, f'{key}={value}'])}"


def _with_suffix(url: str, schema: str) -> str:
    address, question_mark, options = url.partition("?")
    path = Path(address.partition(":")[2])
    scheme = address.partition(":")[0]
    return f"{scheme}:{path.with_name(f'{path.stem}-{schema}{path.suffix}')}{question_mark}{options}"
