from .anonymise import anonymise_trace, parse_positions, read_key
from .describe import describe_trace
from .formats import FORMATS, import_logs
from .record import record_traffic, recordable
from .trace import (
    STATEMENTS,
    StatementWriter,
    Template,
    TemplateKind,
    Trace,
    read_statements,
    read_trace,
    statements_file,
)
from .workbench import workbench_on_disk

__all__ = [
    "FORMATS",
    "STATEMENTS",
    "StatementWriter",
    "Template",
    "TemplateKind",
    "Trace",
    "anonymise_trace",
    "describe_trace",
    "import_logs",
    "parse_positions",
    "read_key",
    "read_statements",
    "read_trace",
    "record_traffic",
    "recordable",
    "statements_file",
    "workbench_on_disk",
]
