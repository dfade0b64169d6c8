from .describe import describe_trace
from .formats import FORMATS, import_logs
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

__all__ = [
    "FORMATS",
    "STATEMENTS",
    "StatementWriter",
    "Template",
    "TemplateKind",
    "Trace",
    "describe_trace",
    "import_logs",
    "read_statements",
    "read_trace",
    "statements_file",
]
