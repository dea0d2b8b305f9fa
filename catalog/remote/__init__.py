"""Archive directories in object stores, read through obstore or fsspec."""
