"""Pure analysis: values in, values out. Nothing here reads a file or knows a database."""
