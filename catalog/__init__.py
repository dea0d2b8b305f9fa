"""Archive directories: catalog, mark file, segment files, and their maintenance."""
