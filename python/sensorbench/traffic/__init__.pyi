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
    "STATEMENTS",
    "StatementWriter",
    "Template",
    "TemplateKind",
    "Trace",
    "read_statements",
    "read_trace",
    "statements_file",
]
