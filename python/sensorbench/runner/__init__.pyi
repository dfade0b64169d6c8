from .ceiling import driver_ceiling, server_ceiling
from .client_health import (
    check_client_health,
    client_bound,
    generator_figures,
    health_of_client,
    warn_of_client,
    warn_of_generators,
)
from .comparison import DATA_FOLDER, Comparison, ConnectedComparison, StallTest, ValidatedComparison
from .drive import run_plan, write_started
from .experiment_file import ExperimentFile, load_experiment, plan_experiment
from .freshness import FreshnessWatch
from .generators.options import MAX_GENERATORS, GeneratorOptions
from .generators.shared_run import GENERATOR
from .generators.sharing import (
    ALONE,
    LoadGenerators,
    check_can_share,
    check_can_share_operations,
    load_generators,
    why_undivided_by,
)
from .jobs import LiveJobs, live_jobs
from .lengths import Length, LengthOrNone, Seconds, SecondsOrNone, seconds, seconds_or_none
from .live import FeedEnd, LiveFeed, publish_stored, published_to
from .load import LoadOrder, check_namespace, fingerprint_of, known_size, load_more, load_variant, noted
from .markers import watch_markers
from .monitor import CLIENT
from .namespaces import OwnedNamespace, owned_namespaces
from .no_op import at_rate, client_figures, do_nothing, response_of, timer_lag_s
from .one_at_a_time import RunningServer, SeparateServers, check_can_stop, keeps_on_disk, server_kind
from .openmetrics import observers
from .options import (
    BlockOptions,
    ChangeOptions,
    ClusterOptions,
    ExperimentOptions,
    HostOptions,
    RankingOptions,
    Rate,
    RateOptions,
    RepetitionOptions,
    ServerMemoryOptions,
    ServerOptions,
    SweepOptions,
)
from .pilots import abandoned_pilots, pilot_folder
from .plan import Parameters, as_json, build_plan, parameters_of, plan_operations, planned_operation, planned_operations
from .prepare import PreparedTable, cached_tables, prepare_tables
from .references import check_references
from .registered import Database, databases
from .registers import KEY, READ, VALUE, WRITE, is_of_registers, with_keys_of_run
from .retention_watch import RetentionWatch, execute_retention, retained_stream
from .room import arithmetic_estimate, free_room
from .run import Observer, run_manifest, run_to_end
from .server_end import why_server_ended, why_servers_ended
from .servers import Servers, addresses_of, borrowed_cluster, check_memory, running_servers
from .streams import marker_write, retained_write, streamed_writes
from .sweep import swept
from .validate import connect, sampling_interval_of, validated
from .variants import (
    FILE_URL,
    SERVER_URL,
    TargetSpec,
    Variant,
    VariantSpec,
    cluster_target,
    make_variants,
    parse_target,
    place_of,
    placed_on,
    require_on,
    started_target,
)
from .versions import lab_takes
from .workload import MAX_CONCURRENCY, MAX_CONCURRENCY_EMBEDDED, WARMUP, Schedule, Workload

__all__ = [
    "ALONE",
    "CLIENT",
    "DATA_FOLDER",
    "FILE_URL",
    "GENERATOR",
    "KEY",
    "MAX_CONCURRENCY",
    "MAX_CONCURRENCY_EMBEDDED",
    "MAX_GENERATORS",
    "READ",
    "SERVER_URL",
    "VALUE",
    "WARMUP",
    "WRITE",
    "BlockOptions",
    "ChangeOptions",
    "ClusterOptions",
    "Comparison",
    "ConnectedComparison",
    "Database",
    "ExperimentFile",
    "ExperimentOptions",
    "FeedEnd",
    "FreshnessWatch",
    "GeneratorOptions",
    "HostOptions",
    "Length",
    "LengthOrNone",
    "LiveFeed",
    "LiveJobs",
    "LoadGenerators",
    "LoadOrder",
    "Observer",
    "OwnedNamespace",
    "Parameters",
    "PreparedTable",
    "RankingOptions",
    "Rate",
    "RateOptions",
    "RepetitionOptions",
    "RetentionWatch",
    "RunningServer",
    "Schedule",
    "Seconds",
    "SecondsOrNone",
    "SeparateServers",
    "ServerMemoryOptions",
    "ServerOptions",
    "Servers",
    "StallTest",
    "SweepOptions",
    "TargetSpec",
    "ValidatedComparison",
    "Variant",
    "VariantSpec",
    "Workload",
    "abandoned_pilots",
    "addresses_of",
    "arithmetic_estimate",
    "as_json",
    "at_rate",
    "borrowed_cluster",
    "build_plan",
    "cached_tables",
    "check_can_share",
    "check_can_share_operations",
    "check_can_stop",
    "check_client_health",
    "check_memory",
    "check_namespace",
    "check_references",
    "client_bound",
    "client_figures",
    "cluster_target",
    "connect",
    "databases",
    "do_nothing",
    "driver_ceiling",
    "execute_retention",
    "fingerprint_of",
    "free_room",
    "generator_figures",
    "health_of_client",
    "is_of_registers",
    "keeps_on_disk",
    "known_size",
    "lab_takes",
    "live_jobs",
    "load_experiment",
    "load_generators",
    "load_more",
    "load_variant",
    "make_variants",
    "marker_write",
    "noted",
    "observers",
    "owned_namespaces",
    "parameters_of",
    "parse_target",
    "pilot_folder",
    "place_of",
    "placed_on",
    "plan_experiment",
    "plan_operations",
    "planned_operation",
    "planned_operations",
    "prepare_tables",
    "publish_stored",
    "published_to",
    "require_on",
    "response_of",
    "retained_stream",
    "retained_write",
    "run_manifest",
    "run_plan",
    "run_to_end",
    "running_servers",
    "sampling_interval_of",
    "seconds",
    "seconds_or_none",
    "server_ceiling",
    "server_kind",
    "started_target",
    "streamed_writes",
    "swept",
    "timer_lag_s",
    "validated",
    "warn_of_client",
    "warn_of_generators",
    "watch_markers",
    "why_server_ended",
    "why_servers_ended",
    "why_undivided_by",
    "with_keys_of_run",
    "write_started",
]
