"""Commands for recordings, by requests to a running archive."""
