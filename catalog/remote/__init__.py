"""Archive directories in object stores, read through fsspec or Arrow file systems."""
