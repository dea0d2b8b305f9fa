"""Subscriptions that join a recording to its live stream."""
