"""Commands for replays and replications, by requests to a running archive."""
