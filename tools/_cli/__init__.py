"""What all commands share: the entry point, output, arguments, connections."""
