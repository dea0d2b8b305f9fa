"""Retention: which recorded data goes when, by a policy; planned, shown and done."""
