"""The documentation of what commands print with --json."""
