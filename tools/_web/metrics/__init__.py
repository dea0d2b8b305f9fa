"""Metrics of an archive for Prometheus."""
