"""Code of all commands: the entry point, output, arguments, connections."""
