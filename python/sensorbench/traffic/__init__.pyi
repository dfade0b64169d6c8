from .trace import Template, TemplateKind, Trace, read_trace, statements_file

__all__ = ["Template", "TemplateKind", "Trace", "read_trace", "statements_file"]
