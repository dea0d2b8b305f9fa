"""The tables of entity stores, computed from recordings with Spark."""
